package steward_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/test/harness/world"
)

// A steward that was terminated in Temporal goes on from its ledger. One that is started without it says so.
func TestS11_AStewardThatTemporalEndedGoesOnFromItsLedger(t *testing.T) {
	world.Slow(t, "activities/steward restores one, and test/e2e/crash kills it")
	world.NeedCLI(t)
	w := open(t, nil)
	w.Env = append(w.Env, "TEMPORAL_ADDRESS="+w.Engine().Address)
	terminate := func() {
		w.Temporal("workflow", "terminate", "--workflow-id", "crew", "--reason", "test")
		w.Until("the steward is over", func() bool { return w.state().Status.Ended() })
	}
	w.Done("steward", "hold", "crew")
	w.submit("later", "Write a line.")
	terminate()

	file := filepath.Join(w.Dir, "crew.json")
	said := w.Done("steward", "up", file, "--detach").Err
	require.Contains(t, said, "nobody stopped the last steward crew, which left 1 task open")
	commit := regexp.MustCompile(`--ledger ([0-9a-f]{40})`).FindStringSubmatch(said)
	require.Len(t, commit, 2, said)
	w.Until("the new one has begun", func() bool { s := w.state(); return s.Status == loop.Running && s.Ledger != commit[1] })
	require.Nil(t, w.state().Find("later"))
	w.Done("steward", "stop", "crew")
	w.Until("the steward is over", func() bool { return w.state().Status.Ended() })

	said = w.Done("steward", "up", file, "--detach", "--ledger", commit[1]).Err
	require.NotContains(t, said, "nobody stopped")
	w.Until("it has continued", func() bool { return w.state().Find("later") != nil })
	log := w.Done("log", "crew", "--all")
	require.Contains(t, log.Out, "later", "the record is that of the steward that runs, not of the one that was started last")
	require.Contains(t, log.Err, "`pawl log crew.2`")
	require.NotContains(t, w.Done("log", "crew.2", "--all").Out, "later")
	w.Done("steward", "resume", "crew")
	w.task("later", "is done", done)
	require.Equal(t, "crew-later-work", w.Git("show", "pawl/crew-later-work:work/log"))
}

// A person resets a loop of the steward in Temporal. A run that can go on does. One that was reset to before what its
// ledger has fails, and the step is done by another loop. Either way the task ends with one proposal.
func TestS11_ALoopThatIsResetInTemporal(t *testing.T) {
	world.Slow(t, "workflows/steward has tasks whose loop is another")
	world.NeedCLI(t)
	w := open(t, nil)
	w.Env = append(w.Env, "TEMPORAL_ADDRESS="+w.Engine().Address)
	resets := map[string][]string{"FirstWorkflowTask": {"crew-first-work", "crew-first-work.2"}}
	if world.All() { // a run that can go on is what every killed worker leaves
		resets["LastWorkflowTask"] = []string{"crew-last-work"}
	}
	for reset, loops := range resets {
		id := map[string]string{"LastWorkflowTask": "last", "FirstWorkflowTask": "first"}[reset]
		w.Write("wait", "")
		w.submit(id, "Write a line.")
		first := "crew-" + id + "-work"
		w.task(id, "is at work", func(t steward.Task) bool { return len(t.Steps) > 0 && t.Steps[0].Loop == first })
		w.Until("its agent works", func() bool {
			r := w.Pawl("show", first, "--json")
			return r.Code == 0 && strings.Contains(r.Out, `"phase": "write"`)
		})
		w.Temporal("workflow", "reset", "--workflow-id", first, "--type", reset, "--reason", "test")
		require.NoError(t, os.Remove(filepath.Join(w.Dir, "wait")))
		found := w.task(id, "is over", over)
		require.Equal(t, steward.Done, found.Outcome)
		require.Equal(t, loops, found.Loops)
		last := loops[len(loops)-1]
		require.Equal(t, last, w.Git("show", "pawl/"+last+":work/log"))
		require.NotEmpty(t, found.Proposal)
	}
	require.Empty(t, w.state().Drift)
}
