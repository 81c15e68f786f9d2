package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/ledger"
	"pawl/internal/loop"
)

// longCourse is an agent that goes every way through an iteration, the same each time.
const longCourse = `
echo "$PAWL_ITERATION.$PAWL_ATTEMPT" >> "$WORLD/calls"
n() { echo "$1" > work/n; }
case $PAWL_ITERATION.$PAWL_ATTEMPT in
1.*) n 11; echo "raise n to 11" ;;
2.*) n 5; echo "lower n" ;;
3.1) n 12; echo bad > work/guard; echo "raise n without care" ;;
3.*) n 12; echo "raise n with care" ;;
4.*) n 3$PAWL_ATTEMPT; echo bad > work/guard; echo "break the guard" ;;
5.*) n boom; echo "break the measure" ;;
6.*) echo steep > README.md; echo "leave the scope" ;;
7.*) echo "look around" ;;
8.1) n 13; echo fine > work/guard; echo "raise n and update the guard" ;;
8.*) n 13; echo "raise n to 13" ;;
9.*) n 99; echo "give up half way"; exit 1 ;;
10.1) n 14; echo bad > work/syntax; echo "raise n badly" ;;
10.*) n 14; echo "raise n well" ;;
esac
`

// shortCourse is the part of it that passes every point at which something can be cut off: a rework, a keep, a discard.
const shortCourse = `
echo "$PAWL_ITERATION.$PAWL_ATTEMPT" >> "$WORLD/calls"
n() { echo "$1" > work/n; }
case $PAWL_ITERATION.$PAWL_ATTEMPT in
1.1) n 11; echo bad > work/guard; echo "raise n without care" ;;
1.*) n 11; echo "raise n with care" ;;
2.*) n 5; echo "lower n" ;;
esac
`

var shortRows = []string{
	"0 10 0 yes: baseline",
	"1 11 +1 yes: raise n with care",
	"2 5 -6 no: lower n",
}

// courseSpec returns the spec of the long course, shortSpec that of the short one.
func (w *machine) courseSpec() json.RawMessage {
	return w.spec(doc{"check": doc{"command": "sh check.sh"}, "limits": doc{"iterations": 10}})
}

func (w *machine) shortSpec() json.RawMessage {
	return w.spec(doc{"limits": doc{"iterations": 2}})
}

// courseRows are the results that the course must have.
var courseRows = []string{
	"0 10 0 yes: baseline",
	"1 11 +1 yes: raise n to 11",
	"2 5 -6 no: lower n",
	"3 12 +1 yes: raise n with care",
	"4 12 0 no guard-fail: break the guard",
	"5 12 0 no error:verify-crash: break the measure",
	"6 12 0 no policy:scope: leave the scope",
	"7 12 0 no no-change: look around",
	"8 13 +1 yes: raise n to 13",
	"9 13 0 no error:agent: give up half way",
	"10 14 +1 yes: raise n well",
}

// outcome is everything that could differ between two runs of the same loop. Nothing in it depends on when or how fast
// things happened.
type outcome struct {
	Rows    []string // the lines of loop-results.tsv without the time
	Commits []string // the branch's commits: subject and tree
	Events  []string // the ledger's events: type and subject
	Result  string   // the workflow's result
}

// outcome reads the outcome of a loop, and checks what must hold for every loop.
func (w *machine) outcome(result loop.Result) outcome {
	w.T.Helper()
	ctx := w.T.Context()
	store, l, head := w.openLedger()
	record := w.record()
	events, err := l.Events(ctx, head)
	require.NoError(w.T, err)
	page, err := l.Read(ctx, head)
	require.NoError(w.T, err)
	o := outcome{Rows: rows(events), Events: described(events)}
	require.Equal(w.T, results(events), lines(page.Results), "the results file must be made of the events")
	o.Commits = lines([]byte(w.Git("log", "--reverse", "--format=%s %T", w.base+"..refs/heads/pawl/"+record.Ref)))
	o.Result = fmt.Sprintf("%s %s iterations %d, kept %d, discarded %d, best %v, tools %d", result.ExitStatus, result.ErrorCode,
		result.Iterations, result.KeptCount, result.Discarded, result.Best, result.Usage.ToolCalls)

	w.requireFold(ctx, l, head, events)
	require.NoError(w.T, w.replay(w.history("")), "the workflow's history must replay")
	for _, ref := range []string{record.Branch, record.Ledger} {
		have, err := store.Ref(ctx, ref)
		require.NoError(w.T, err)
		require.Equal(w.T, have, w.Git("rev-parse", ref), "%s must be pushed", ref)
	}
	require.Equal(w.T, w.Before, w.Snapshot(), "the user's repository")
	w.requireNothingLeft()
	return o
}

