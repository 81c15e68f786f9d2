package realrepos_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"pawl/test/harness/world"
)

// improvement is how the agent makes the code shorter: an honest change, one that removes a test, one that breaks the
// code. They are scripts that run on the desk. caught is what refuses the second. measure replaces a metric that takes
// too long.
type improvement struct{ honest, cheat, broken, caught, measure string }

// A removed test is sealed, or the number of tests is smaller.
const (
	sealed = "policy:sealed"
	fewer  = "guard-fail"
)

// delivery is a function that is broken in a file, and what else fails before anybody writes. The agent restores the
// right code.
type delivery struct{ file, right, broken, fails string }

var sources = map[string]source{
	"go-wordwrap": {
		module: "github.com/mitchellh/go-wordwrap@v1.0.1", sum: "h1:TLuKupo69TCn6TQSyGxwI1EblZZEsQ0vMlAFQflz0v0=", needs: []string{"go"},
		improve: &improvement{
			honest: `sed -i '/^\/\//d' wordwrap.go`, cheat: `sed -i '/^func TestWrapString/,$d' wordwrap_test.go`, broken: `sed -i 's/return buf.String()/return s/' wordwrap.go`, caught: sealed,
		},
		deliver: &delivery{
			file: "wordwrap.go", right: "if current+wordBufLen+spaceBufLen > lim && wordBufLen < lim {", broken: "if current > lim {", fails: inDocker("wordwrap"),
		},
	},
	"levenshtein": {
		module: "github.com/agext/levenshtein@v1.2.3", sum: "h1:YB2fHEn0UJagG8T1rrWknE3ZQzWM06O8AMAatNn7lmo=", needs: []string{"go"},
		improve: &improvement{
			honest: `sed -i '/^\/\//d' params.go`, cheat: `sed -i '/^func Test/,$d' levenshtein_test.go`, broken: `sed -i 's/dist = l2 \* insCost/dist = 0/' levenshtein.go`, caught: sealed,
		},
		deliver: &delivery{
			file: "levenshtein.go", right: "dist = l2 * insCost", broken: "dist = 0", fails: inDocker("levenshtein"),
		},
	},
	"go-humanize": {
		module: "github.com/dustin/go-humanize@v1.0.1", sum: "h1:GzkhY7T5VNhEkwH0PVJgjz+fX1rhBrR7pRT3mDkpeCY=", needs: []string{"go"},
		improve: &improvement{
			honest: `sed -i '/^\/\//d' comma.go`, cheat: `sed -i '/^func TestCommas/,$d' comma_test.go`, broken: `sed -i 's/v = v \/ 1000/v = 0/' comma.go`, caught: sealed, measure: "cat *.go | wc -c",
		},
		deliver: &delivery{
			file: "comma.go", right: `parts[j] = "00" + parts[j]`, broken: `parts[j] = "0" + parts[j]`, fails: inDocker("humanize"),
		},
	},
	"json-stable-stringify": {
		npm: "json-stable-stringify@1.0.1", digest: "70e228b750bf40ab69dda437f284992f1ea4c4bf9e788dc7fc586a6956256150", needs: []string{"node", "npm"},
		improve: &improvement{
			honest: `sed -i '/^ *$/d' index.js`, cheat: `rm test/to-json.js`, broken: `sed -i 's/objectKeys(node).sort(cmp && cmp(node))/objectKeys(node)/' index.js`, caught: sealed,
		},
		deliver: &delivery{
			file: "index.js", right: "objectKeys(node).sort(cmp && cmp(node))", broken: "objectKeys(node)", fails: tapeInDocker,
		},
	},
	"deep-equal": {
		npm: "deep-equal@1.0.1", digest: "679226cbc8173a807e1985410f71a06092f25bea729da142d9fda15a8e085ed0", needs: []string{"node", "npm"},
		improve: &improvement{
			honest: `sed -i '/^ *\/\//d' index.js`, cheat: `rm test/cmp.js`, broken: `sed -i 's/return opts.strict ? actual === expected : actual == expected;/return actual == expected;/' index.js`, caught: sealed,
		},
		deliver: &delivery{
			file: "index.js", right: "return opts.strict ? actual === expected : actual == expected;", broken: "return actual == expected;",
			// Its tape loads files one by one and ends when all tests that it has so far are done, sometimes before a second file.
			fails: `printf "\ntest('in docker', function (t) { t.equal(process.env.DOCKER, 'here'); t.end(); });\n" >>test/cmp.js`,
		},
	},
	"gyp": {
		npm: "node-gyp@10.1.0", digest: "b71d575f010a9bce7c5acd97b45c00a918f6ce8e55783a8f6cb32bbfba8e6862", below: "gyp", needs: []string{"npm", "python3"},
		improve: &improvement{
			honest: `sed -i '/^ *#/d' pylib/gyp/easy_xml.py`, cheat: `sed -i '/^class/,$d' pylib/gyp/easy_xml_test.py`, broken: `echo >pylib/gyp/easy_xml.py`, caught: sealed,
		},
		deliver: &delivery{
			file: "pylib/gyp/easy_xml.py", right: `f"</{name}>{new_line}"`, broken: `f"<{name}>{new_line}"`, fails: unittestInDocker + "pylib/gyp/docker_test.py",
		},
	},
	"colorama": {
		debian: "python-colorama_0.4.6.orig.tar.gz", digest: "2d0543c3970840160b32656ab83d43b7f3533208c2c5f3ee5b839940d00af0bd", needs: []string{"python3", "make"},
		offline: "rm requirements.txt requirements-dev.txt", // their packages are on PyPI
		improve: &improvement{
			honest: `sed -i '/^ *#/d' colorama/ansi.py`, cheat: `rm colorama/tests/ansi_test.py`, broken: `sed -i "s/str(code) + 'm'/str(code)/" colorama/ansi.py`, caught: sealed,
		},
		deliver: &delivery{
			file: "colorama/ansi.py", right: "str(code) + 'm'", broken: "str(code)", fails: unittestInDocker + "colorama/tests/docker_test.py",
		},
	},
	"compare-versions": {
		debian: "node-compare-versions_5.0.1.orig.tar.gz", digest: "e5273a953498a933891d6960745bac6b0df293094ff93b14a3cec5233f3c0468", needs: []string{"node", "npm", "npx"}, slow: true,
		improve: &improvement{
			honest: `sed -i '/^ \*/d; /^\/\*\*/d' src/index.ts`, cheat: `rm test/sort.ts`, broken: `sed -i 's/return p1 ? -1 : 1;/return 1;/' src/index.ts`, caught: sealed,
		},
		deliver: &delivery{
			file: "src/index.ts", right: "return p1 ? -1 : 1;", broken: "return p1 ? 1 : 1;",
			fails: `printf "import assert from 'assert';\ndescribe('docker', () => {\n  it('runs', () => assert.ok(process.env.DOCKER));\n});\n" >test/docker.ts`,
		},
	},
	"character-parser": {
		debian: "node-character-parser_3.1.0.orig.tar.gz", digest: "a662d6630526aa7f2fa4a4fdc9ec25834a8466e523df0e3922d2ecaad789172c", needs: []string{"node", "npm", "npx"}, slow: true,
		unfit: "the guard command fails on the unchanged code", // without a lockfile, its compiler of 2017 gets types of today
	},
	"fnv": {
		debian: "rust-fnv_1.0.7.orig.tar.gz", digest: "3f9eec918d3f24069decb9af1554cad7c880e2da24a9afd88aca000531ab82c1", needs: []string{"cargo"},
		improve: &improvement{
			honest: `sed -i '/^$/d' lib.rs`, cheat: `sed -i '/^#\[cfg(test)\]$/,$d' lib.rs`, broken: `sed -i 's/hash ^ (\*byte as u64)/hash/' lib.rs`, caught: fewer,
		},
		deliver: &delivery{
			file: "lib.rs", right: "FnvHasher(0xcbf29ce484222325)", broken: "FnvHasher(0)",
			fails: `mkdir tests; printf '#[test]\nfn in_docker() {\n    std::process::Command::new("no-docker-here").status().unwrap();\n}\n' >tests/docker.rs`,
		},
	},
	"try-tiny": {
		debian: "libtry-tiny-perl_0.31.orig.tar.gz", digest: "3300d31d8a4075b26d8f46ce864a1d913e0e8467ceeba6655d5d2b2e206c11be", needs: []string{"perl", "prove"},
		improve: &improvement{
			honest: `sed -i '/^#/d' lib/Try/Tiny.pm`, cheat: `rm t/basic.t`, broken: `sed -i 's/= wantarray;/= 1;/' lib/Try/Tiny.pm`, caught: sealed,
		},
		deliver: &delivery{
			file: "lib/Try/Tiny.pm", right: "= wantarray;", broken: "= 1;", fails: `printf 'use Test::More tests => 1;\nok($ENV{DOCKER}, "in docker");\n' >t/docker.t`,
		},
	},
	"jsmn": {
		debian: "jsmn_1.1.0.orig.tar.gz", digest: "5f0913a10657fe7ec8d5794ccf00a01000e3e1f2f1e1f143c34a0f7b47edcb38", needs: []string{"make", "cc"},
		improve: &improvement{
			honest: `sed -i '/^$/d' jsmn.h`, cheat: `rm test/tests.c`, broken: `sed -i 's/return JSMN_ERROR_PART/return 0/' jsmn.h`, caught: sealed,
		},
		deliver: &delivery{
			file: "jsmn.h", right: "return JSMN_ERROR_PART;", broken: "return JSMN_ERROR_INVAL;",
			fails: `sed -i 's/^int main(void) {/int test_docker(void) {\n  check(getenv("DOCKER"));\n  return 0;\n}\n\nint main(void) {\n  test(test_docker, "test in docker");/' test/tests.c`,
		},
	},
	"tinyxml2": { // the source of its test program is beside the code, without a name of a test
		debian: "tinyxml2_9.0.0+dfsg.orig.tar.xz", digest: "96510f47a5db537f70dff3e83dd71fd2180cbba4aa76c589a549467e7f34bc9b", needs: []string{"make", "g++", "ar", "ranlib", "xz"}, slow: true,
		improve: &improvement{
			honest: `sed -i '/^ *\/\//d' tinyxml2.cpp`, cheat: `echo 'int main() { return 0; }' >xmltest.cpp`, broken: `sed -i 's/if ( \*p == 0 ) {/if ( *p ) {/' tinyxml2.cpp`, caught: sealed,
		},
		deliver: &delivery{ // its output names no failing test
			file: "tinyxml2.cpp", right: "if ( *p == 0 ) {", broken: "if ( *p != 0 ) {",
		},
	},
	"cjson": {
		debian: "cjson_1.7.15.orig.tar.gz", digest: "5308fd4bd90cef7aa060558514de6a1a4a0819974a26e6ed13973c5f624c24b2", needs: []string{"make", "gcc"},
		improve: &improvement{
			honest: `sed -i '/^ *$/d' cJSON.c`, cheat: `rm test.c`, broken: `sed -i 's/p.length = (size_t)length;//' cJSON.c`, caught: sealed,
		},
		deliver: &delivery{ // make test runs a program that names no tests, so nothing may fail before
			file: "cJSON.c", right: "p.length = (size_t)length;", broken: "p.length = 1;",
		},
	},
	"json-simple": {
		debian: "json-simple_2.3.0.orig.tar.gz", digest: "791795a201ce34230b5434cd6e332601a3c0cd897bb5c35c7ac31405a97e9488", needs: []string{"java", "mvn", debianSurefire}, slow: true,
		// Debian has neither the plugins that publish it nor those that generate a lexer. The generated lexer is there.
		without: debianMaven + `; sed -i -e 70,171d -e 's/<version>2.3.2</<version>3.10.1</' -e 's/<version>4.12</<version>4.x</' pom.xml`,
		improve: &improvement{
			honest: `sed -i '/^$/d' src/main/java/org/json/simple/Jsoner.java`, cheat: `rm src/test/java/org/json/simple/JsonerTest.java`,
			broken: `sed -i 's/final LinkedList<States> stateStack = new LinkedList<>();/final LinkedList<States> stateStack = null;/' src/main/java/org/json/simple/Jsoner.java`, caught: sealed,
		},
		deliver: &delivery{
			file: "src/main/java/org/json/simple/JsonArray.java", right: "destination.add((T)o);", broken: "destination.add(null);", fails: junitInDocker("org.json.simple"),
		},
	},
	"java-string-similarity": {
		debian: "java-string-similarity_2.0.0.orig.tar.xz", digest: "3c10dbefdc09cb3fea52c0e098ff6663b712e66ee5273ec94128783561a811ec", needs: []string{"java", "mvn", "xz", debianSurefire}, slow: true,
		// Debian lacks the plugins that publish it and check its style, and the annotations.
		without: debianMaven + `; sed -i -e 195,199d -e 123,184d -e 55,111d -e 's/<version>3.6.1</<version>3.10.1</' -e 's/<version>4.12</<version>4.x</' pom.xml; grep -rl jcip src | xargs sed -i -e '/jcip/d' -e '/^@Immutable/d'`,
		improve: &improvement{
			honest: `sed -i '/^$/d' src/main/java/info/debatty/java/stringsimilarity/Levenshtein.java`, cheat: `rm src/test/java/info/debatty/java/stringsimilarity/LevenshteinTest.java`,
			broken: `sed -i 's/return v0.s2.length().;/return 0;/' src/main/java/info/debatty/java/stringsimilarity/Levenshtein.java`, caught: sealed,
		},
		deliver: &delivery{
			file: "src/main/java/info/debatty/java/stringsimilarity/Levenshtein.java", right: "cost = 0;", broken: "cost = 2;", fails: junitInDocker("info.debatty.java.stringsimilarity"),
		},
	},
}

