// Package demo provides what `pawl demo` needs: a small repository with a real optimisation problem (a round trip
// through the cities of Europe), a script with prepared changes as the agent, and the spec that puts the two together.
// The changes are chosen so that a reader sees each case handled: kept, worse, guard, crash, scope, not atomic, no
// change. For `pawl demo deliver`, _deliver has a calendar with a bug and a test that shows it, an issue, a writer that
// gets it wrong and a fixer that gets it right. For `pawl demo steward`, _steward has the pages and prices of a café,
// and five tasks with prepared plans.
//
// The package writes files and makes one commit; it never runs a loop. Nothing in it depends on where the pawl binary
// is, so a demo continues after a crash like any other loop. Start at Unpack; the changes are in _improve/agent, in
// the order of agent.sh.
package demo

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/home"
)

// The go tool ignores folders that begin with an underscore, so the demo's Go files do not belong to pawl's own module.
// Its go.mod has another name here, because a folder with a go.mod can't be embedded.
//
//go:embed all:_improve all:_deliver all:_steward
var files embed.FS

// How many iterations the agent has changes for, and how many cities to visit.
const (
	Iterations = 10
	Cities     = 111
)

// Tasks are the tasks of the steward's demo in the order of their submission. Urgent is submitted while the loop of
// Interrupted is at work.
var Tasks = []string{"hours", "tea", Interrupted, "headline"}

// The two tasks of an interrupt.
const (
	Interrupted = "menu"
	Urgent      = "closed"
)

// Demo is an unpacked demo.
type Demo struct {
	Name  string // the loop's name: demo-<n>
	Dir   string // $PAWL_HOME/demo/<n>
	Repo  string // the git repository in Dir
	Spec  string // the spec file in Dir
	Issue string // the issue in Dir whose text is the goal, "" if the spec has the goal
	Tasks string // the folder in Dir with a steward's tasks, "" for a loop
}

// Scenario is what a demo shows: a folder with repository, agent and spec. The spec is a template.
type Scenario struct{ name, folder, spec, message string }

// The demos.
var (
	Improve = Scenario{"demo-", "_improve", "pawl.yaml", "A round trip, band by band"}
	Deliver = Scenario{"demo-deliver-", "_deliver", "pawl.yaml", "A calendar, and a test that fails"}
	Steward = Scenario{"demo-steward-", "_steward", "steward.yaml", "A café"}
)

// Unpack writes the next demo under h: repository, agent and spec. It needs git.
func Unpack(ctx context.Context, h home.Home, c Scenario) (Demo, error) {
	dir, n, err := nextFolder(filepath.Join(h.Dir, "demo"))
	if err != nil {
		return Demo{}, home.Unusable("making a folder for the demo", err)
	}
	d := Demo{Name: c.name + strconv.Itoa(n), Dir: dir, Repo: filepath.Join(dir, "repo"), Spec: filepath.Join(dir, c.spec)}
	switch c {
	case Deliver:
		d.Issue = filepath.Join(dir, "issue.md")
	case Steward:
		d.Tasks = filepath.Join(dir, "tasks")
	}
	if err := unpack(c.folder, dir); err != nil {
		return Demo{}, fmt.Errorf("writing the demo: %w", err)
	}
	if err := writeSpec(d, c.folder+"/"+c.spec, filepath.Join(dir, "agent", "agent.sh")); err != nil {
		return Demo{}, fmt.Errorf("writing the demo's spec: %w", err)
	}
	if err := commit(ctx, d.Repo, c.message); err != nil {
		return Demo{}, fmt.Errorf("making the demo's repository: %w", err)
	}
	return d, nil
}

// nextFolder makes the folder with the next free number. If two processes do so at the same time, each gets its own
// folder.
func nextFolder(parent string) (string, int, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", 0, err
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return "", 0, err
	}
	highest := 0
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			highest = max(highest, n)
		}
	}
	for n := highest + 1; ; n++ {
		dir := filepath.Join(parent, strconv.Itoa(n))
		if err := os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
			return dir, n, err
		}
	}
}

func unpack(folder, dir string) error {
	tree, err := fs.Sub(files, folder)
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, tree); err != nil {
		return err
	}
	module := filepath.Join(dir, "repo", "go.mod")
	if err := os.Rename(module+".txt", module); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func writeSpec(d Demo, spec, agent string) error {
	text, err := files.ReadFile(spec)
	if err != nil {
		return err
	}
	quoted, err := json.Marshal(agent) // a JSON string is a YAML string, whatever the path
	if err != nil {
		return err
	}
	filled := strings.NewReplacer("{{.Name}}", d.Name, "{{.Agent}}", string(quoted)).Replace(string(text))
	return os.WriteFile(d.Spec, []byte(filled), 0o644)
}

// commit makes the repository with one commit that is the same on every machine: it has a fixed identity and date, and
// uses none of the user's configuration or hooks.
func commit(ctx context.Context, repo, message string) error {
	for _, args := range [][]string{
		{"-c", "init.defaultBranch=main", "init", "--quiet", "--template=", "--object-format=sha1"},
		{"add", "--all"},
		{"commit", "--quiet", "--message", message},
	} {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", repo}, args...)...)
		// Without variables that would make git work elsewhere, for example in a hook that runs the demo.
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") }),
			"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_DEFAULT_REF_FORMAT=files", // init has no flag for it before git 2.45
			"GIT_AUTHOR_NAME=pawl demo", "GIT_AUTHOR_EMAIL=demo@localhost", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
			"GIT_COMMITTER_NAME=pawl demo", "GIT_COMMITTER_EMAIL=demo@localhost", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
		if out, err := cmd.CombinedOutput(); err != nil {
			if errors.Is(err, exec.ErrNotFound) {
				return errors.New("git is not installed, or not on the PATH")
			}
			return fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(out))
		}
	}
	return nil
}
