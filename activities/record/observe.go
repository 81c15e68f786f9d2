package record

import (
	"cmp"
	"context"
	"log/slog"

	"pawl/activities/workspace"
	"pawl/internal/git/store"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/telemetry"
)

// Observe reports the events that a ledger has accepted after the entry prev to the log, metrics and traces. Those have
// no other source, so they agree with the ledger.
func Observe(ctx context.Context, ws *workspace.Workspace, prev string, seen telemetry.Seen, events []loop.Event) {
	for _, e := range events {
		level, ok := levels[e.Type]
		if !ok {
			level = slog.LevelDebug
		}
		if ws.Machine.Logger.Enabled(ctx, level) {
			ws.Machine.Logger.LogAttrs(ctx, level, string(e.Type), attributes(e)...)
		}
	}
	ws.Machine.Telemetry.Appended(ctx, seen, events, func(ctx context.Context) ([]loop.Event, error) {
		if prev == "" {
			return nil, nil
		}
		return ledger.Since(ctx, ws.Objects, prev, "")
	})
}

// levels has the log levels of the events that are more than a detail.
var levels = map[loop.Type]slog.Level{
	loop.LoopOpened: slog.LevelInfo, loop.LoopResumed: slog.LevelInfo, loop.LoopMoved: slog.LevelWarn, loop.AutonomyStarted: slog.LevelInfo,
	loop.IterationStarted: slog.LevelInfo, loop.IterationSucceeded: slog.LevelInfo, loop.IterationFailed: slog.LevelInfo,
	loop.GateOpened: slog.LevelInfo, loop.GateClosed: slog.LevelInfo, loop.GateEscalated: slog.LevelWarn,
	loop.AutonomyCompleted: slog.LevelInfo, loop.AutonomyHalted: slog.LevelInfo, loop.LoopFailed: slog.LevelError,
	loop.ContractAmended: slog.LevelInfo, loop.ProposalApproved: slog.LevelInfo, loop.ProposalRejected: slog.LevelInfo,
	loop.StewardOpened: slog.LevelInfo, loop.TaskSubmitted: slog.LevelInfo, loop.TaskStateChanged: slog.LevelInfo, loop.MilestoneReached: slog.LevelInfo,
	loop.TaskInterrupted: slog.LevelInfo, loop.LoopWarned: slog.LevelWarn, loop.LoopDetected: slog.LevelWarn, loop.DriftFound: slog.LevelWarn,
	loop.TaskEnded: slog.LevelInfo, loop.StewardEnded: slog.LevelInfo,
	loop.BudgetExhausted: slog.LevelWarn, loop.Warned: slog.LevelWarn, loop.MessageRefused: slog.LevelWarn,
}

// attributes are an event's attributes for the log: loop, iteration and phase, then what the event names. Words of
// agents and people stay only in the ledger.
func attributes(e loop.Event) []slog.Attr {
	out := []slog.Attr{slog.String("loop", e.Loop), slog.Int("iteration", e.Iteration), slog.String("phase", string(e.Phase)), slog.Int64("seq", e.Seq)}
	gate := cmp.Or(e.Gate, new(loop.Gate)).ID
	for _, a := range []slog.Attr{
		slog.String("task", e.Task), slog.String("step", e.Step), slog.String("role", e.Role), slog.String("gate", gate), slog.String("message", e.Message),
		slog.String("by", e.By), slog.String("failure_reason", e.FailureReason), slog.String("commit", e.Commit),
		slog.String("status", string(e.Status)), slog.String("error_code", e.ErrorCode),
	} {
		if a.Value.String() != "" {
			out = append(out, a)
		}
	}
	if e.Type == loop.StepEnded || e.Type == loop.Warned || e.Type == loop.MessageRefused || e.Status.Ended() {
		out = append(out, slog.String("reason", loop.Clip(e.Reason, 300)))
	}
	return out
}

// Survey finds the state of this host's loops in the background, for metrics of loops that nobody works on yet.
func (a *Recorder) Survey(ctx context.Context) {
	if a.Telemetry == nil {
		return
	}
	a.InBackground(func() {
		records, err := hostrecord.List(a.Home)
		if err != nil {
			a.Logger.Warn("this host's loops can't be listed", "error", err)
			return
		}
		for _, r := range records {
			if r.Closed || r.Namespace != a.Namespace || ctx.Err() != nil {
				continue
			}
			if s, err := headState(ctx, r); err != nil {
				a.Logger.Debug("a loop's state can't be read", "loop", r.Loop, "error", err)
			} else if s.Loop != "" {
				a.Telemetry.Met(telemetry.Loop(s))
			}
		}
	})
}

// headState returns the state at the head of a loop's ledger, the zero state if there is no ledger yet.
func headState(ctx context.Context, r hostrecord.Record) (loop.State, error) {
	store, err := store.Open(ctx, r.Store)
	if err != nil {
		return loop.State{}, err
	}
	head, err := store.Ref(ctx, r.Ledger)
	if err != nil || head == "" {
		return loop.State{}, err
	}
	return ledger.Open(store).State(ctx, head)
}