// The entries below have tests that fail without Docker.

func inDocker(pkg string) string {
	return `printf 'package ` + pkg + `\n\nimport (\n\t"os/exec"\n\t"testing"\n)\n\nfunc TestInDocker(t *testing.T) {\n\tif err := exec.Command("no-docker-here").Run(); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n' >docker_test.go`
}

func junitInDocker(pkg string) string {
	return `printf 'package ` + pkg + `;\n\npublic class InDockerTest {\n  @org.junit.Test public void runs() throws Exception { new ProcessBuilder("no-docker-here").start(); }\n}\n' >src/test/java/` + strings.ReplaceAll(pkg, ".", "/") + `/InDockerTest.java`
}

const (
	tapeInDocker     = `printf "var test = require('tape');\ntest('in docker', function (t) { t.equal(process.env.DOCKER, 'here'); t.end(); });\n" >test/docker.js`
	unittestInDocker = `printf 'import os\nimport unittest\n\n\nclass Docker(unittest.TestCase):\n    def test_runs(self):\n        os.environ["DOCKER"]\n' >`
)

// debianMaven makes Maven use what Debian has installed, as Debian's maintainers do.
const debianMaven = `mkdir .mvn; printf '%s\n' -o -s /etc/maven/settings-debian.xml -DforkCount=0 >.mvn/maven.config; echo -XX:TieredStopAtLevel=1 -XX:+UseSerialGC >.mvn/jvm.config`

