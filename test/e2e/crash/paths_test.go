package crash_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"pawl/internal/fault"
	"pawl/internal/loop"
	hostworker "pawl/internal/worker"
	"pawl/test/harness/world"
)

// histories is the folder in which the replay test finds the recorded histories.
const histories = "workflows/loop/testdata/histories"

// recorded is the folder of the world whose histories are recorded, so that they do not name a machine.
const recorded = "/tmp/pawl-history"

// path is one way through a loop, whose history is kept.
type path struct {
	name  string
	agent string
	spec  doc
	// before prepares the repository, during steers the loop. Both may be nil.
	before func(*machine)
	during func(*machine, *node)
	rows   []string // the results after the baseline's
	code   fault.Code
}

// tried is an agent of several iterations: each line is for one attempt.
func tried(attempts ...string) string {
	return "case $PAWL_ITERATION.$PAWL_ATTEMPT in\n" + strings.Join(attempts, " ;;\n") + " ;;\nesac\n"
}

func iterations(n int) doc {
	return doc{"limits": doc{"iterations": n}}
}

var paths = []path{
	{
		name: "keep-and-discard", spec: iterations(3),
		agent: tried(`1.*) echo 11 >work/n; echo "raise n"`, `2.*) echo 5 >work/n; echo "lower n"`, `3.*) echo 11 >work/n; echo x >>work/syntax; echo "leave n alone"`),
		rows:  []string{"1 11 +1 yes: raise n", "2 5 -6 no: lower n", "3 11 0 no: leave n alone"},
	},
	{
		name: "guard-rework", spec: doc{"limits": doc{"iterations": 2}, "validate": doc{"canary": true}},
		agent: tried(`1.1) echo 11 >work/n; echo bad >work/guard; echo "raise n without care"`, `1.2) echo 11 >work/n; echo "raise n with care"`,
			`2.*) echo 12 >work/n; echo bad$PAWL_ATTEMPT >work/guard; echo "break the guard"`),
		rows: []string{"1 11 +1 yes: raise n with care", "2 11 0 no guard-fail: break the guard"},
	},
	{
		name: "discards-of-every-kind",
		spec: doc{"check": doc{"command": "sh check.sh"}, "limits": doc{"iterations": 7, "shiftAfter": 3}},
		agent: tried(`1.*) echo boom >work/n; echo "break the measure"`, `2.*) echo x >>README.md; echo "leave the scope"`, `3.*) echo "look around"`,
			`4.1) echo 11 >work/n; echo fine >work/guard; echo "raise n and update the guard"`, `4.2) echo 11 >work/n; echo "raise n"`, `5.*) echo 99 >work/n; echo "give up"; exit 1`,
			`6.1) echo 12 >work/n; echo bad >work/syntax; echo "raise n badly"`, `6.2) echo 12 >work/n; echo "raise n well"`,
			`7.*) echo boom >work/n; echo "break the measure again"`),
		rows: []string{
			"1 10 0 no error:verify-crash: break the measure", "2 10 0 no policy:scope: leave the scope", "3 10 0 no no-change: look around",
			"4 11 +1 yes: raise n", "5 11 0 no error:agent: give up", "6 12 +1 yes: raise n well", "7 12 0 no error:verify-crash: break the measure again",
		},
	},
	{
		name: "ideas", spec: doc{"agent": doc{"ideas": true}, "limits": doc{"iterations": 2}},
		agent: `case $PAWL_PHASE.$PAWL_ITERATION in
ideate.1) echo "raise n to 11 and raise n to 12" ;;
modify.1) echo 11 >work/n; echo "raise n to 11" ;;
modify.2) echo 12 >work/n; echo "raise n to 12" ;;
*) echo "not asked for"; exit 1 ;;
esac
`,
		rows: []string{"1 11 +1 yes: raise n to 11", "2 12 +1 yes: raise n to 12"},
	},
	{
		name: "three-at-once", spec: threeAtOnce, agent: threeCourse, rows: threeRows[1:],
	},
	{
		name: "target-met", spec: doc{"verify": doc{"target": 11}, "limits": doc{"iterations": 5}},
		agent: tried(`*) echo 11 >work/n; echo "raise n"`), rows: []string{"1 11 +1 yes: raise n"},
	},
	{
		name: "sequential", spec: doc{"verify": doc{"evidence": "sequential", "holdout": doc{"command": "sh measure.sh"}}, "limits": doc{"iterations": 2}},
		agent: tried(`1.*) echo 11 >work/n; echo "raise n"`, `2.*) echo 5 >work/n; echo "lower n"`),
		rows:  []string{"1 11 +1 yes: raise n", "2 5 -6 no: lower n"},
	},
	{
		name: "verify-timeout", spec: doc{"verify": doc{"timeout": "3s"}},
		agent:  tried(`*) echo slow >work/n; echo "slow it down"`),
		before: func(w *machine) { w.commit("measure.sh", "grep -q slow work/n && exec sleep 60\ncat work/n\n") },
		rows:   []string{"1 10 0 no error:timeout: slow it down"}, code: fault.PhaseTimeout,
	},
	{
		name: "agent-failed", spec: iterations(9), agent: "echo sorry\nexit 1\n",
		rows: []string{"1 10 0 no error:agent: sorry", "2 10 0 no error:agent: sorry", "3 10 0 no error:agent: sorry"}, code: fault.AgentFailed,
	},
	{
		name: "contract-approved-by-signal", spec: doc{"approvals": doc{"plan": "required"}},
		agent: raise,
		during: func(w *machine, _ *node) {
			gate := w.gate(loop.GateContract)
			w.message("approve", "ok")
			w.message("approve", map[string]string{"hash": "ffffffffffffffff"})
			w.message("continue", nil)
			w.message("approve", map[string]string{"by": "ann", "hash": gate.Hash[:16]})
		},
		rows: raised[1:],
	},
	{
		name: "contract-approved-by-update", spec: doc{"approvals": doc{"plan": "required"}},
		agent: raise,
		during: func(w *machine, _ *node) {
			gate := w.gate(loop.GateContract)
			before := w.historyLength()
			_, err := w.updated("approve", map[string]string{"hash": "ffffffffffffffff"})
			var refused *temporal.ApplicationError
			require.ErrorAs(w.T, err, &refused)
			require.Equal(w.T, string(fault.HashMismatch), refused.Type(), "a refused update has its code")
			require.Equal(w.T, before, w.historyLength(), "and leaves no trace")
			reply, err := w.updated("approve", map[string]string{"by": "ann", "hash": gate.Hash})
			require.NoError(w.T, err)
			require.Contains(w.T, reply, "approve")
		},
		rows: raised[1:],
	},
	{
		name: "contract-rejected", spec: doc{"approvals": doc{"plan": "required"}},
		agent: raise,
		during: func(w *machine, _ *node) {
			w.gate(loop.GateContract)
			w.message("reject", map[string]string{"by": "bob", "note": "not this way"})
		},
		code: fault.Cancelled,
	},
	{
		name: "pause-and-continue", agent: reporting,
		during: func(w *machine, _ *node) {
			w.agentBegins(1)
			w.message("pause", map[string]string{"by": "ann"})
			w.gate(loop.GatePause)
			w.message("steer", map[string]string{"note": "mind the step"})
			w.message("continue", nil)
			w.agentBegins(2)
			w.letGo()
		},
		rows: raised[1:],
	},
	{
		name: "pause-and-worker-killed", agent: stubborn,
		during: func(w *machine, n *node) {
			w.agentBegins(1)
			w.message("pause", nil)
			w.until("the agent is asked to end", func() bool { return len(w.lines("asked")) > 0 })
			n.kill()
			w.start(bothRoles)
			w.gate(loop.GatePause)
			w.letGo()
			w.message("continue", nil)
		},
		rows: raised[1:],
	},
	{
		name: "breakpoint", spec: doc{"breakpoints": []string{"verify"}}, agent: raise,
		during: func(w *machine, _ *node) {
			w.gate(loop.GateBreakpoint)
			_, err := w.updated("continue", nil)
			require.NoError(w.T, err)
		},
		rows: raised[1:],
	},
	{
		name: "halt", agent: waiting,
		during: func(w *machine, _ *node) {
			w.agentBegins(1)
			w.message("halt", map[string]string{"note": "enough"})
		},
		rows: []string{"1 10 0 no interrupted: a change that was not finished"}, code: fault.Cancelled,
	},
	{
		name: "cancel", agent: waiting,
		during: func(w *machine, _ *node) {
			w.agentBegins(1)
			require.NoError(w.T, w.client.CancelWorkflow(w.T.Context(), w.Loop, ""))
		},
		rows: []string{"1 10 0 no interrupted: a change that was not finished"}, code: fault.Cancelled,
	},
	{
		name: "loop-stop", spec: doc{"limits": doc{"iterations": 5}, "sandbox": doc{"use": "off"}},
		agent: "touch \"$WORLD/home/loops/$PAWL_LOOP/loop-stop\"\n" + raise, // the agent stands for a person
		rows:  raised[1:], code: fault.Cancelled,
	},
	{
		name: "no-numbers", spec: iterations(3), // the reference has its number, so nobody is asked
		agent: tried(`3.*) echo 11 >work/n; echo "raise n"`, `1.*) echo high >work/n; echo "say it in words"`, `*) echo higher >work/n; echo "say it in words"`),
		rows:  []string{"1 10 0 no error:no-number: say it in words", "2 10 0 no error:no-number: say it in words", "3 11 +1 yes: raise n"},
	},
	{
		name: "question", spec: doc{"verify": doc{"suspicious": "ask"}},
		agent: tried(`*) echo 1000 >work/n; echo "raise n by far"`),
		during: func(w *machine, _ *node) {
			gate := w.gate(loop.GateQuestion)
			require.Equal(w.T, []string{"keep", "discard", "halt"}, gate.Choices)
			_, err := w.updated("answer", map[string]string{"choice": "keep", "by": "ann"})
			require.NoError(w.T, err)
		},
		rows: []string{"1 1000 +990 yes: raise n by far"},
	},
	{
		name: "sleep", agent: `echo >>"$WORLD/calls"
refused() { printf '{"retryAt": "%s"}' "$(date -u -d "+$1 seconds" +%Y-%m-%dT%H:%M:%SZ)" >"$PAWL_RESULT"; exit 1; }
case $(wc -l <"$WORLD/calls") in
1) refused 3 ;;
2) refused 3600 ;;
esac
` + raise,
		during: func(w *machine, _ *node) {
			w.until("the loop sleeps for an hour", w.is(func(s loop.State) bool { return s.Sleep != nil && time.Until(s.Sleep.Until) > time.Minute }))
			w.message("continue", nil)
		},
		rows: raised[1:],
	},
	{
		name: "blocked-and-rejected", agent: tried(`*) echo exit 0 >guard.sh; echo "ease the guard"`),
		during: func(w *machine, _ *node) {
			first := w.gate(loop.GateGuard)
			w.message("continue", nil) // judged again, and no better
			w.until("the loop is blocked again", w.is(func(s loop.State) bool { return s.Gate != nil && s.Gate.ID != first.ID }))
			w.message("reject", map[string]string{"by": "bob"})
			w.until("the next iteration is blocked", w.is(func(s loop.State) bool { return s.Iteration == 2 && s.Gate != nil }))
			w.message("halt", map[string]string{"by": "bob"})
		},
		spec: doc{"limits": doc{"iterations": 3}},
		rows: []string{"1 10 0 no policy:sealed: ease the guard", "2 10 0 no interrupted: ease the guard"}, code: fault.GuardBlocked,
	},
	{
		name: "goes-on-from-its-ledger", spec: iterations(2), agent: waiting,
		during: func(w *machine, n *node) {
			w.agentBegins(1)
			n.kill()
			require.NoError(w.T, os.RemoveAll(w.home.Engine()))
			w.start(bothRoles)
			w.agentBegins(2)
			w.letGo()
		},
		rows: []string{"1 11 +1 yes: raise n", "2 11 0 no no-change: raise n"}, // it costs the step that was under way
	},
	{
		name: "precondition-failed", agent: raise,
		before: func(w *machine) { w.Write("repo/work/n", "not committed\n") },
		code:   fault.PreconditionFailed,
	},
	{
		name: "baseline-failed", agent: raise, spec: doc{"guard": doc{"command": "false"}},
		code: fault.PreconditionFailed,
	},
	{
		name: "invalid-spec", agent: raise, spec: doc{"scop": []string{"work/**"}, "limits": doc{"iterations": 0}},
		code: fault.InvalidSpec,
	},
}

