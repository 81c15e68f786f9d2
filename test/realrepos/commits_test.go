package realrepos_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"pawl/test/harness/world"
)

// history is an entry of the file that $PAWL_REPLAY names. The package's comment says what the keys mean.
type history struct {
	Repo    string   `yaml:"repo"`
	Commits string   `yaml:"commits"`
	Measure string   `yaml:"measure"`
	Higher  bool     `yaml:"higher"`
	Guard   string   `yaml:"guard"`
	Tests   string   `yaml:"tests"`
	Protect []string `yaml:"protect"`
	Before  string   `yaml:"before"`
	Setup   string   `yaml:"setup"`
	Fixes   []string `yaml:"fixes"`
	Code    string   `yaml:"code"`

	Improve world.Doc `yaml:"improve"`
	Deliver world.Doc `yaml:"deliver"`
}

// histories returns the entries of the file that $PAWL_REPLAY names.
func histories(t *testing.T) (all []history) {
	t.Helper()
	file := os.Getenv("PAWL_REPLAY")
	if file == "" {
		t.Skip("PAWL_REPLAY names no file with repositories: see test/realrepos/doc.go")
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	require.NoError(t, d.Decode(&all))
	for _, h := range all {
		require.True(t, filepath.IsAbs(h.Repo), "repo has to be an absolute path: %q", h.Repo)
	}
	return all
}

// name returns the name of the repository's folder, or of the one around it if the folder is called repo or .git.
func (h history) name() string {
	name := filepath.Base(h.Repo)
	if name == "repo" || name == ".git" {
		name = filepath.Base(filepath.Dir(h.Repo))
	}
	return strings.TrimSuffix(name, ".git")
}

// clone clones the repository into a folder of the world.
func (h history) clone(w *world.World) string {
	dir := filepath.Join(w.Dir, "theirs")
	w.Git("clone", "--quiet", "--no-hardlinks", h.Repo, dir)
	return dir
}

// git runs git in a folder and returns what it prints.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "core.hooksPath=/dev/null"}, args...)...)
	out, err := c.Output()
	require.NoError(t, err, "git %s", strings.Join(args, " "))
	return strings.TrimSuffix(string(out), "\n")
}

// deed is a folder with a change to a tree: which paths to remove, which files to put there, and a description. The same
// script makes the change for the agent and for the oracle. The files get new times, because make and cargo go by them.
type deed string

const does = `if [ -s "$D/remove" ]; then xargs -0 rm -rf <"$D/remove"; fi; find "$D/put" -exec touch -h {} +; cp -Rp "$D/put/." .`

// writes writes the change between two commits to those files that which names.
func (d deed) writes(t testing.TB, theirs, from, to, says string, which func(name string) bool) deed {
	t.Helper()
	put := filepath.Join(string(d), "put")
	require.NoError(t, os.MkdirAll(put, 0o755))
	git(t, theirs, "checkout", "--quiet", "--force", "--detach", to)
	var remove strings.Builder
	for _, name := range differing(t, theirs, which, from, to) {
		remove.WriteString("./" + name + "\x00")
		if _, err := os.Lstat(filepath.Join(theirs, name)); err == nil {
			out, err := exec.Command("sh", "-ec", `mkdir -p "$(dirname "$2")"; cp -RPp "$1" "$2"`, "-", filepath.Join(theirs, name), filepath.Join(put, name)).CombinedOutput()
			require.NoError(t, err, string(out))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(string(d), "remove"), []byte(remove.String()), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(string(d), "says"), []byte(says+"\n"), 0o644))
	return d
}

// does makes the change in a tree.
func (d deed) does(t testing.TB, dir string) {
	t.Helper()
	c := exec.Command("sh", "-ec", does)
	c.Dir, c.Env = dir, append(os.Environ(), "D="+string(d))
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
}

// differing returns the files of a diff that which names.
func differing(t testing.TB, dir string, which func(name string) bool, args ...string) []string {
	t.Helper()
	names := strings.Split(git(t, dir, append([]string{"diff", "--no-renames", "--name-only", "-z"}, args...)...), "\x00")
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || !which(name) })
}

func every(string) bool { return true }