// debianSurefire exists if Debian's Maven can run tests.
const debianSurefire = "/usr/share/maven-repo/org/apache/maven/plugins/maven-surefire-plugin"

// around makes a world around the repository of a source, with the given changes.
func around(t *testing.T, s source, changes ...string) *world.World {
	t.Helper()
	theirs := t.TempDir()
	s.put(t, theirs)
	w := world.New(t, "")
	require.NoError(t, os.RemoveAll(w.Repo))
	require.NoError(t, os.Rename(theirs, w.Repo))
	for _, change := range append([]string{s.without}, changes...) {
		c := exec.Command("sh", "-ec", change)
		c.Dir = w.Repo
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	ignored, _ := os.ReadFile(filepath.Join(w.Repo, ".gitignore"))
	w.Write("repo/.gitignore", string(ignored)+"\nnode_modules/\n__pycache__/\n")
	w.Init()
	w.Git("add", "--force", "--all") // some repositories contain files that they tell git to ignore
	w.Commit("a repository that others wrote")
	// init finds what a machine with only these programs has.
	bin := filepath.Join(w.Dir, "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	for _, tool := range append([]string{"git", "sh", "find", "wc", "cat", "awk"}, s.needs...) {
		if strings.Contains(tool, "/") {
			continue
		}
		path, err := exec.LookPath(tool)
		require.NoError(t, err)
		script := "#!/bin/sh\nexec " + path + ` "$@"` + "\n"
		if tool == "python3" { // without any installed modules
			script = "#!/bin/sh\n[ \"$1\" = -I ] && exit 1\nexec " + path + ` "$@"` + "\n"
		}
		require.NoError(t, os.WriteFile(filepath.Join(bin, tool), []byte(script), 0o755))
	}
	return w
}

// some returns the repositories with a loop; without -tags nightly only a few of them.
func some(with func(source) bool) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if with(sources[name]) && (world.All() || !sources[name].slow) {
			names = append(names, name)
		}
	}
	return world.Sample(1, names)
}

