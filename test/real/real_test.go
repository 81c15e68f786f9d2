package real_test

import (
	"encoding/json"
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

	"pawl/test/world"
)

// improvement is what the agent does to make the code shorter: something honest, something that takes a test
// away, something that breaks the code. They are scripts on the desk. caught is what refuses the second.
// measure is a metric in place of one that takes too long.
type improvement struct{ honest, cheat, broken, caught, measure string }

// A test that is taken away is sealed, or there is one test fewer.
const (
	sealed = "policy:sealed"
	fewer  = "guard-fail"
)

// delivery is a function that was broken, what else fails before anybody writes, and how the agent mends the
// function.
type delivery struct{ file, breaks, fails, mends string }

var sources = map[string]source{
	"go-wordwrap": {
		module: "github.com/mitchellh/go-wordwrap@v1.0.1", sum: "h1:TLuKupo69TCn6TQSyGxwI1EblZZEsQ0vMlAFQflz0v0=", needs: []string{"go"},
		improve: &improvement{
			honest: `sed -i '/^\/\//d' wordwrap.go`, cheat: `sed -i '/^func TestWrapString/,$d' wordwrap_test.go`, broken: `sed -i 's/return buf.String()/return s/' wordwrap.go`, caught: sealed,
		},
	},
	"levenshtein": {
		module: "github.com/agext/levenshtein@v1.2.3", sum: "h1:YB2fHEn0UJagG8T1rrWknE3ZQzWM06O8AMAatNn7lmo=", needs: []string{"go"},
		improve: &improvement{
			honest: `sed -i '/^\/\//d' params.go`, cheat: `sed -i '/^func Test/,$d' levenshtein_test.go`, broken: `sed -i 's/dist = l2 \* insCost/dist = 0/' levenshtein.go`, caught: sealed,
		},
		deliver: &delivery{
			file: "levenshtein.go", breaks: `sed -i 's/dist = l2 \* insCost/dist = 0/' levenshtein.go`,
			fails: inDocker("levenshtein"),
			mends: `sed -i 's/dist = 0$/dist = l2 * insCost/' levenshtein.go`,
		},
	},
	"go-humanize": {
		module: "github.com/dustin/go-humanize@v1.0.1", sum: "h1:GzkhY7T5VNhEkwH0PVJgjz+fX1rhBrR7pRT3mDkpeCY=", needs: []string{"go"},
		improve: &improvement{
			honest: `sed -i '/^\/\//d' comma.go`, cheat: `sed -i '/^func TestCommas/,$d' comma_test.go`, broken: `sed -i 's/v = v \/ 1000/v = 0/' comma.go`, caught: sealed, measure: "cat *.go | wc -c",
		},
	},
	"json-stable-stringify": {
		npm: "json-stable-stringify@1.0.1", digest: "70e228b750bf40ab69dda437f284992f1ea4c4bf9e788dc7fc586a6956256150", needs: []string{"node", "npm"},
		improve: &improvement{
			honest: `sed -i '/^ *$/d' index.js`, cheat: `git rm -q test/to-json.js || rm test/to-json.js`, broken: `sed -i 's/objectKeys(node).sort(cmp && cmp(node))/objectKeys(node)/' index.js`, caught: sealed,
		},
	},
	"deep-equal": {
		npm: "deep-equal@1.0.1", digest: "679226cbc8173a807e1985410f71a06092f25bea729da142d9fda15a8e085ed0", needs: []string{"node", "npm"},
		deliver: &delivery{
			file: "index.js", breaks: `sed -i 's/return opts.strict ? actual === expected : actual == expected;/return actual == expected;/' index.js`,
			fails: `printf "var test = require('tape');\ntest('in docker', function (t) { t.equal(process.env.DOCKER, 'here'); t.end(); });\n" >test/docker.js`,
			mends: `sed -i 's/return actual == expected;/return opts.strict ? actual === expected : actual == expected;/' index.js`,
		},
	},
	"gyp": {
		npm: "node-gyp@10.1.0", digest: "b71d575f010a9bce7c5acd97b45c00a918f6ce8e55783a8f6cb32bbfba8e6862", below: "gyp", needs: []string{"npm", "python3"},
		improve: &improvement{
			honest: `sed -i '/^ *#/d' pylib/gyp/easy_xml.py`, cheat: `sed -i '/^class/,$d' pylib/gyp/easy_xml_test.py`, broken: `echo >pylib/gyp/easy_xml.py`, caught: sealed,
		},
	},
	"colorama": {
		debian: "python-colorama_0.4.6.orig.tar.gz", digest: "2d0543c3970840160b32656ab83d43b7f3533208c2c5f3ee5b839940d00af0bd", needs: []string{"python3", "make"},
	},
	"compare-versions": {
		debian: "node-compare-versions_5.0.1.orig.tar.gz", digest: "e5273a953498a933891d6960745bac6b0df293094ff93b14a3cec5233f3c0468", needs: []string{"node", "npm", "npx"}, slow: true,
		deliver: &delivery{
			file: "src/index.ts", breaks: `sed -i 's/return p1 ? -1 : 1;/return p1 ? 1 : 1;/' src/index.ts`,
			fails: `printf "import assert from 'assert';\ndescribe('docker', () => {\n  it('runs', () => assert.ok(process.env.DOCKER));\n});\n" >test/docker.ts`,
			mends: `sed -i 's/return p1 ? 1 : 1;/return p1 ? -1 : 1;/' src/index.ts`,
		},
	},
	"character-parser": {
		debian: "node-character-parser_3.1.0.orig.tar.gz", digest: "a662d6630526aa7f2fa4a4fdc9ec25834a8466e523df0e3922d2ecaad789172c", needs: []string{"node", "npm", "npx"},
	},
	"fnv": {
		debian: "rust-fnv_1.0.7.orig.tar.gz", digest: "3f9eec918d3f24069decb9af1554cad7c880e2da24a9afd88aca000531ab82c1", needs: []string{"cargo"},
		improve: &improvement{
			honest: `sed -i '/^$/d' lib.rs`, cheat: `sed -i '/^#\[cfg(test)\]$/,$d' lib.rs`, broken: `sed -i 's/hash ^ (\*byte as u64)/hash/' lib.rs`, caught: fewer,
		},
		deliver: &delivery{
			file: "lib.rs", breaks: `sed -i 's/FnvHasher(0xcbf29ce484222325)/FnvHasher(0)/' lib.rs`,
			fails: `mkdir tests; printf '#[test]\nfn in_docker() {\n    std::process::Command::new("no-docker-here").status().unwrap();\n}\n' >tests/docker.rs`,
			mends: `sed -i 's/FnvHasher(0)/FnvHasher(0xcbf29ce484222325)/' lib.rs`,
		},
	},
	"jsmn": {
		debian: "jsmn_1.1.0.orig.tar.gz", digest: "5f0913a10657fe7ec8d5794ccf00a01000e3e1f2f1e1f143c34a0f7b47edcb38", needs: []string{"make", "cc"},
		improve: &improvement{
			honest: `sed -i '/^$/d' jsmn.h`, cheat: `git rm -q test/tests.c || rm test/tests.c`, broken: `sed -i 's/return JSMN_ERROR_PART/return 0/' jsmn.h`, caught: sealed,
		},
	},
	"cjson": {
		debian: "cjson_1.7.15.orig.tar.gz", digest: "5308fd4bd90cef7aa060558514de6a1a4a0819974a26e6ed13973c5f624c24b2", needs: []string{"make", "gcc"},
		improve: &improvement{
			honest: `sed -i '/^ *$/d' cJSON.c`, cheat: `git rm -q test.c || rm test.c`, broken: `sed -i 's/p.length = (size_t)length;//' cJSON.c`, caught: sealed,
		},
	},
	"json-simple": {
		debian: "json-simple_2.3.0.orig.tar.gz", digest: "791795a201ce34230b5434cd6e332601a3c0cd897bb5c35c7ac31405a97e9488", needs: []string{"java", "mvn", debianSurefire}, slow: true,
		// Debian has neither the plugins that publish it nor those that generate a lexer, which is there.
		without: debianMaven + `; sed -i -e 70,171d -e 's/<version>2.3.2</<version>3.10.1</' -e 's/<version>4.12</<version>4.x</' pom.xml`,
		improve: &improvement{
			honest: `sed -i '/^$/d' src/main/java/org/json/simple/Jsoner.java`, cheat: `git rm -q src/test/java/org/json/simple/JsonerTest.java || rm src/test/java/org/json/simple/JsonerTest.java`,
			broken: `sed -i 's/final LinkedList<States> stateStack = new LinkedList<>();/final LinkedList<States> stateStack = null;/' src/main/java/org/json/simple/Jsoner.java`, caught: sealed,
		},
	},
	"java-string-similarity": {
		debian: "java-string-similarity_2.0.0.orig.tar.xz", digest: "3c10dbefdc09cb3fea52c0e098ff6663b712e66ee5273ec94128783561a811ec", needs: []string{"java", "mvn", "xz", debianSurefire},
	},
}

