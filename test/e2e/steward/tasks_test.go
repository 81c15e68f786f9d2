package steward_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/steward"
	"pawl/internal/steward/task"
	"pawl/test/harness/world"
)

// agent plans what its task says and writes one line in each loop. A task with the word "circle" makes no progress. A
// task with the word "dear" has two steps, so it still needs money when the first has cost too much.
const agent = `
prompt=$(cat)
case "$PAWL_ROLE" in
planner)
	case "$prompt" in *circle*) kind=improve;; *) kind=deliver;; esac
	case "$prompt" in *dear*) more='  - {id: more, kind: deliver, after: [work], spec: {goal: write more}}';; esac
	printf -- '---\nsteps:\n  - {id: work, kind: %s, spec: {goal: write it}}\n%s\n---\nWrite it.\n' $kind "$more" > "$PAWL_PLAN" ;;
*)
	while [ -e "$WORLD/wait" ]; do sleep 0.1; done
	case "$PAWL_LOOP" in *-dear-*) echo '{"costUSD": 1.5, "description": "a dear line"}' > "$PAWL_RESULT";; esac
	echo "$PAWL_LOOP" >> work/log ;;
esac`

// crew is a world with a steward.
type crew struct {
	*world.World
	up *world.Up
}

// open starts a steward for a small project. change may change its charter first.
func open(t *testing.T, change func(charter world.Doc), flags ...string) *crew {
	t.Helper()
	w := raise(t, change)
	w.begin(flags...)
	return w
}

// begin starts the steward, with a `pawl up` that runs it.
func (w *crew) begin(flags ...string) {
	w.T.Helper()
	w.serve(flags...)
	w.Done("steward", "up", filepath.Join(w.Dir, "crew.json"), "--detach")
}

// raise makes the project and the charter, and starts nothing yet.
func raise(t *testing.T, change func(charter world.Doc)) *crew {
	t.Helper()
	world.Program(t)
	dir, err := os.MkdirTemp(world.Scratch, "s")
	require.NoError(t, err)
	w := &crew{World: world.In(t, dir, "", map[string]string{"README.md": "a shop\n", "work/n": "10\n", "rules/GUARD.md": "be careful\n"})}
	w.Write("agent.sh", agent)
	w.Loop = "crew"
	charter := world.Doc{
		"kind": "steward", "name": "crew", "repo": world.Doc{"path": w.Repo},
		"agent": world.Doc{"command": []string{"sh", filepath.Join(dir, "agent.sh")}, "env": world.Doc{"WORLD": dir}},
		"tiers": []world.Doc{{"tier": "T1", "words": []string{"delicate"}}},
		"defaults": world.Doc{
			"scope": []string{"work/**"}, "newFiles": "allow", "test": world.Doc{"command": "true"}, "verify": world.Doc{"command": "cat work/n"},
			"agent":     world.Doc{"command": []string{"sh", filepath.Join(dir, "agent.sh")}, "env": world.Doc{"WORLD": dir}},
			"approvals": world.Doc{"tools": []string{"*"}, "diff": "auto"},
			"sandbox":   world.Doc{"allow": []string{dir}}, // agents of tests leave files beside their tree
			"limits":    world.Doc{"iterations": 8, "toolCalls": 1000, "activeTime": "1h"},
		},
	}
	if change != nil {
		change(charter)
	}
	text, err := json.Marshal(charter)
	require.NoError(t, err)
	w.Write("crew.json", string(text))
	return w
}

// serve starts `pawl up` for the crew, until the test's end.
func (w *crew) serve(flags ...string) {
	w.T.Helper()
	up, err := world.StartUpWith(flags, w.Home, filepath.Join(w.Dir, "up"))
	require.NoError(w.T, err)
	w.up = up
	w.T.Cleanup(func() { _ = up.Cmd.Process.Kill() })
}

// submit submits a task.
func (w *crew) submit(id, body string, more ...string) {
	w.T.Helper()
	w.Write(id+".md", fmt.Sprintf("---\nid: %s\n%s\n---\n%s\n", id, strings.Join(more, "\n"), body))
	w.Done("steward", "submit", "crew", filepath.Join(w.Dir, id+".md"))
}

func (w *crew) state() (s steward.State) {
	w.T.Helper()
	world.Decode(w.T, w.Done("steward", "show", "crew", "--json").Out, &s)
	return s
}

// task waits until a task fulfils a condition.
func (w *crew) task(id, what string, is func(steward.Task) bool) (found steward.Task) {
	w.T.Helper()
	w.Until(id+" "+what, func() bool {
		t := w.state().Find(id)
		if t == nil {
			return false
		}
		found = *t
		return is(*t)
	})
	return found
}

func done(t steward.Task) bool { return t.Outcome == steward.Done }
func over(t steward.Task) bool { return t.Outcome != "" }
func waiting(t steward.Task) bool {
	return t.State == task.Waiting && t.WaitingFor != nil && t.WaitingFor.Gate != ""
}