// raise is an agent that raises n.
const raise = "echo 11 >work/n\necho \"raise n\"\n"

// TestPaths takes every way through a loop and replays its history with the current code. With -update it keeps the
// histories for the replay test of the workflows.
func TestPaths(t *testing.T) {
	if *world.Update {
		require.NoError(t, os.MkdirAll(histories, 0o755))
	} else {
		t.Parallel()
	}
	for _, p := range world.Sample(1, paths) {
		t.Run(p.name, func(t *testing.T) {
			w := pathMachine(t, p.agent)
			if p.before != nil {
				p.before(w)
				w.Before = w.Snapshot()
			}
			n := w.start(bothRoles)
			w.Loop = p.name
			require.NoError(t, w.begin(w.spec(p.spec)))
			if p.during != nil {
				p.during(w, n)
			}
			r, err := w.end()
			var failed *temporal.ApplicationError
			if err != nil {
				require.ErrorAs(t, err, &failed)
				require.NoError(t, failed.Details(&r))
				require.Equal(t, string(p.code), failed.Type())
			}
			require.Equal(t, string(p.code), r.ErrorCode, r.Reason)
			if r.Head != "" {
				if rows := w.outcome(r).Rows; len(p.rows) > 0 || len(rows) > 1 {
					require.Equal(t, p.rows, rows[1:])
				}
			}
			require.Equal(t, w.Before, w.Snapshot())
			w.keepHistory(t, p.name, "")
		})
	}
}