// requireFold checks that the state is the fold of the ledger (A9), in the ledger itself and in the workflow.
func (w *machine) requireFold(ctx context.Context, l *ledger.Ledger, head string, events []loop.Event) {
	w.T.Helper()
	for i, e := range events {
		require.Equal(w.T, int64(i+1), e.Seq, "the ledger's events are numbered without a gap: %s", e.Type)
	}
	folded := loop.Fold(loop.State{}, events)
	folded.Ledger = head
	snapshot, err := l.State(ctx, head)
	require.NoError(w.T, err)
	require.Equal(w.T, pretty(w, snapshot), pretty(w, folded), "the ledger's state must be the fold of its events")
	var asked loop.State
	w.until("the loop's state can be asked for", func() bool { asked, err = w.query(); return err == nil })
	require.Equal(w.T, pretty(w, asked), pretty(w, folded), "the workflow's state must be the fold of the ledger's events")
}

func pretty(w *machine, v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	require.NoError(w.T, err)
	return string(b)
}

// callsRepeated returns the agent's calls (iteration.attempt) that were made more than once.
func (w *machine) callsRepeated() (again []string) {
	seen := map[string]bool{}
	for _, call := range w.lines("calls") {
		if seen[call] {
			again = append(again, call)
		}
		seen[call] = true
	}
	return again
}

// rows returns the lines of the results file without their times.
func rows(events []loop.Event) (out []string) {
	for _, e := range events {
		r, ok := ledger.Row(e)
		if !ok {
			continue
		}
		kept := "no"
		if r.Kept {
			kept = "yes"
		}
		if r.Reason != "" {
			kept += " " + r.Reason
		}
		delta := r.Delta.String()
		if r.Delta.Sign() > 0 {
			delta = "+" + delta
		}
		out = append(out, fmt.Sprintf("%d %s %s %s: %s", r.Iter, r.Metric, delta, kept, r.Description))
	}
	return out
}

// results returns the lines of the results file for these events.
func results(events []loop.Event) (out []string) {
	for _, e := range events {
		if r, ok := ledger.Row(e); ok {
			out = append(out, r.String())
		}
	}
	return out
}

// described says what happened, without hashes, paths and times.
func described(events []loop.Event) (out []string) {
	for _, e := range events {
		text := fmt.Sprintf("%d %s %s", e.Iteration, e.Phase, e.Type)
		if e.Attempt > 1 {
			text += fmt.Sprintf(" attempt %d", e.Attempt)
		}
		switch e.Type {
		case loop.StepEnded:
			text += " " + e.Step + ": " + e.Reason
		case loop.ChangeJudged:
			text += fmt.Sprintf(" %s: %t %s", e.Step, e.Judgement.Passed, e.Judgement.Reason)
		case loop.IterationFailed, loop.RepairAttempted:
			text += ": " + e.FailureReason
		case loop.AutonomyHalted, loop.AutonomyCompleted, loop.LoopFailed, loop.PushRefused, loop.Warned:
			text += ": " + e.Reason
		}
		out = append(out, text)
	}
	return out
}

// requireNothingLeft checks that a loop that is over has left no process, no tree and no lock.
func (w *machine) requireNothingLeft() {
	w.T.Helper()
	r := w.record()
	require.True(w.T, r.Closed, "the workspace record says that the loop is over")
	for _, name := range []string{"desk", "judge", "exchange"} {
		require.NoDirExists(w.T, filepath.Join(w.home.Loop(r.Ref), name), "the trees are given up")
	}
	for _, name := range []string{"desk.*", "exchange.*", "layers.*"} {
		left, err := filepath.Glob(filepath.Join(w.home.Loop(r.Ref), name))
		require.NoError(w.T, err)
		require.Empty(w.T, left, "and so are those of candidates")
	}
	desks, err := filepath.Glob(r.Desk(w.home) + "*")
	require.NoError(w.T, err)
	require.Empty(w.T, desks, "the folders of desks are given up")
	require.NoDirExists(w.T, r.Judge(w.home))
	var left []string
	w.until("nothing runs for the loop any more", func() bool { left = w.processes(r.Token()); return len(left) == 0 })
	locks := files(filepath.Join(w.home.Dir, "stores"), func(path string) bool {
		own := filepath.Base(path) == "pawl.lock" || filepath.Base(path) == "pawl-fetch.lock" || strings.HasSuffix(path, ".git.lock") // flocks: the files mean nothing while nobody holds them
		return strings.HasSuffix(path, ".lock") && !own || strings.HasSuffix(path, ".new")
	})
	require.Empty(w.T, locks, "no lock is left in the store")
	require.Empty(w.T, files(filepath.Join(w.Repo, ".git"), func(path string) bool { return strings.HasSuffix(path, ".lock") }), "no lock is left in the repository")
}

// processes lists what runs for a loop: its supervisor, processes with its token, and processes whose working folder is
// in its trees.
func (w *machine) processes(token string) (found []string) {
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range entries {
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		if len(cmdline) == 0 { // a zombie, or a process of the kernel
			continue
		}
		if strings.Contains("\x00"+string(environ), "\x00SUPERVISED_BY="+token+"\x00") ||
			strings.Contains(string(cmdline), token) || strings.HasPrefix(cwd, w.home.Loops()) || strings.HasPrefix(cwd, w.home.Trees()) {
			found = append(found, filepath.Base(dir)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

// seconds formats a time.
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
