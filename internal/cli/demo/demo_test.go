package demo_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli/demo"
	"pawl/internal/home"
	"pawl/internal/metric"
	"pawl/internal/steward/task"
	"pawl/test/harness/tier"
)

func unpack(t *testing.T) demo.Demo {
	t.Helper()
	d, err := demo.Unpack(t.Context(), home.Home{Dir: t.TempDir()}, demo.Improve)
	require.NoError(t, err)
	return d
}

// run runs a command in the demo's repository.
func run(t *testing.T, d demo.Demo, env []string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = d.Repo, append(os.Environ(), env...)
	out, err := cmd.Output()
	return string(out), err
}

func git(t *testing.T, d demo.Demo, args ...string) string {
	t.Helper()
	out, err := run(t, d, []string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}, "git", args...)
	require.NoError(t, err, "git %v", args)
	return strings.TrimSpace(out)
}

func TestUnpackMakesACleanRepositoryOnABranch(t *testing.T) {
	d := unpack(t)
	require.Equal(t, "main", git(t, d, "symbolic-ref", "--short", "HEAD"))
	require.Empty(t, git(t, d, "status", "--porcelain"))
	require.FileExists(t, d.Spec)
	require.FileExists(t, filepath.Join(d.Repo, "go.mod"))
	require.FileExists(t, filepath.Join(d.Dir, "agent", "agent.sh"))
}

// A loop's ID begins with the name in its spec, so the command in the file does, too.
func TestTheCommandInASpecFitsTheSpec(t *testing.T) {
	for _, scenario := range []demo.Scenario{demo.Improve, demo.Deliver} {
		d, err := demo.Unpack(t.Context(), home.Home{Dir: t.TempDir()}, scenario)
		require.NoError(t, err)
		text, err := os.ReadFile(d.Spec)
		require.NoError(t, err)
		require.Contains(t, string(text), "\nname: "+d.Name+"\n")
		require.Contains(t, string(text), "pawl run --id "+d.Name+"-")
	}
}

// TestL_TheDeliverDemoFailsOnceAndIsMended plays `pawl demo deliver` by hand: the repository has a failing test, the
// writer's change makes another one fail, the fixer's makes all pass, and the reviewer ticks off only what holds.
// Without -tags nightly it ends with the writer.
func TestL_TheDeliverDemoFailsOnceAndIsMended(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the demo's tests four times")
	}
	d, err := demo.Unpack(t.Context(), home.Home{Dir: t.TempDir()}, demo.Deliver)
	require.NoError(t, err)
	require.FileExists(t, d.Issue)
	prompt := filepath.Join(t.TempDir(), "prompt.md")
	require.NoError(t, os.WriteFile(prompt, []byte("APPROVED 0123abcd\nREJECTED 0123abcd: why\n"), 0o600))
	role := func(name string) string {
		out, err := run(t, d, []string{"PAWL_ROLE=" + name, "PAWL_RESULT=" + filepath.Join(t.TempDir(), "r"), "PAWL_PROMPT=" + prompt}, "sh", filepath.Join(d.Dir, "agent", "agent.sh"))
		require.NoError(t, err)
		return out
	}
	failing := func() []string {
		out, _ := run(t, d, nil, "go", "test", "./...")
		var names []string
		for line := range strings.SplitSeq(out, "\n") {
			if name, failed := strings.CutPrefix(line, "--- FAIL: "); failed {
				names = append(names, strings.Fields(name)[0])
			}
		}
		return names
	}
	require.Equal(t, []string{"TestMergeKeepsTheLongerOne", "TestFreeOffersNothingDuringALongMeeting"}, failing(), "the bug is real")
	require.Contains(t, role("planner"), "interval.Merge")
	role("writer")
	require.Equal(t, []string{"TestMergeJoinsWhatTouches"}, failing())
	if !tier.Nightly {
		return
	}
	require.Contains(t, role("reviewer"), "- [ ] 3: TestMergeJoinsWhatTouches fails\nREJECTED 0123abcd: ")
	role("fixer")
	require.Empty(t, failing())
	require.Contains(t, role("reviewer"), "- [x] 3: TestMergeJoinsWhatTouches passes\nAPPROVED 0123abcd: ")
}

// TestS_TheStewardDemoHasAPlanForEachTask plays `pawl demo steward` by hand: every plan is valid, and its loop's change
// passes the project's check within the plan's scope. The headline that goes in circles never gets shorter.
func TestS_TheStewardDemoHasAPlanForEachTask(t *testing.T) {
	d, err := demo.Unpack(t.Context(), home.Home{Dir: t.TempDir()}, demo.Steward)
	require.NoError(t, err)
	agent := filepath.Join(d.Dir, "agent", "agent.sh")
	tasks, err := os.ReadDir(d.Tasks)
	require.NoError(t, err)
	require.Len(t, tasks, len(demo.Tasks)+1)
	for _, id := range append([]string{demo.Urgent}, demo.Tasks...) {
		require.FileExists(t, filepath.Join(d.Tasks, id+".md"))
		file := filepath.Join(t.TempDir(), "PLAN.md")
		_, err := run(t, d, []string{"PAWL_ROLE=planner", "PAWL_TASK=" + id, "PAWL_PLAN=" + file}, "sh", agent)
		require.NoError(t, err)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		plan, err := task.ParsePlan(text)
		require.NoError(t, err)
		require.Len(t, plan.Steps, 1)
		size := func() int {
			n := 0
			for _, page := range []string{"home.md", "menu.md"} {
				b, err := os.ReadFile(filepath.Join(d.Repo, "pages", page))
				require.NoError(t, err)
				n += len(b)
			}
			return n
		}
		for _, iteration := range []string{"1", "2", "3"} {
			before := size()
			_, err = run(t, d, []string{
				"PAWL_ROLE=writer", "PAWL_LOOP=" + d.Name + "-" + id + "-" + plan.Steps[0].ID, "PAWL_ITERATION=" + iteration,
				"PAWL_RESULT=" + filepath.Join(t.TempDir(), "r"),
			}, "sh", agent)
			require.NoError(t, err)
			changed := strings.Fields(git(t, d, "diff", "--name-only"))
			require.Len(t, changed, 1, id)
			require.Contains(t, strings.ReplaceAll(string(plan.Steps[0].Spec), "**", "list.csv"), changed[0])
			_, err = run(t, d, nil, "sh", "check.sh")
			require.NoError(t, err)
			if plan.Steps[0].Kind == "deliver" {
				break
			}
			require.Equal(t, id == demo.Interrupted, size() < before, id)
		}
		git(t, d, "checkout", "-q", ".")
	}
}

