package evaluator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"pawl/internal/judge/evaluator"
	"pawl/internal/spec"
)

var repository = []string{
	".gitignore", "Makefile", "sub/Makefile", "package.json", "sub/package.json", "check.sh", "score.sh", "data.txt", "go.mod", "main.go", "tools/measure/main.go", "tools/one.go",
	"tests/run.sh", "tests/a_test.py", "tests/b_test.py", "tests/data/x.json", "conf/check.yml", "measure.py", "pkg/__main__.py", "pkg/mod.py", "bench/run.js", "bench/setup.js", "bench/index.js",
	"prog.awk", "sub/run.sh", "sub/deep/run.sh", "build.gradle", "gradlew", "justfile", "with space.sh", "src/a.js", "src/b.js", "[x].sh", "x.sh", "a@2.sh",
}

func TestP3_WordsOfTheGuardAreSealed(t *testing.T) {
	for command, want := range map[string]string{
		`go test ./...`:                       ``,
		`sh check.sh`:                         `check.sh`,
		`./check.sh && diff data.txt out.txt`: `check.sh|data.txt`,
		`pytest tests/a_test.py::TestX -c conf/check.yml`: `conf/check.yml|tests/a_test.py`,
		`lint --config=conf/check.yml src`:                `conf/check.yml`,
		`CONFIG=conf/check.yml lint`:                      `conf/check.yml`,
		`lint -c=./conf/../conf/check.yml`:                `conf/check.yml`,
		`lint ../main.go /etc/passwd ../../check.sh`:      ``,
		`lint --files src/a.js,src/b.js @data.txt`:        `data.txt|src/a.js|src/b.js`,
		`lint src/*.js`:                        `src/a.js|src/b.js`,
		`lint 'src/*.js'`:                      ``,
		`lint --files=src/*.js`:                `src/a.js|src/b.js`,
		`lint a@2.sh`:                          `a@2.sh`,
		`lint "$PWD/check.sh" $(pwd)/score.sh`: `check.sh|score.sh`,
		`cd sub && lint "$(git rev-parse --show-toplevel)/check.sh"`:  `check.sh`,
		`DIR=tests; lint $DIR/run.sh ${DIR}/a_test.py`:                `tests/a_test.py|tests/run.sh`,
		`lint ${CONFIG:-conf/check.yml}`:                              `conf/check.yml`,
		`lint $UNKNOWN/check.sh`:                                      ``,
		`cd sub && sh run.sh`:                                         `sub/run.sh`,
		`(cd sub && sh run.sh) && sh check.sh`:                        `check.sh|sub/run.sh`,
		`cd sub/deep; cd ..; sh run.sh`:                               `sub/run.sh`,
		`cd /tmp && sh check.sh`:                                      ``,
		`cd .. && sh check.sh`:                                        ``,
		`sh -c 'diff data.txt x && ./check.sh'`:                       `check.sh|data.txt`,
		`sh -c 'cat *.txt sub/*'`:                                     `data.txt|sub/Makefile|sub/package.json|sub/run.sh`,
		`awk 'BEGIN { exit 2 * 3 } # data.txt' x; sh -c 'cat data.*'`: `data.txt`,
		`find . -exec sed -e '/^ * x/d' {} +`:                         ``,
		`hyperfine "awk '{ s += $1 * 2 }' x"`:                         ``,
		`test "$(wc -l <data.txt)" -gt 5`:                             `data.txt`,
		`diff <(sort data.txt) x`:                                     `data.txt`,
		"sh <<EOF\n./check.sh\nEOF":                                   `check.sh`,
		"tool <<EOF\ndiff data.txt x\nEOF":                            `data.txt`,
		`make check`:                                                  `Makefile`,
		`npm test`:                                                    `package.json`,
		`npm ci`:                                                      ``,
		`go vet main.go`:                                              `main.go`,
		`sh "with space.sh"`:                                          `with space.sh`,
		`sh with\ space.sh`:                                           `with space.sh`,
		`sh '[x].sh'`:                                                 `[x].sh`,
		`sh [x].sh`:                                                   `x.sh`,
		`for f in tests/*.sh check.sh; do sh "$f"; done`:              `check.sh|tests/run.sh`,
		`! grep -q TODO main.go`:                                      `main.go`,
		`/src/repo/check.sh`:                                          `check.sh`,
		`pytest tests`:                                                ``,
		`cd src && lint *.js`:                                         `src/a.js|src/b.js`,
		`lint /src/repo/src/b.*`:                                      `src/b.js`,
		`# sh check.sh`:                                               ``,
	} {
		s := spec.Spec{Repo: spec.Repo{Path: "/src/repo"}, Guard: spec.Guard{Command: command}}
		assert.Equal(t, want, strings.Join(evaluator.Find(s, repository, nil).Files, "|"), "%q", command)
	}
}