// drafts has `pawl init` write a spec, and makes it the world's spec.
func drafts(w *world.World, args ...string) (found map[string]any) {
	w.T.Helper()
	env := w.Env
	if bin := filepath.Join(w.Dir, "bin"); w.Exists("bin") {
		w.Env = append(slices.Clone(env), "PATH="+bin)
	}
	s := w.Pawl(append([]string{"init", "--json"}, append(args, w.Repo)...)...)
	w.Env = env
	require.Equal(w.T, 0, s.Code, s.Err)
	var d struct{ Found map[string]any }
	require.NoError(w.T, json.Unmarshal([]byte(s.Out), &d))
	text := w.Read("repo/pawl.yaml")
	own := w.Spec
	w.Spec = world.Doc{}
	require.NoError(w.T, yaml.Unmarshal([]byte(text), &w.Spec))
	w.Commit("a spec as init wrote it")
	delete(w.Spec, "agent")
	w.Set(world.Doc{"name": own["name"], "repo": own["repo"], "agent": own["agent"], "sandbox": own["sandbox"]})
	return d.Found
}

// TestWhatInitProposesForRealRepositories compares it with the table in testdata, which people read.
func TestWhatInitProposesForRealRepositories(t *testing.T) {
	const file = "test/realrepos/testdata/proposals.json"
	want := map[string]map[string]any{}
	if table, err := os.ReadFile(file); err == nil {
		require.NoError(t, json.Unmarshal(table, &want))
	} else {
		require.True(t, *world.Update, err)
	}
	var writing sync.Mutex
	for _, name := range world.Sample(5, slices.Sorted(maps.Keys(sources))) {
		t.Run(name, func(t *testing.T) {
			found := drafts(around(t, sources[name]))
			if *world.Update {
				writing.Lock()
				defer writing.Unlock()
				want[name] = found
				table, err := json.MarshalIndent(want, "", "  ")
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(file, append(table, '\n'), 0o644))
				return
			}
			require.Equal(t, want[name], found)
		})
	}
}

