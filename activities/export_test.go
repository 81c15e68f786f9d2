package activities

import (
	"context"
	"path/filepath"
	"time"

	sdk "go.temporal.io/sdk/client"

	"pawl/internal/act"
	"pawl/internal/agent/stream"
	"pawl/internal/loop"
	"pawl/internal/proc"
	"pawl/internal/sandbox"
	"pawl/internal/task"
)

// MaxListings is a bound that tests come up against.
const MaxListings = maxListings

// ForgetReports removes the reports of a run before.
var ForgetReports = forgetReports

// Call makes one call of a streaming agent as Step does, without a loop around it.
func Call(ctx context.Context, s *proc.Supervisor, use string, in act.Call, command proc.Command, tell func(loop.Usage, string)) (act.Called, error) {
	adapter, _ := stream.Lookup(use)
	command.OutputLimit = streamLimit
	c, err := newCall(adapter, in.Budget, command.Stdout, tell)
	if err != nil {
		return act.Called{}, err
	}
	c.silence = time.Duration(in.SilenceMs) * time.Millisecond
	result, err := c.run(ctx, s, command)
	out := act.Called{Outcome: act.Outcome{ExitCode: result.ExitCode, Signal: result.Signal, TimedOut: result.TimedOut, Interrupted: result.Interrupted, StartError: result.StartError, Log: filepath.Dir(command.Stdout)}}
	_, refusal := c.collect(&out)
	(&exchange{call: c}).classify(&out, refusal, time.Now())
	return out, err
}

// Collect reads what an agent without a stream has left in a folder.
func Collect(dir string, exitCode int) act.Called {
	out := act.Called{Outcome: act.Outcome{ExitCode: exitCode, Log: dir}}
	(&exchange{dir: dir}).collect(&out, filepath.Join(dir, "stdout"), act.Call{})
	return out
}

// RestoreDesk brings the desk of a loop to head, as its next step would.
func (a *Activities) RestoreDesk(ctx context.Context, ref, head string) error {
	ws, err := a.workspace(ctx, ref)
	if err != nil {
		return err
	}
	defer ws.leave(ws.desk)
	return ws.restore(ctx, ws.desk, head)
}

// RestoreJudge brings the judge of a loop to head, and returns what the next step would tell of setup.
func (a *Activities) RestoreJudge(ctx context.Context, ref, head string) (told string, err error) {
	ws, err := a.workspace(ctx, ref)
	if err != nil {
		return "", err
	}
	defer ws.leave(ws.judge)
	err = ws.restore(ctx, ws.judge, head)
	return ws.repeatedSince(), err
}

// Connect gives the activities a connection of the test's own.
func (a *Activities) Connect(c sdk.Client) { a.connected = c }

// Reachable is what Place says once a host is known to be gone.
func (a *Activities) Reachable(ctx context.Context, in act.Place) (act.Placed, error) {
	return a.reachable(ctx, in)
}

// Forget drops what this worker knows of its loops, as its death would.
func (a *Activities) Forget() {
	a.Workspaces.mu.Lock()
	defer a.Workspaces.mu.Unlock()
	for _, ws := range a.workspaces {
		ws.endProcesses()
	}
	clear(a.workspaces)
	clear(a.steps.running)
}

// Surrounded is what the loops of this host are told of Temporal: the hosts that their proxy closes, and whether the
// engine asks who comes.
func Surrounded(a *Activities) (closed []string, asks bool) {
	ws := &loopWorkspace{machine: a.machine}
	return ws.request(sandbox.Machine{}).Egress.Closed, a.asks()
}

// RestoreSide brings the desk of a candidate to head, as its next step would, and returns where it is.
func (a *Activities) RestoreSide(ctx context.Context, ref string, desk int, head string) (string, error) {
	ws, err := a.workspace(ctx, ref)
	if err != nil {
		return "", err
	}
	side := ws.at(desk)
	defer side.leave(side.desk)
	return side.desk.Dir, side.restore(ctx, side.desk, head)
}

// LookTwice is what a validation finds that looks in this way.
func LookTwice(look func() []task.Drift) ([]task.Drift, error) {
	var v validation
	err := v.twice(context.Background(), func(context.Context) error {
		v.out.Drift = append(v.out.Drift, look()...)
		return nil
	})
	return v.out.Drift, err
}
