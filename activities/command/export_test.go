package command

import "context"

// ForgetReports removes the reports of an earlier run, KeepReports copies those of this one.
var ForgetReports, KeepReports = forgetReports, keepReports

// JoinOrStart starts a step that runs that, and returns what waits for its end.
func (a *Runner) JoinOrStart(id string, run func() (any, error)) (wait func() (any, error)) {
	r := a.steps.joinOrStart(id, func(context.Context, *Running) (any, error) { return run() })
	return func() (any, error) { <-r.done; return r.out, r.err }
}