// begins makes the world's repository the history at a commit, with further changes.
func (h history) begins(w *world.World, theirs, at string, changes ...deed) {
	w.T.Helper()
	git(w.T, theirs, "checkout", "--quiet", "--force", "--detach", at)
	w.Shell("rm -rf '" + w.Repo + "' && mkdir '" + w.Repo + "' && cd '" + theirs + "' && tar -cf - --exclude=./.git . | tar -xf - -C '" + w.Repo + "'")
	for _, d := range changes {
		d.does(w.T, w.Repo)
	}
	if h.Before != "" {
		w.Shell("cd '" + w.Repo + "' && {\n" + h.Before + "\n}")
	}
	w.Init()
	w.Git("add", "--force", "--all")
	w.Commit("a history that others wrote")
}

// oracle judges changes in its own clone of the world's repository. It knows nothing of pawl.
type oracle struct {
	w                     *world.World
	dir, base             string
	check, measure, guard string
	keep                  []string                           // globs of what builds leave for the next time
	allowed               func(name string, isNew bool) bool // new are files that the base does not have
	higher                bool
	best                  int
}

// opens returns an oracle that has run the setup of the world's spec.
func opens(w *world.World) *oracle {
	o := &oracle{w: w, dir: filepath.Join(w.Dir, "oracle"), keep: list(w.Spec, "judge", "keep")}
	w.Git("clone", "--quiet", "--no-hardlinks", w.Repo, o.dir)
	o.base = git(w.T, o.dir, "rev-parse", "HEAD")
	require.NoError(w.T, os.MkdirAll(filepath.Join(w.Dir, "user"), 0o755)) // its $HOME
	said, passes := o.runs(field(w.Spec, "setup", "command"))
	require.True(w.T, passes, "setup fails for the oracle: %s", said)
	return o
}

// says returns "yes" if the change stays, else why it does not.
func (o *oracle) says(d deed) string {
	d.does(o.w.T, o.dir)
	why := o.judges()
	if why == "yes" {
		git(o.w.T, o.dir, "commit", "--quiet", "--allow-empty", "--message", "kept")
	}
	o.cleans()
	return why
}

func (o *oracle) judges() string {
	if o.touched() != "" {
		return "policy"
	}
	n := o.number() // before a check leaves files
	if _, passes := o.runs(o.check); !passes {
		return "check"
	}
	if n == o.best || (n > o.best) != o.higher {
		return "metric"
	}
	if _, passes := o.runs(o.guard); !passes {
		return "guard"
	}
	o.best = n
	return "yes"
}

// touched returns a file that may not change and that has changed, "" if there is none.
func (o *oracle) touched() string {
	git(o.w.T, o.dir, "add", "--all")
	for _, name := range differing(o.w.T, o.dir, every, "--cached") {
		if !o.allowed(name, git(o.w.T, o.dir, "ls-tree", "--name-only", o.base, "--", name) == "") {
			return name
		}
	}
	return ""
}

func (o *oracle) runs(command string) (said string, passes bool) {
	c := exec.Command("sh", "-c", command)
	c.Dir, c.Env = o.dir, o.w.Environ()
	out, err := c.CombinedOutput()
	return string(out), err == nil
}

func (o *oracle) number() int {
	out, _ := o.runs("{ " + o.measure + "\n} 2>/dev/null")
	words := strings.Fields(out)
	require.NotEmpty(o.w.T, words, "the measure prints nothing")
	n, err := strconv.Atoi(words[len(words)-1])
	require.NoError(o.w.T, err)
	return n
}

// cleans removes what was not kept, and what commands have left.
func (o *oracle) cleans() {
	git(o.w.T, o.dir, "reset", "--quiet", "--hard")
	clean := []string{"clean", "--quiet", "-ffdx"}
	for _, glob := range o.keep {
		clean = append(clean, "--exclude=/"+strings.TrimSuffix(glob, "/**"))
	}
	git(o.w.T, o.dir, clean...)
}

// verdictOf returns the verdict in a row of pawl's results, in the oracle's words. A change that is not better has no reason.
func verdictOf(row world.Row) string {
	why, _, _ := strings.Cut(row.Description(), ": ")
	switch {
	case row.Kept() == "yes":
		return "yes"
	case strings.HasPrefix(why, "policy:"):
		return "policy"
	case why == "error:syntax":
		return "check"
	case why == "guard-fail":
		return "guard"
	case strings.HasPrefix(why, "error:"):
		return why
	}
	return "metric"
}

// TestRealCommitsAreJudgedAsAnOracleDoes has the agent make the changes of real commits, one after the other.
func TestRealCommitsAreJudgedAsAnOracleDoes(t *testing.T) {
	for _, h := range histories(t) {
		if h.Commits == "" {
			continue
		}
		for _, setting := range []string{"exact", "init"} {
			t.Run(h.name()+"/"+setting, func(t *testing.T) { h.replay(t, setting) })
		}
	}
}

