package activities

import (
	"context"

	sdk "go.temporal.io/sdk/client"
)

// RestoreDesk brings the desk of a loop to head, as its next step would.
func (a *Activities) RestoreDesk(ctx context.Context, ref, head string) error {
	ws, err := a.Workspace(ctx, ref)
	if err != nil {
		return err
	}
	defer ws.Leave(ws.Desk)
	return ws.Restore(ctx, ws.Desk, head)
}

// RestoreJudge brings the judge of a loop to head, and returns what the next step would tell of setup.
func (a *Activities) RestoreJudge(ctx context.Context, ref, head string) (told string, err error) {
	ws, err := a.Workspace(ctx, ref)
	if err != nil {
		return "", err
	}
	defer ws.Leave(ws.Judge)
	err = ws.Restore(ctx, ws.Judge, head)
	return ws.RepeatedSince(), err
}

// Connect gives the activities a connection of the test's own.
func (a *Activities) Connect(c sdk.Client) { a.Client = c }

// RestoreSide brings the desk of a candidate to head, as its next step would, and returns where it is.
func (a *Activities) RestoreSide(ctx context.Context, ref string, desk int, head string) (string, error) {
	ws, err := a.Workspace(ctx, ref)
	if err != nil {
		return "", err
	}
	side := ws.At(desk)
	defer side.Leave(side.Desk)
	return side.Desk.Dir, side.Restore(ctx, side.Desk, head)
}
