package opening

import (
	"context"

	"pawl/activities/hosted"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/userrepo"
)

// begun returns the commit at which the steward's task of this loop began, "" if that is the loop's own base. The
// proposal is the diff from there, so that one proposal covers all steps of a task. It returns a PRECONDITION_FAILED
// if the base does not descend from that commit, or if the branch to apply to does not exist.
func begun(ctx context.Context, ws *hosted.Workspace, session map[string]string, base string) (string, error) {
	if onto := session[spec.SessionOnto]; onto != "" {
		there := ""
		if git.CheckBranch(onto) == nil {
			var err error
			if there, err = ws.Pushed(ctx, "refs/heads/"+onto); err != nil {
				return "", Precondition(userrepo.Unreached(ws.Repo, err))
			}
		}
		if there == "" {
			return "", hosted.Refuse(fault.New(fault.PreconditionFailed, "session.onto is %q, and %s has no such branch", loop.Clip(onto, 80), ws.Repo).
				Advise("Name the branch that the task's work is to be applied to."))
		}
	}
	at := session[spec.SessionBase]
	switch {
	case at == "" || at == base:
		return "", nil
	case !ws.DescendsFrom(ctx, base, at):
		return "", hosted.Refuse(fault.New(fault.PreconditionFailed, "session.base is %q, but the loop's base %s does not descend from such a commit", loop.Clip(at, 80), base[:10]).
			Advise("Give the full hash of the commit at which the task began, or leave session.base out."))
	}
	return at, nil
}
