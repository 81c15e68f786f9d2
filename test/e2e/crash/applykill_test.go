package crash_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"pawl/internal/fault"
	"pawl/internal/ledger"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/test/harness/world"
)

// TestE3_AnApplyKilledAtEveryPoint kills engine and worker with kill -9 while a proposal is applied. The user's branch
// must get the change once, and the ledger must say so. The last point is that of a base that has moved, and it moves
// again before the next process starts.
func TestE3_AnApplyKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	for _, at := range world.Sample(2, []string{"apply.landed", "task.Apply", "apply.before", "apply.recorded", "report.Apply", "apply.renewed"}) {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newMachine(t, raise)
			n := w.start(bothRoles)
			require.NoError(t, w.begin(w.spec(nil)))
			r, err := w.end()
			require.NoError(t, err)
			w.outcome(r)
			require.NoError(t, w.does(n, "Review", doc{"loop": w.Loop, "hash": r.Proposal.Hash, "answer": "approve", "by": "ann"}))
			n.stop(t)

			moves := at == "apply.renewed"
			if moves {
				w.commit("README.md", "another hill\n")
			}
			base := w.base
			n = w.start(bothRoles, "PAWL_CRASH="+at)
			applied := make(chan error, 1)
			go func() { applied <- w.does(n, "Apply", doc{"loop": w.Loop, "hash": r.Proposal.Hash, "how": "squash"}) }()
			<-n.gone
			require.True(t, n.killed(), "%s must have been killed, not have ended: %s", n.name, n.tail())
			<-applied
			if moves {
				w.commit("README.md", "yet another hill\n")
			}
			err = w.does(w.start(bothRoles), "Apply", doc{"loop": w.Loop, "hash": r.Proposal.Hash, "how": "squash"})

			st, l, head := w.openLedger()
			report, err2 := ledger.Verify(t.Context(), st, head)
			require.NoError(t, err2)
			require.Empty(t, report.Faults)
			s, err2 := l.State(t.Context(), head)
			require.NoError(t, err2)
			branch, err2 := st.Ref(t.Context(), w.record().Branch)
			require.NoError(t, err2)
			require.Equal(t, s.Head, branch, "the loop's branch is where the ledger says")
			require.Empty(t, w.Git("status", "--porcelain"))
			if moves {
				var failed *temporal.ApplicationError
				require.ErrorAs(t, err, &failed)
				require.Equal(t, string(fault.BaseMoved), failed.Type(), "%s", err)
				require.Equal(t, rules.Open, s.Proposal.State)
				require.Equal(t, w.base, s.Proposal.Base)
				require.Equal(t, w.base, w.Git("rev-parse", "HEAD"), "nobody has approved the new proposal")
				return
			}
			require.NoError(t, err)
			require.Equal(t, rules.Applied, s.Proposal.State)
			require.Len(t, lines([]byte(w.Git("log", "--format=%H", base+"..HEAD"))), 1, "the change is there once")
			require.Equal(t, s.Proposal.Commit, w.Git("rev-parse", "HEAD"))
			require.Equal(t, "11\n", w.Read("repo/work/n"))
		})
	}
}

// does runs a workflow on the loop to its end, or until the node has ended. If it runs already, it waits for that one.
func (w *machine) does(n *node, kind string, in doc) error {
	ctx := n.living
	run, err := w.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: w.Loop + "-" + kind, TaskQueue: api.TaskQueue, WorkflowTaskTimeout: 2 * time.Second,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, kind, in)
	if err != nil {
		return err
	}
	return run.Get(ctx, nil)
}
