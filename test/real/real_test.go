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
// away, something that breaks the code. They are scripts on the desk.
type improvement struct{ honest, cheat, broken string }

// delivery is a function that was broken, what else fails before anybody writes, and how the agent mends the
// function.
type delivery struct{ file, breaks, fails, mends string }

var sources = map[string]source{
	"go-wordwrap": {
		module: "github.com/mitchellh/go-wordwrap@v1.0.1", sum: "h1:TLuKupo69TCn6TQSyGxwI1EblZZEsQ0vMlAFQflz0v0=", needs: []string{"go"},
		improve: &improvement{
			honest: `sed -i '/^\/\//d' wordwrap.go`, cheat: `sed -i '/^func TestWrapString/,$d' wordwrap_test.go`, broken: `sed -i 's/return buf.String()/return s/' wordwrap.go`,
		},
	},
	"levenshtein": {
		module: "github.com/agext/levenshtein@v1.2.3", sum: "h1:YB2fHEn0UJagG8T1rrWknE3ZQzWM06O8AMAatNn7lmo=", needs: []string{"go"},
		deliver: &delivery{
			file: "levenshtein.go", breaks: `sed -i 's/dist = l2 \* insCost/dist = 0/' levenshtein.go`,
			fails: `printf 'package levenshtein\n\nimport (\n\t"os/exec"\n\t"testing"\n)\n\nfunc TestInDocker(t *testing.T) {\n\tif err := exec.Command("no-docker-here").Run(); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n' >docker_test.go`,
			mends: `sed -i 's/dist = 0$/dist = l2 * insCost/' levenshtein.go`,
		},
	},
	"go-humanize": {module: "github.com/dustin/go-humanize@v1.0.1", sum: "h1:GzkhY7T5VNhEkwH0PVJgjz+fX1rhBrR7pRT3mDkpeCY=", needs: []string{"go"}},
	"json-stable-stringify": {
		npm: "json-stable-stringify@1.0.1", digest: "70e228b750bf40ab69dda437f284992f1ea4c4bf9e788dc7fc586a6956256150", needs: []string{"node", "npm"},
		improve: &improvement{
			honest: `sed -i '/^ *$/d' index.js`, cheat: `git rm -q test/to-json.js || rm test/to-json.js`, broken: `sed -i 's/objectKeys(node).sort(cmp && cmp(node))/objectKeys(node)/' index.js`,
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
			honest: `sed -i '/^ *#/d' pylib/gyp/easy_xml.py`, cheat: `sed -i '/^class/,$d' pylib/gyp/easy_xml_test.py`, broken: `echo >pylib/gyp/easy_xml.py`,
		},
	},
}

// real is a world around the repository of a source, with the given changes on top.
func real(t *testing.T, s source, changes ...string) *world.World {
	t.Helper()
	w := world.New(t, "")
	require.NoError(t, os.RemoveAll(w.Repo))
	require.NoError(t, os.MkdirAll(w.Repo, 0o755))
	s.put(t, w.Repo)
	for _, change := range changes {
		c := exec.Command("sh", "-ec", change)
		c.Dir = w.Repo
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	w.Write("repo/.gitignore", "node_modules/\n__pycache__/\n")
	w.Git("init", "--quiet", "--initial-branch=main", w.Repo)
	for key, value := range map[string]string{"user.name": "Ann", "user.email": "ann@example.com", "gc.auto": "0"} {
		w.Git("config", key, value)
	}
	w.Commit("a repository that others wrote")
	// What init finds is what a machine has that has just these.
	bin := filepath.Join(w.Dir, "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	for _, tool := range append([]string{"git", "sh", "find", "wc", "cat", "awk"}, s.needs...) {
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
			w := real(t, s)
			w.Script("case $PAWL_ITERATION in\n1) " + s.improve.honest + "; echo 'shorten the code';;\n2) " + s.improve.cheat + "; echo 'take a test away';;\n*) " + s.improve.broken + "; echo 'drop what nobody needs';;\nesac\n")
			drafts(w)
			w.Set(world.Doc{"limits": world.Doc{"iterations": 3, "activeTime": "1h", "toolCalls": 100, "reworks": 0}, "approvals": world.Doc{"diff": "auto"}})
			ready := w.Pawl("validate", w.SpecFile())
			require.Equal(t, 0, ready.Code, ready.Err)
			w.Run(0)
			rows := w.Results(w.Loop)
			require.Len(t, rows, 4)
			require.Equal(t, "yes", rows[1].Kept(), "%v", rows)
			for _, row := range rows[2:] {
				require.Equal(t, "no", row.Kept(), "%v", rows)
			}
			require.Contains(t, rows[2].Description(), "policy:sealed")
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
