package steward_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/test/world"
)

// A steward that was terminated in Temporal goes on from its ledger. One that is started without it says so.
func TestS11_AStewardThatTemporalEndedGoesOnFromItsLedger(t *testing.T) {
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