func (h history) replay(t *testing.T, setting string) {
	w := world.New(t, `D="$WORLD/deeds/$PAWL_ITERATION"; `+does+`; cat "$D/says"`)
	theirs := h.clone(w)
	commits := strings.Fields(git(t, theirs, append([]string{"rev-list", "--first-parent", "--reverse"}, strings.Fields(h.Commits)...)...))
	require.NotEmpty(t, commits, "%s names no commits", h.Commits)
	var deeds []deed
	for i, c := range commits {
		d := deed(filepath.Join(w.Dir, "deeds", strconv.Itoa(i+1)))
		deeds = append(deeds, d.writes(t, theirs, c+"^", c, git(t, theirs, "log", "-1", "--format=%s", c), every))
	}
	h.begins(w, theirs, commits[0]+"^")
	direction := "lower"
	if h.Higher {
		direction = "higher"
	}
	if setting == "exact" {
		w.Set(world.Doc{
			"scope": []string{"**"}, "protect": h.Protect, "newFiles": "allow", "setup": world.Doc{"command": h.Setup}, "judge": world.Doc{"keep": []string{"node_modules/**", "target/**"}},
			"verify": world.Doc{"command": h.Measure}, "guard": world.Doc{"command": h.Guard, "fewerTests": true, "timeout": "10m"},
		})
	} else {
		drafts(w)
		w.Set(h.Improve).Set(world.Doc{"approvals": world.Doc{"diff": "auto"}})
	}
	w.Set(world.Doc{
		"verify": world.Doc{"direction": direction, "timeout": "2m"},
		"limits": world.Doc{"iterations": len(commits), "discards": len(commits) + 1, "reworks": 0, "onSealed": "rework", "atomic": "note", "activeTime": "10h", "toolCalls": 1000},
	})
	o := opens(w)
	o.check, o.measure, o.guard = field(w.Spec, "check", "command"), field(w.Spec, "verify", "command"), field(w.Spec, "guard", "command")
	o.higher, o.allowed = h.Higher, h.allows(w.Spec)
	o.best = o.number()
	w.Run(0)
	rows := w.Results(w.Loop)
	require.Len(t, rows, len(commits)+1)
	require.Equal(t, strconv.Itoa(o.best), rows[0][1])
	count := map[string]int{}
	for i, d := range deeds {
		want := o.says(d)
		if got := verdictOf(rows[i+1]); got != want {
			t.Errorf("commit %d, %s: the oracle says %s, and pawl %v", i+1, commits[i], want, rows[i+1])
			require.False(t, got == "yes" || want == "yes", "from here on both have something else")
		}
		count[want]++
	}
	require.Equal(t, git(t, o.dir, "rev-parse", "HEAD^{tree}"), w.Git("rev-parse", "refs/heads/pawl/"+w.Loop+"^{tree}"), "the kept files")
	t.Logf("%s, %s: %d commits: %v", h.name(), setting, len(commits), count)
}

// allows returns what a spec lets a loop change, as far as globs say so, without the tests.
func (h history) allows(spec world.Doc) func(name string, isNew bool) bool {
	tests, scope, protect := matching(h.Tests), list(spec, "", "scope"), list(spec, "", "protect")
	return func(name string, isNew bool) bool {
		return anyMatch(scope, name) && (isNew && spec["newFiles"] == "allow" || !isNew && !tests(name)) && !anyMatch(protect, name)
	}
}

// matching returns a function that matches an expression, nothing if it is empty.
func matching(expression string) func(name string) bool {
	e := regexp.MustCompile(expression)
	return func(name string) bool { return expression != "" && e.MatchString(name) }
}

func anyMatch(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { is, _ := doublestar.Match(glob, name); return is })
}

// field returns a text of a spec, "" without one.
func field(spec world.Doc, part, key string) string {
	of, _ := spec[part].(world.Doc)
	text, _ := of[key].(string)
	return text
}

// list returns a list of a spec.
func list(spec world.Doc, part, key string) (all []string) {
	of := spec
	if part != "" {
		of, _ = spec[part].(world.Doc)
	}
	switch l := of[key].(type) {
	case []any:
		for _, v := range l {
			all = append(all, fmt.Sprint(v))
		}
	case []string:
		return l
	}
	return all
}