// TestRealRepositoriesAreImproved: a shorter version is kept. A removed test is not, however much it saves, and neither
// is code that the repository's own tests refuse.
func TestRealRepositoriesAreImproved(t *testing.T) {
	for _, name := range some(func(s source) bool { return s.improve != nil }) {
		t.Run(name, func(t *testing.T) {
			s := sources[name]
			w := around(t, s, s.offline)
			w.Script("case $PAWL_ITERATION in\n1) " + s.improve.honest + "; echo 'shorten the code';;\n2) " + s.improve.cheat + "; echo 'take a test away';;\n*) " + s.improve.broken + "; echo 'drop what nobody needs';;\nesac\n")
			drafts(w)
			w.Set(world.Doc{"limits": world.Doc{"iterations": 3, "activeTime": "1h", "toolCalls": 100, "reworks": 0}, "approvals": world.Doc{"diff": "auto"}})
			if s.improve.measure != "" {
				w.Set(world.Doc{"verify": world.Doc{"command": s.improve.measure, "direction": "lower"}})
			}
			ready := w.Pawl("validate", w.SpecFile())
			require.Equal(t, 0, ready.Code, ready.Err)
			w.Set(world.Doc{"validate": world.Doc{"canary": false}}) // validate has shown the canary to the guard
			setup, _ := w.Spec["setup"].(world.Doc)
			if setup != nil {
				w.Set(world.Doc{"setup": world.Doc{"command": fmt.Sprint(setup["command"], " && echo once >>", w.Dir, "/setups")}})
			}
			w.Run(0)
			if setup != nil {
				times := 2
				if events, _ := w.Events(); slices.Contains(world.Types(events), "judged_from_scratch") {
					times++
				}
				require.Equal(t, strings.Repeat("once\n", times), w.Read("setups"), "in desk and judge, whatever was tried in them, and in the judge from scratch")
			}
			rows := w.Results(w.Loop)
			require.Len(t, rows, 4)
			require.Equal(t, "yes", rows[1].Kept(), "%v", rows)
			for _, row := range rows[2:] {
				require.Equal(t, "no", row.Kept(), "%v", rows)
			}
			require.Contains(t, rows[2].Description(), s.improve.caught)
			require.Regexp(t, "^(guard-fail|no-improvement|check)", rows[3].Description())
		})
	}
}