func TestP3_ScriptsThatCommandsExecuteAreSealed(t *testing.T) {
	for command, want := range map[string]string{
		`./score.sh data.txt`:                      `score.sh`,
		`sh score.sh data.txt`:                     `score.sh`,
		`bash -eu -o pipefail ./score.sh data.txt`: `score.sh`,
		`score.sh`:                                         ``, // the shell looks it up in PATH
		`PATH="$PWD/tests:$PATH" run.sh`:                   `tests/run.sh`,
		`env PATH=nothing:sub:tests run.sh`:                `sub/run.sh`,
		`cd sub && PATH=deep:$PATH run.sh`:                 `sub/deep/run.sh`,
		`cat data.txt | wc -l`:                             ``,
		`python measure.py --in data.txt`:                  `measure.py`,
		`python3.12 -W ignore measure.py data.txt`:         `measure.py`,
		`/usr/bin/env python3 measure.py`:                  `measure.py`,
		`python3 -m pkg.mod data.txt`:                      `pkg/mod.py`,
		`python3 -m pkg`:                                   `pkg/__main__.py`,
		`python3 pkg`:                                      `pkg/__main__.py`,
		`python3 -c 'import measure' data.txt`:             ``,
		`python3 <measure.py`:                              `measure.py`,
		`python3 - <data.txt`:                              `data.txt`, // the program comes from stdin
		`node bench/run.js data.txt`:                       `bench/run.js`,
		`node -r ./bench/setup.js bench/run.js`:            `bench/run.js|bench/setup.js`,
		`node --import=./bench/setup.js bench`:             `bench/index.js|bench/setup.js`,
		`node -e 'x' data.txt`:                             ``,
		`deno run -A bench/run.js`:                         `bench/run.js`,
		`awk -f prog.awk data.txt`:                         `prog.awk`,
		`awk -f prog.awk <data.txt`:                        `prog.awk`,
		`php -f score.sh <data.txt`:                        `score.sh`,
		`node -r ./bench/setup.js <bench/run.js`:           `bench/run.js|bench/setup.js`,
		`python3 -m coverage run measure.py`:               `measure.py`,
		`awk '{print}' data.txt`:                           ``,
		`sed -n 5p data.txt`:                               ``,
		`sh -c './score.sh data.txt'`:                      `score.sh`,
		`bash -euc "sh score.sh"`:                          `score.sh`,
		`eval "sh score.sh"`:                               `score.sh`,
		`. ./score.sh`:                                     `score.sh`,
		`source score.sh; run`:                             `score.sh`,
		`cat score.sh | sh`:                                `score.sh`,
		`cat score.sh | (tee log | sh)`:                    `score.sh`,
		`cat data.txt | sh score.sh`:                       `score.sh`,
		`cat data.txt | python3 -c 'x'`:                    ``,
		`sh <score.sh`:                                     `score.sh`,
		"sh <<'EOF'\nsh score.sh data.txt\nEOF":            `score.sh`,
		`echo METRIC x=$(sh score.sh <data.txt)`:           `score.sh`,
		"echo `sh score.sh`":                               `score.sh`,
		`make -s bench`:                                    `Makefile`,
		`make -C sub bench`:                                `sub/Makefile`,
		`cd sub && make`:                                   `sub/Makefile`,
		`make --file=conf/check.yml`:                       `conf/check.yml`,
		`make -f conf/check.yml`:                           `conf/check.yml`,
		`npm run -s cov`:                                   `package.json`,
		`npm --prefix sub test`:                            `sub/package.json`,
		`npm install`:                                      ``,
		`yarn cov`:                                         `package.json`,
		`npx tsx bench/run.js`:                             `bench/run.js`,
		`bun run bench/run.js`:                             `bench/run.js|package.json`,
		`just bench`:                                       `justfile`,
		`./gradlew test`:                                   `build.gradle|gradlew`,
		`poetry run python measure.py`:                     `measure.py`,
		`timeout -k 5 30s ./score.sh data.txt`:             `score.sh`,
		`time -f %e ./score.sh`:                            `score.sh`,
		`env A=b -u C ./score.sh`:                          `score.sh`,
		`nice -n 5 timeout 30 sh score.sh`:                 `score.sh`,
		`nohup -- ./score.sh`:                              `score.sh`,
		`find . -name x -exec ./score.sh {} \;`:            `score.sh`,
		`ls | xargs -n 1 ./score.sh`:                       `score.sh`,
		`hyperfine --runs 5 './score.sh data.txt'`:         `score.sh`,
		`perf stat -e cycles ./score.sh`:                   `score.sh`,
		`if ./score.sh; then sh check.sh; fi`:              `check.sh|score.sh`,
		`A=1 ./score.sh`:                                   `score.sh`,
		`! ./score.sh`:                                     `score.sh`,
		`S=score.sh; sh $S`:                                `score.sh`,
		`for s in score.sh check.sh; do sh ./$s; done`:     `check.sh|score.sh`,
		`while read x; do ./score.sh "$x"; done <data.txt`: `score.sh`,
		`go run tools/one.go data.txt`:                     `tools/one.go`,
		`go run ./tools/measure data.txt`:                  ``,
		`go -C tools run one.go`:                           `tools/one.go`,
		`go test -cover ./...`:                             ``,
		`wc -c <data.txt`:                                  ``,
		`./missing.sh`:                                     ``,
		`"$HOME/score.sh"`:                                 ``,
		`~/score.sh`:                                       ``,
	} {
		for name, s := range map[string]spec.Spec{
			"verify": {Verify: spec.Verify{Command: command}},
			"check":  {Check: spec.Check{Command: command}},
			"test":   {Test: spec.Test{Command: command}},
		} {
			assert.Equal(t, want, strings.Join(evaluator.Find(s, repository, nil).Files, "|"), "%s %q", name, command)
		}
	}
}