// inDocker writes a test of a Go package that fails where there is no Docker.
func inDocker(pkg string) string {
	return `printf 'package ` + pkg + `\n\nimport (\n\t"os/exec"\n\t"testing"\n)\n\nfunc TestInDocker(t *testing.T) {\n\tif err := exec.Command("no-docker-here").Run(); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n' >docker_test.go`
}

// debianMaven has Maven take what Debian has installed, as people of Debian do.
const debianMaven = `mkdir .mvn; printf '%s\n' -o -s /etc/maven/settings-debian.xml >.mvn/maven.config; echo -XX:TieredStopAtLevel=1 -XX:+UseSerialGC >.mvn/jvm.config`

// debianSurefire is there where Debian's Maven can run tests.
const debianSurefire = "/usr/share/maven-repo/org/apache/maven/plugins/maven-surefire-plugin"

// real is a world around the repository of a source, with the given changes on top.
func real(t *testing.T, s source, changes ...string) *world.World {
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
	w.Git("init", "--quiet", "--initial-branch=main", w.Repo)
	for key, value := range map[string]string{"user.name": "Ann", "user.email": "ann@example.com", "gc.auto": "0"} {
		w.Git("config", key, value)
	}
	w.Git("add", "--force", "--all") // theirs have files that they tell git to ignore
	w.Commit("a repository that others wrote")
	// What init finds is what a machine has that has just these.
	bin := filepath.Join(w.Dir, "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	for _, tool := range append([]string{"git", "sh", "find", "wc", "cat", "awk"}, s.needs...) {
		if strings.Contains(tool, "/") {
			continue
		}
		path, err := exec.LookPath(tool)
		require.NoError(t, err)
		script := "#!/bin/sh\nexec " + path + ` "$@"` + "\n"
		if tool == "python3" { // without any module of others
			script = "#!/bin/sh\n[ \"$1\" = -I ] && exit 1\nexec " + path + ` "$@"` + "\n"
		}
		require.NoError(t, os.WriteFile(filepath.Join(bin, tool), []byte(script), 0o755))
	}
	return w
}