// TestRealRepositoriesAreMended: earlier failures are known and do not count, and what was broken is fixed.
func TestRealRepositoriesAreMended(t *testing.T) {
	for _, name := range some(func(s source) bool { return s.deliver != nil }) {
		t.Run(name, func(t *testing.T) {
			s := sources[name]
			w := around(t, s, s.offline, s.deliver.fails)
			right := w.Read("repo/" + s.deliver.file)
			require.Contains(t, right, s.deliver.right)
			w.Write("right", right)
			w.Write("repo/"+s.deliver.file, strings.ReplaceAll(right, s.deliver.right, s.deliver.broken))
			w.Commit("a bug")
			w.Script(`[ "$PAWL_ROLE" = planner ] && { echo "Mend the function."; exit 0; }` + "\ncp \"$WORLD/right\" " + s.deliver.file + "\necho 'mend what was broken'")
			drafts(w, "--kind", "deliver", "--goal", "Mend the function that the tests say is broken")
			w.Set(world.Doc{"approvals": world.Doc{"diff": "auto", "plan": "auto"}})
			w.Run(0)
			st := w.Show()
			require.Equal(t, "completed", st.Status, "%+v", st)
			require.Equal(t, []string{s.deliver.file}, st.ChangedFiles)
			require.Equal(t, strings.TrimSuffix(right, "\n"), w.Kept(s.deliver.file), "as its authors wrote it")
			known := "what fails there does not count: tests: .*([2-9]|[0-9]{2,}) failed" // the broken function, and what needs Docker
			if s.deliver.fails == "" {
				known = "no failing test is named, so every failure counts"
			}
			require.Regexp(t, `the tests fail on the unchanged code( \(.*\))?; `+known, w.Pawl("log", w.Loop).Out)
		})
	}
}

// TestARealRepositoryThatIsNotFitIsRefused: if its own tests do not run, no loop begins.
func TestARealRepositoryThatIsNotFitIsRefused(t *testing.T) {
	for name, s := range sources {
		require.True(t, s.unfit != "" || s.improve != nil && s.deliver != nil, "%s has both loops, or a reason", name)
		if s.unfit == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			world.Slow(t, "npm installs its packages")
			w := around(t, s)
			drafts(w)
			refused := w.Pawl("validate", w.SpecFile())
			require.Equal(t, 2, refused.Code, refused.Err)
			require.Contains(t, refused.Err, s.unfit)
		})
	}
}