// TestP3_TheShellsGrammarIsRead has commands that a reader of words and operators alone gets wrong.
func TestP3_TheShellsGrammarIsRead(t *testing.T) {
	for command, want := range map[string]string{
		"cat <<EOF\n$(sh score.sh)\nEOF":                        `score.sh`, // a here-document is expanded
		"cat <<'EOF' | sh\nsh score.sh\nEOF":                    `score.sh`,
		"cat <<-EOF | sh\n\tsh score.sh\n\tEOF\nsh check.sh":    `check.sh|score.sh`,
		`cd sub | true; sh check.sh`:                            `check.sh`, // each part of a pipe runs in its own shell
		`echo $(cd sub && ls); sh check.sh`:                     `check.sh`,
		`(DIR=sub; cd $DIR && sh run.sh); sh check.sh`:          `check.sh|sub/run.sh`,
		`{ sh; } <score.sh`:                                     `score.sh`,
		`while true; do sh; done <score.sh`:                     `score.sh`,
		`cat score.sh | tee x | sh`:                             `score.sh`,
		`cat score.sh | while read l; do sh; done`:              `score.sh`,
		`S=score; S+=.sh; sh $S`:                                `score.sh`,
		`D=tests; sh ${Y:-$D/run.sh}`:                           `tests/run.sh`,
		`DIR=tests sh -c 'sh $DIR/run.sh'`:                      `tests/run.sh`,
		`S=check.sh true; S=score.sh sh -c "sh x"; sh $S`:       ``, // an assignment before a command is for that command
		`S=score.sh sh -c './$S'`:                               `score.sh`,
		`env A=b DIR=x sh -c 'exec ./score.sh'`:                 `score.sh`,
		`coproc sh score.sh`:                                    `score.sh`,
		`time -p sh score.sh`:                                   `score.sh`,
		`echo $(( $(sh score.sh) + 1 ))`:                        `score.sh`,
		`echo "${X:+$(sh score.sh)}" "${X:-"$(sh check.sh)"}"`:  `check.sh|score.sh`,
		`A=($(sh score.sh) x); echo ${A[0]}`:                    `score.sh`,
		`[[ $(sh score.sh) == x ]] || sh check.sh`:              `check.sh|score.sh`,
		`case $x in (a|b) sh score.sh ;; *) sh check.sh; esac`:  `check.sh|score.sh`,
		`f() { sh score.sh; }; f && ! { sh check.sh; }`:         `check.sh|score.sh`,
		`for ((i = 0; i < 3; i++)); do sh score.sh; done`:       `score.sh`,
		`sh -c "sh 'with space.sh'" && sh sc"or"e'.sh'`:         `score.sh|with space.sh`,
		`bash -c "$(cat <<'EOF'` + "\n./score.sh\nEOF\n" + `)"`: ``, // only the running shell knows what it runs
		`echo 'a # b' # sh score.sh`:                            ``,
		`make -fconf/check.yml && make -Csub`:                   `conf/check.yml|sub/Makefile`,
		`cat data.txt; sh 'score.sh`:                            `data.txt|score.sh`, // it can't be parsed: everything that it names is sealed
		`if cat run.sh`:                                         `sub/deep/run.sh|sub/run.sh|tests/run.sh`,
		`echo ` + strings.Repeat("x", 40<<10) + ` data.txt`:     `data.txt`, // too long to be parsed
	} {
		assert.Equal(t, want, strings.Join(evaluator.Find(spec.Spec{Verify: spec.Verify{Command: command}}, repository, nil).Files, "|"), "%.60q", command)
	}
}