func TestS1_ThreeTasksOneRunsOneAsksOneGoesInCircles(t *testing.T) {
	world.Slow(t, "test/e2e/crash has such a course")
	w := open(t, nil)
	w.submit("plain", "Write a line.")
	plain := w.task("plain", "is done", done)
	require.Equal(t, []string{"crew-plain-work"}, plain.Loops)
	require.Contains(t, []task.Tier{task.T0, task.T3}, plain.Tier)
	require.Equal(t, "crew-plain-work\n", w.Git("show", "pawl/crew-plain-work:work/log")+"\n")

	w.submit("risky", "A delicate matter.")
	w.submit("lost", "Go in a circle.", "priority: -1")
	risky := w.task("risky", "asks", waiting)
	require.Equal(t, task.T1, risky.Tier)
	inbox := w.Done("inbox").Out
	require.Contains(t, inbox, "pawl steward answer crew --task risky")
	require.NotContains(t, w.Git("for-each-ref"), "pawl/crew-risky-work", "nothing is begun without an approval")
	w.Refused("HASH_MISMATCH", "steward", "answer", "crew", "--task", "risky", "--approve", "--hash", strings.Repeat("ab", 32))
	w.Done("steward", "answer", "crew", "--task", "risky", "--approve", "--hash", risky.Plan.Hash)
	risky = w.task("risky", "is done", done)
	require.NotEmpty(t, risky.ApprovedBy)
	require.Contains(t, w.Done("log", "crew-risky-work").Out, "plan "+risky.Plan.Hash[:12])

	lost := w.task("lost", "is stopped", waiting)
	require.Equal(t, "stuck", lost.WaitingFor.Kind)
	w.Done("steward", "answer", "crew", "--task", "lost", "--choice", "cancel")
	w.task("lost", "is cancelled", over)
	w.Until("its loop is over", func() bool {
		var s struct{ Status string }
		world.Decode(t, w.Pawl("show", "crew-lost-work", "--json").Out, &s)
		return s.Status == "halted"
	})
	s := w.state()
	require.Equal(t, task.Idle, s.State)
	require.Equal(t, int64(2), s.Indicators.Done)
	require.Equal(t, int64(1), s.Indicators.Cancelled)

	status := w.Read("repo/.pawl/STATUS_LEDGER.md")
	require.Contains(t, status, "plain")
	require.Contains(t, w.Read("repo/.pawl/tasks/risky/PLAN.md"), "Write it.")
	require.Empty(t, w.Git("status", "--porcelain"), "the project's tree is as it was")
	require.Regexp(t, `crew: the ledger is whole: \d+ entries, \d+ events, up to `, w.Done("log", "crew", "--verify").Out)
	require.Contains(t, w.Done("inbox").Err, "othing waits")

	w.Done("steward", "stop", "crew")
	w.Until("the steward is over", func() bool { return w.state().Status.Ended() })
}

// People work in the project's folder meanwhile. A task neither takes their unfinished branch with it nor needs one.
func TestATaskStartsFromTheBranchThatItsStewardLooksAfter(t *testing.T) {
	w := open(t, nil)
	w.Until("it has read the project", func() bool { return w.state().Base != "" })
	main := strings.TrimSpace(w.Git("rev-parse", "HEAD"))
	w.Git("checkout", "--quiet", "-b", "mine")
	w.Git("commit", "--quiet", "--allow-empty", "--message", "not finished")
	for id, checkout := range map[string]string{"branch": "mine", "detached": "HEAD~0"} {
		w.Git("checkout", "--quiet", checkout)
		w.submit(id, "Write a line.")
		w.task(id, "is over or asks", func(t steward.Task) bool { return over(t) || waiting(t) })
		require.Equal(t, main, strings.TrimSpace(w.Git("rev-parse", "pawl/crew-"+id+"-work~1")))
	}
}

func TestS5_AnInterruptedTaskGoesOnAfterwardsAndNothingIsDoneTwice(t *testing.T) {
	world.Slow(t, "workflows/steward interrupts them")
	w := open(t, nil)
	w.Write("wait", "")
	w.submit("low", "Write a line.")
	w.task("low", "is at work", func(t steward.Task) bool { return t.State == task.Executing && len(t.Loops) == 1 })
	w.submit("high", "Write another line.", "priority: 5")
	w.task("low", "gives way", func(t steward.Task) bool { return t.Interrupted == "high" })
	require.NoError(t, os.Remove(filepath.Join(w.Dir, "wait")))
	w.task("high", "is done", done)
	low := w.task("low", "is done", done)
	require.Len(t, low.Loops, 1)
	require.Equal(t, "crew-low-work", w.Git("show", "pawl/crew-low-work:work/log"))
}

func TestS11_AStewardWhoseEngineAndWorkerAreKilledGoesOn(t *testing.T) {
	world.Slow(t, "test/e2e/crash kills them at single points")
	w := open(t, nil)
	w.Write("wait", "")
	w.submit("a", "Write a line.")
	w.submit("b", "A delicate matter.", "priority: 3")
	w.task("b", "asks", waiting)
	w.task("a", "is at work", func(t steward.Task) bool { return t.State == task.Executing && len(t.Loops) == 1 })
	require.NoError(t, w.up.Cmd.Process.Signal(syscall.SIGKILL))
	<-w.up.Gone
	require.NoError(t, os.Remove(filepath.Join(w.Dir, "wait")))
	w.serve()
	w.task("a", "is done", done)
	b := w.task("b", "still asks", waiting)
	w.Done("steward", "answer", "crew", "--task", "b", "--approve", "--hash", b.Plan.Hash)
	w.task("b", "is done", done)
	require.Equal(t, "crew-a-work", w.Git("show", "pawl/crew-a-work:work/log"), "the work was done once")
}