// drafts has `pawl init` write a spec, and takes it for the world's.
func drafts(w *world.World, args ...string) (found map[string]any) {
	w.T.Helper()
	env := w.Env
	w.Env = append(slices.Clone(env), "PATH="+filepath.Join(w.Dir, "bin"))
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
	const file = "test/real/testdata/proposals.json"
	want := map[string]map[string]any{}
	if table, err := os.ReadFile(file); err == nil {
		require.NoError(t, json.Unmarshal(table, &want))
	} else {
		require.True(t, *world.Update, err)
	}
	var writing sync.Mutex
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		t.Run(name, func(t *testing.T) {
			found := drafts(real(t, sources[name]))
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

// TestRealRepositoriesAreImproved: what is shorter is kept, a test that was taken away is not, whatever it saves,
// and neither is code that the repository's own tests refuse.
func TestRealRepositoriesAreImproved(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		s := sources[name]
		if s.improve == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if s.slow {
				world.Slow(t, "other languages do the same")
			}
			w := real(t, s)
			w.Script("case $PAWL_ITERATION in\n1) " + s.improve.honest + "; echo 'shorten the code';;\n2) " + s.improve.cheat + "; echo 'take a test away';;\n*) " + s.improve.broken + "; echo 'drop what nobody needs';;\nesac\n")
			drafts(w)
			w.Set(world.Doc{"limits": world.Doc{"iterations": 3, "activeTime": "1h", "toolCalls": 100, "reworks": 0}, "approvals": world.Doc{"diff": "auto"}})
			if s.improve.measure != "" {
				w.Set(world.Doc{"verify": world.Doc{"command": s.improve.measure, "direction": "lower"}})
			}
			ready := w.Pawl("validate", w.SpecFile())
			require.Equal(t, 0, ready.Code, ready.Err)
			w.Set(world.Doc{"validate": world.Doc{"canary": false}}) // validate has shown it to the guard
			w.Run(0)
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

// TestRealRepositoriesAreMended: what failed before is known and does not count, what was broken is mended.
func TestRealRepositoriesAreMended(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		s := sources[name]
		if s.deliver == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if s.slow {
				world.Slow(t, "other languages do the same")
			}
			w := real(t, s, s.deliver.breaks, s.deliver.fails)
			w.Script(`[ "$PAWL_ROLE" = planner ] && { echo "Mend the function."; exit 0; }` + "\n" + s.deliver.mends + "\necho 'mend what was broken'")
			drafts(w, "--kind", "deliver", "--goal", "Mend the function that the tests say is broken")
			w.Set(world.Doc{"approvals": world.Doc{"diff": "auto", "plan": "auto"}})
			ready := w.Pawl("validate", w.SpecFile())
			require.Equal(t, 0, ready.Code, ready.Err)
			require.Regexp(t, "tests? fails? on the unchanged code: ([2-9]|[0-9]{2,}) failed", ready.Err, "what is broken, and what needs Docker")
			w.Run(0)
			st := w.Show()
			require.Equal(t, "completed", st.Status, "%+v", st)
			require.Equal(t, []string{s.deliver.file}, st.ChangedFiles)
			original := t.TempDir()
			s.put(t, original)
			text, err := os.ReadFile(filepath.Join(original, s.deliver.file))
			require.NoError(t, err)
			require.Equal(t, strings.TrimSuffix(string(text), "\n"), w.Kept(s.deliver.file), "as its authors wrote it")
		})
	}
}
