package client_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"

	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/loop"
)

// unread answers with one error after another, the last of them again and again.
type unread struct {
	sdk.WorkflowRun
	errs []error
}

func (u *unread) Get(context.Context, any) error {
	err := u.errs[0]
	u.errs = u.errs[min(1, len(u.errs)-1):]
	return err
}

func TestWhoFollowsADeletedLoopDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	e := new(client.Client).Await(t.Context(), &unread{errs: []error{serviceerror.NewUnavailable("away"), serviceerror.NewNotFound("no execution")}})
	require.Equal(t, client.Ending{Status: loop.Halted, Code: fault.Cancelled, Lost: "Temporal does not know it any more"}, e)
}