func TestP3_ASealSaysWhatRunsOrReadsIt(t *testing.T) {
	s := spec.Spec{
		Verify: spec.Verify{Command: "sh score.sh", Holdout: spec.Holdout{Command: "sh run.sh"}}, Guard: spec.Guard{Command: "nice make lint && diff data.txt score.sh"},
		Test: spec.Test{Command: "pytest tests"},
	}
	by := evaluator.Find(s, append(slices.Clone(repository), "run.sh"), nil).By
	assert.Equal(t, "sh in verify.command", by["score.sh"], "the first command")
	assert.Equal(t, "make in guard.command", by["Makefile"])
	assert.Equal(t, "make in guard.command", by["GNUmakefile"])
	assert.Equal(t, "guard.command", by["data.txt"], "it is a word of it")
	assert.Equal(t, "pytest in test.command", by["**/conftest.py"])
	assert.NotContains(t, by, "run.sh", "nobody is told of the holdout")
}

func TestP3_ProtectIsSealedToo(t *testing.T) {
	s := spec.Spec{
		Scope: []string{"**"}, Protect: []string{"tests/", "*.md", "./go.mod"},
		Verify: spec.Verify{Command: "sh score.sh"}, Guard: spec.Guard{Command: "go test ./..."}, Check: spec.Check{Command: "make lint"},
	}
	assert.Equal(t, []string{"Makefile", "go.mod", "score.sh", "tests/a_test.py", "tests/b_test.py", "tests/data/x.json", "tests/run.sh"}, evaluator.Find(s, repository, nil).Files)
	assert.Empty(t, evaluator.Find(spec.Spec{}, repository, nil))
	assert.Equal(t, []string{"tests/\xff\n.sh"}, evaluator.Find(s, []string{"tests/\xff\n.sh", "other\xff"}, nil).Files, "names are bytes")
}

func TestP3_DirectoriesAreNamedWhereTheyAreNotSealed(t *testing.T) {
	s := spec.Spec{Guard: spec.Guard{Command: "pytest tests && go vet ./... && eslint ./src/ x"}, Verify: spec.Verify{Command: "go run ./tools/measure"}}
	assert.Equal(t, []string{"src", "tools/measure"}, evaluator.Unsealed(s, repository, nil))
	s.Protect = []string{"tools/**"}
	assert.Equal(t, []string{"src"}, evaluator.Unsealed(s, repository, nil))
	s.Guard.Command = "cd src && npm test && cd ../sub && sh run.sh"
	assert.Empty(t, evaluator.Unsealed(s, repository, nil), "a folder that a command goes into is no name of what judges")
	s.Guard.Command = "PYTHONPATH=src pytest"
	assert.Empty(t, evaluator.Unsealed(s, repository, nil), "a variable says where the code is")
	s.Guard.Command = "PYTHONPATH=src pytest src"
	assert.Equal(t, []string{"src"}, evaluator.Unsealed(s, repository, nil))
}

func FuzzFind(f *testing.F) {
	for _, command := range []string{`a && b; c | d`, `"$(a 'b')" <<EOF`, "`a`", `for x in a b; do $x; done`, `((`, `${`, `$((`, `<(a`, `2>&1`, "<<a <<b\nx\na\ny\nb\n", `cd a; make -C b -f c`, `sh -c "sh -c 'a b'"`, `eval eval eval a`} {
		f.Add(command)
	}
	f.Fuzz(func(t *testing.T, command string) {
		s := spec.Spec{Guard: spec.Guard{Command: command}, Verify: spec.Verify{Command: command}, Scope: []string{command}, Protect: []string{command}}
		known := strings.Join(repository, "\n")
		for _, file := range append(evaluator.Find(s, repository, nil).Files, evaluator.Unsealed(s, repository, nil)...) {
			if !strings.Contains(known, file) {
				t.Fatalf("%q is no file", file)
			}
		}
	})
}

func TestP3_HostileCommandsAreReadInTime(t *testing.T) {
	for _, piece := range []string{
		"$(", "`", "(", ")", "{a,", "sh -c 'x ' ", "sh -c \"", "eval ", "find -exec ", "timeout 5 ", "cat x|sh|", "<<a ", "<<a\n", "* ", "**/", "\"$(", "${x:-", "a=b;", "for x in ", "$x", "x=$x$x;", "for x in $x $x;", "cd a;",
		"\\", "'", "$((", "<(", "hyperfine 'a b' ", "make -C a ", "[", "a=*;$a",
	} {
		command := "x=a;" + strings.Repeat(piece, 4000/len(piece))
		began := time.Now()
		s := spec.Spec{Guard: spec.Guard{Command: command}, Verify: spec.Verify{Command: command}}
		evaluator.Find(s, repository, nil)
		assert.Less(t, time.Since(began), 20*time.Second, "%q", piece)
	}
}
