package proposals

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"pawl/activities/hosted"
	"pawl/internal/lazyregexp"
	"pawl/internal/store"
	"pawl/internal/userrepo"
	"pawl/internal/workspace"
)

// iterated matches the beginning of the subjects of commits on a loop's branch (P4).
var iterated = lazyregexp.New(`^loop\(iter-\d+\): `)

// cleanBranch pushes a branch with only the kept changes, from base to head, to the user's repository. The loop's own
// branch there has everything that was tried.
func cleanBranch(ctx context.Context, ws *hosted.Workspace, base, head string) error {
	ref := workspace.CleanBranch(ws.Branch)
	before, err := ws.Objects.Ref(ctx, ref)
	if err != nil {
		return err
	}
	if before != "" { // another loop may have that name
		if c, err := ws.Objects.ReadCommit(ctx, before); err != nil || !strings.Contains(c.Message, "\nPawl-Loop: "+ws.Loop+"\n") {
			return errors.Join(err, fmt.Errorf("%s is another loop's", ref))
		}
	}
	kept, err := ws.Objects.Settled(ctx, base, head)
	if err != nil || len(kept) == 0 {
		return err
	}
	tip := base
	for _, c := range kept {
		tip, err = ws.Objects.Make(ctx, store.NewCommit{
			Tree: c.Tree, Parents: []string{tip}, Author: c.Author, Time: c.Time, Message: iterated.ReplaceAllString(c.Message, ""),
		})
		if err != nil {
			return err
		}
	}
	if before != tip {
		if err := ws.Objects.SetRef(ctx, ref, tip, before); err != nil {
			return err
		}
	}
	repo, err := ws.Repository()
	if err != nil {
		return err
	}
	defer repo.Close()
	return userrepo.Move(ctx, ws.Objects, repo, ref, tip, before)
}