// pathMachine makes a machine for one path. If histories are recorded it is in the folder recorded, which only one
// machine can use at a time.
func pathMachine(t *testing.T, agent string) *machine {
	t.Helper()
	if !*world.Update {
		t.Parallel()
		return newWaiting(t, agent)
	}
	program(t)
	require.NoError(t, os.RemoveAll(recorded))
	require.NoError(t, os.MkdirAll(filepath.Join(recorded, "home"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(recorded, "home", "host-id"), []byte("history\n"), 0o600))
	t.Cleanup(func() { os.RemoveAll(recorded) })
	w := newMachineIn(t, recorded, agent)
	w.fifo("gate")
	return w
}

// TestContinueAsNew floods a loop with messages until the service suggests to continue as a new run.
func TestContinueAsNew(t *testing.T) {
	world.Slow(t, "its recorded history is replayed")
	w := pathMachine(t, tried(`1.*) echo 11 >work/n; echo "raise n"`, `2.*) echo 5 >work/n; echo "lower n"`))
	w.start(bothRoles)
	w.Loop = "continue-as-new"
	require.NoError(t, w.begin(w.spec(doc{"approvals": doc{"plan": "required"}, "limits": doc{"iterations": 2}})))
	gate := w.gate(loop.GateContract)
	for w.historyLength() < 4200 {
		var g errgroup.Group
		for range 8 {
			g.Go(func() error {
				for range 50 {
					if err := w.client.SignalWorkflow(t.Context(), w.Loop, "", "continue", nil); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
	}
	first := w.run()
	w.message("approve", map[string]string{"hash": gate.Hash})
	r, err := w.end()
	require.NoError(t, err)
	require.NotEqual(t, first, w.run(), "the loop goes on as a new run")
	require.Equal(t, []string{"1 11 +1 yes: raise n", "2 5 -6 no: lower n"}, w.outcome(r).Rows[1:])
	w.keepHistory(t, "continue-as-new-1", first)
	w.keepHistory(t, "continue-as-new-2", w.run())
}

// run returns the ID of the loop's newest run.
func (w *machine) run() string {
	w.T.Helper()
	d, err := w.client.DescribeWorkflowExecution(w.T.Context(), w.Loop, "")
	require.NoError(w.T, err)
	return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

// gate waits until a gate of a kind is open and recorded.
func (w *machine) gate(kind loop.GateKind) loop.Gate {
	w.T.Helper()
	var g loop.Gate
	w.until(fmt.Sprintf("a %s gate is open", kind), w.is(func(s loop.State) bool {
		if s.Gate != nil {
			g = *s.Gate
		}
		return s.Gate != nil && s.Gate.Kind == kind
	}))
	return g
}

// updated sends the loop a message as an update.
func (w *machine) updated(name string, payload any) (reply string, err error) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), world.Patience)
	defer cancel()
	u, err := w.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: w.Loop, UpdateName: name, Args: []any{payload}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return "", err
	}
	return reply, u.Get(ctx, &reply)
}

// commit changes a file as the user and commits it.
func (w *machine) commit(name, content string) {
	w.T.Helper()
	w.Write("repo/"+name, content)
	w.Commit("another hill")
	w.base = w.Git("rev-parse", "HEAD")
}

// history returns the history of a run, or of the newest run for "".
func (w *machine) history(run string) *historypb.History {
	w.T.Helper()
	h := &historypb.History{}
	for it := w.client.GetWorkflowHistory(w.T.Context(), w.Loop, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		e, err := it.Next()
		require.NoError(w.T, err)
		h.Events = append(h.Events, e)
	}
	return h
}

// leftNothingToATimeout checks that no activity of the loop had to wait until the service noticed that its worker was
// dead.
func (w *machine) leftNothingToATimeout() {
	w.T.Helper()
	for _, e := range w.history("").GetEvents() {
		require.Nil(w.T, e.GetActivityTaskTimedOutEventAttributes(), "event %d", e.GetEventId())
		require.Nil(w.T, e.GetActivityTaskStartedEventAttributes().GetLastFailure().GetTimeoutFailureInfo(), "event %d", e.GetEventId())
	}
}

// replay runs the history of the loop's workflow through the current workflow code.
func (w *machine) replay(h *historypb.History) error {
	r := worker.NewWorkflowReplayer()
	hostworker.Register(r)
	return r.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), h, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: w.Loop},
	})
}

