package ends_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

func TestP5_SeveralNumbersAreAWarningAndTheLastCounts(t *testing.T) {
	world.Slow(t, "internal/metric reads the numbers")
	w := world.New(t, world.Raises).Set(doc{"verify": doc{"command": "echo 3 of 99; cat work/n"}})
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Err, "3 numbers in the output, the last one, 10, was taken")
	require.Equal(t, 1, strings.Count(s.Err, "numbers in the output"), "once is enough")
	require.Contains(t, s.Err, "METRIC <name>=<number>")
	require.Equal(t, "11", w.LastRow()[1])
}

// The first improvement is in another unit, which is converted. The second number has a unit that can't be compared.
func TestP5_AMetricInAnotherUnitIsConvertedOrRefused(t *testing.T) {
	world.Slow(t, "internal/metric converts the numbers")
	w := world.New(t, "").Does(deed{"take microseconds", ``, ""}, deed{"take kilobytes", `echo 20 >work/n`, "error:no-number"}, deed{"take seconds", `echo 30 >work/n`, "no-improvement"}).
		Set(doc{"verify": doc{"command": "case $(cat work/n) in 10) echo 1.01ms ;; 11) echo 999µs ;; 20) echo 1KB ;; 30) echo 5s ;; esac", "direction": "lower"}})
	r := w.Run(0)
	require.Equal(t, []string{"1.01", "0.999"}, []string{r.Result.Baseline.String(), r.Result.Best.String()})
	require.Equal(t, 1, len(r.Result.Kept))
	require.Contains(t, w.LastRow(), "5000")
}

func TestP5_VerifyThatFailsLater(t *testing.T) {
	world.Slow(t, "TestP5_VerifyThatHangsLaterEndsTheLoop ends likewise")
	deeds := []deed{
		{"fail", `echo crash >work/n`, "error:verify-crash"},
		{"say nothing", `echo none >work/n`, "error:no-number"},
		{"raise the number", ``, ""},
		{"say what is no number", `echo 12 NaN >work/n`, "error:no-number"},
	}
	w := world.New(t, "").Does(deeds...).Set(doc{"verify": doc{"command": "! grep crash work/n && sed s/none// work/n"}})
	r := w.Run(0)
	require.Equal(t, 3, r.Result.Discarded)
	w.Come(deeds...)
	require.Equal(t, "11", w.Kept("work/n"))
	require.Len(t, w.Subjects(), 7, "four changes, three reverts")
}

func TestP5_VerifyThatHangsLaterEndsTheLoop(t *testing.T) {
	world.Slow(t, "workflows has the decision, and TestAgentThatHangs hangs")
	w := world.New(t, world.Raises).Set(doc{
		"verify": doc{"command": "! grep 11 work/n || { tail -f /dev/null; }; cat work/n", "timeout": "5s"}, "limits": doc{"iterations": 5},
	})
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 3, s.Code, s.Err)
	require.Contains(t, s.Out, "ALO_PHASE_TIMEOUT")
	require.Contains(t, s.Out, "verify took longer than 5s")
	require.Contains(t, s.Out, "verify.timeout")
	w.NothingRuns()
	require.Equal(t, row{"1", "10", "+0.00", "no", "error:timeout: raise the number"}, w.LastRow())
	require.Equal(t, "10", w.Kept("work/n"))
	st := w.Show()
	require.Equal(t, []string{"failed", "timeout", "ALO_PHASE_TIMEOUT"}, []string{st.Status, st.ExitStatus, st.ErrorCode})
}

// If a command prints no number twice in a row, and none for the code without these changes either, a person is asked.
func TestP5_NoNumberTwiceInARowIsAQuestion(t *testing.T) {
	world.Slow(t, "a table of internal/loop/rules decides it")
	w := world.New(t, `touch "$WORLD/mute"; echo "$PAWL_ITERATION" >>work/other; echo "change something"`)
	w.Set(doc{
		"verify": doc{"command": "test -e " + w.Dir + "/mute || cat work/n"}, "limits": doc{"iterations": 5},
		"sandbox": doc{"use": "off"}, "agent": doc{"env": doc{"WORLD": w.Dir}},
	})
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 4, s.Code, s.Err)
	require.Contains(t, s.Err, "verify printed no number twice in a row")
	st := w.Show()
	require.Equal(t, "waiting", st.Status)
	require.Equal(t, "question", st.Gate.Kind)
	require.Equal(t, []string{"retry", "halt"}, st.Gate.Choices)
	require.Equal(t, 2, w.Pawl("answer", w.Loop, "perhaps").Code)
	require.Equal(t, 0, w.Pawl("answer", w.Loop, "halt").Code)
	require.Equal(t, "ALO_CANCELLED", w.Waits("halted").ErrorCode)
}

func TestP8_LoopStopFile(t *testing.T) {
	t.Run("in the repository's root, before the start", func(t *testing.T) {
		world.Slow(t, "it is found later as well")
		w := world.New(t, world.Raises)
		w.Write("repo/loop-stop", "")
		w.Before = w.Snapshot()
		r := w.Run(5)
		require.Equal(t, "ALO_CANCELLED", r.Result.ErrorCode)
		require.Contains(t, r.Result.Reason, filepath.Join(w.Repo, "loop-stop"))
	})
	t.Run("on the desk, where it counts for nothing", func(t *testing.T) {
		w := world.New(t, world.Raises+`; touch loop-stop`).Set(doc{"limits": doc{"iterations": 2}})
		w.Run(0)
		require.Equal(t, []string{"work/n"}, slices.Compact(strings.Fields(w.Git("diff", "--name-only", "main", "refs/heads/pawl/"+w.Loop))))
		require.Len(t, w.Results(w.Loop), 3)
	})
	for where, stop := range map[string]string{
		"in the repository's root": `touch "$WORLD/repo/loop-stop"`,
		"in the loop's folder":     `touch "$H/loops/$PAWL_LOOP/loop-stop"`,
	} {
		t.Run(where, func(t *testing.T) {
			if where == "in the loop's folder" {
				world.Slow(t, "as in the repository's root")
			}
			w := world.New(t, world.Raises+`; [ "$PAWL_ITERATION" != 2 ] || `+stop)
			// The agent stands for a person. In a sandbox it could not do that.
			w.Set(doc{"limits": doc{"iterations": 5}, "sandbox": doc{"use": "off"}, "agent": doc{"env": doc{"WORLD": w.Dir, "H": w.Home}}})
			s := w.Pawl("run", "--yes", w.SpecFile())
			require.Equal(t, 5, s.Code, s.Err)
			require.Contains(t, s.Out, "loop-stop asks the loop to stop")
			require.Contains(t, s.Out, "ALO_CANCELLED")
			require.Contains(t, s.Out, "Loop halted: 2 iterations, 2 kept, best metric: 12 (baseline: 10, delta: +2)")
			require.Len(t, w.Results(w.Loop), 3, "the iteration is finished first")
			require.NotContains(t, w.OnBranch(), "loop-stop")
			os.Remove(filepath.Join(w.Repo, "loop-stop"))
		})
	}
}

// The output of verify may be long and have any form.
func TestP5_NumberAtTheEndOfMuch(t *testing.T) {
	world.Slow(t, "the output is long")
	w := world.New(t, world.Raises).Set(doc{"verify": doc{"command": `yes 12345 | head -c 60000000; printf '\377\033[31m\n'; printf 'METRIC height=%s\n' "$(cat work/n)"`}})
	w.Run(0)
	require.Equal(t, row{"1", "11", "+1.00", "yes", "raise the number"}, w.LastRow())
}