func TestTheDemoSaysHowManyCitiesThereAre(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(unpack(t).Repo, "data", "cities.csv"))
	require.NoError(t, err)
	require.Equal(t, demo.Cities, bytes.Count(b, []byte("\n")))
}

func TestEachDemoHasAFolderOfItsOwn(t *testing.T) {
	h := home.Home{Dir: t.TempDir()}
	for i := 1; i <= 2; i++ {
		d, err := demo.Unpack(t.Context(), h, demo.Improve)
		require.NoError(t, err)
		require.Equal(t, "demo-"+strconv.Itoa(i), d.Name)
	}
}

func TestUnpackIgnoresTheUsersGitSettings(t *testing.T) {
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "elsewhere"))
	h := home.Home{Dir: t.TempDir()}
	d, err := demo.Unpack(t.Context(), h, demo.Improve)
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(d.Repo, ".git"))
}

// The demo shows its cases only if each change does what its iteration is for. This plays the loop by hand: agent,
// verify, guard. Without -tags nightly it plays two iterations.
func TestEachChangeDoesWhatItIsThereFor(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the demo's program about twenty times")
	}
	d := unpack(t)
	measure := func() (metric.Decimal, error) {
		out, err := run(t, d, nil, "go", "run", "./cmd/measure")
		if err != nil {
			return metric.Decimal{}, err
		}
		r, err := metric.Extract([]byte(out), nil)
		require.NoError(t, err)
		return r.Value, nil
	}
	guard := func() error {
		_, err := run(t, d, nil, "go", "test", "./...")
		return err
	}
	best, err := measure()
	require.NoError(t, err)
	require.NoError(t, guard(), "the guard passes to begin with")

	course := []struct {
		attempts int
		want     string
	}{
		{1, "kept"}, {1, "worse"}, {3, "guard-fail"}, {1, "kept"}, {1, "verify-crash"},
		{1, "scope"}, {1, "kept"}, {2, "not-atomic"}, {1, "no-change"}, {1, "kept"},
	}
	require.Len(t, course, demo.Iterations)
	if !tier.Nightly {
		course = course[:2]
	}
	for i, step := range course {
		for attempt := 1; attempt <= step.attempts; attempt++ {
			description := act(t, d, i+1, attempt)
			require.Equal(t, step.want != "not-atomic", len(metric.Split(description)) == 1, description)
			changed := git(t, d, "status", "--porcelain", "--untracked-files=all")
			got := ""
			switch value, err := measure(); {
			case step.want == "not-atomic":
				require.NotEmpty(t, changed)
				got = "not-atomic"
			case changed == "":
				got = "no-change"
			case !strings.Contains(changed, "route/"):
				got = "scope"
			case err != nil:
				got = "verify-crash"
			case guard() != nil:
				require.Negative(t, value.Cmp(best), "only the guard may object to %q", description)
				got = "guard-fail"
			default:
				if keep, _ := metric.Decide(metric.Lower, best, value, metric.MustDecimal("1")); keep {
					best, got = value, "kept"
				} else {
					got = "worse"
				}
			}
			require.Equal(t, step.want, got, "iteration %d, attempt %d: %s", i+1, attempt, description)
			if got == "kept" {
				git(t, d, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qam", description)
			} else {
				git(t, d, "checkout", "-q", ".")
				git(t, d, "clean", "-qfd")
			}
		}
	}
}

// act runs the agent as pawl does and returns its description.
func act(t *testing.T, d demo.Demo, iteration, attempt int) string {
	t.Helper()
	result := filepath.Join(t.TempDir(), "result")
	_, err := run(t, d, []string{
		"PAWL_ITERATION=" + strconv.Itoa(iteration), "PAWL_ATTEMPT=" + strconv.Itoa(attempt), "PAWL_RESULT=" + result,
	}, "sh", filepath.Join(d.Dir, "agent", "agent.sh"))
	require.NoError(t, err)
	b, err := os.ReadFile(result)
	require.NoError(t, err)
	var r struct {
		Description string `json:"description"`
		ToolCalls   int    `json:"toolCalls"`
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&r))
	require.Positive(t, r.ToolCalls)
	return r.Description
}

// A git that makes repositories of SHA-256 objects unless it is told otherwise, as Git 3 does.
func TestUnpackNamesTheObjectFormat(t *testing.T) {
	installed, err := exec.LookPath("git")
	require.NoError(t, err)
	dir := t.TempDir()
	wrapper := `#!/bin/sh
for word; do
	shift
	set -- "$@" "$word"
	[ "$word" != init ] || set -- "$@" --object-format=sha256
done
exec ` + installed + ` "$@"
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "git"), []byte(wrapper), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	require.Equal(t, "sha1", git(t, unpack(t), "rev-parse", "--show-object-format"))
}