// keepHistory replays a run's history in the form in which it is kept, which does not name the machine.
func (w *machine) keepHistory(t *testing.T, name, run string) {
	t.Helper()
	text, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(w.history(run))
	require.NoError(t, err)
	this, err := os.Hostname()
	require.NoError(t, err)
	text = bytes.ReplaceAll(text, []byte(`"`+this+`:`), []byte(`"worker:`)) // the name of a sticky queue
	h, err := client.HistoryFromJSON(bytes.NewReader(text), client.HistoryJSONOptions{})
	require.NoError(t, err)
	require.NoError(t, w.replay(h), "the history must replay")
	if !*world.Update {
		return
	}
	file := ""
	for n := 1; ; n++ { // an earlier one stays
		file = filepath.Join(histories, fmt.Sprintf("%s-v%d.json", name, n))
		if kept, err := filepath.Glob(file + "*"); err == nil && len(kept) == 0 {
			break
		}
	}
	if len(text) > 300<<10 {
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		require.NoError(t, err)
		_, err = z.Write(append(text, '\n'))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		text, file = packed.Bytes(), file+".gz"
	} else {
		text = append(text, '\n')
	}
	require.Less(t, len(text), 300<<10, "histories are to be small")
	require.NoError(t, os.WriteFile(file, text, 0o644))
	t.Logf("%s: %d events, %d kB", filepath.Base(file), len(h.Events), len(text)>>10)
}
