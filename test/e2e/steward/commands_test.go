package steward_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/steward"
	"pawl/internal/steward/task"
	"pawl/test/harness/world"
)

// TestS4_EveryCommandOfTheStewardsPageWorksForAnOrdinaryUser takes three tasks of three tiers to their end, and uses
// every command of the pages about stewards on the way. None of it needs root.
func TestS4_EveryCommandOfTheStewardsPageWorksForAnOrdinaryUser(t *testing.T) {
	world.Slow(t, "the other tests of this package see tasks of all tiers through")
	w := raise(t, func(charter world.Doc) { charter["limits"] = world.Doc{"costUSD": 1} })
	w.Ordinary()
	up := w.Start("up", "--json")
	stop := sync.OnceFunc(func() { up.Interrupt(); <-up.Gone })
	t.Cleanup(stop)
	w.Until("pawl serves", func() bool { return w.Engine().Address != "" })
	used := map[string]bool{}
	run := func(args ...string) world.Said {
		t.Helper()
		name := args[0]
		if name == "steward" {
			name += " " + args[1]
		}
		used[name] = true
		return w.Done(args...)
	}
	hand := func(id, text string, front ...string) {
		w.Write(id+".md", "---\nid: "+id+"\n"+strings.Join(front, "\n")+"\n---\n"+text+"\n")
		run("steward", "submit", "crew", filepath.Join(w.Dir, id+".md"))
	}

	run("validate", filepath.Join(w.Dir, "crew.json"))
	run("steward", "up", filepath.Join(w.Dir, "crew.json"), "--detach")
	require.Contains(t, run("steward", "list").Out, "crew")

	// In mode plan, held or paused, nothing begins.
	run("steward", "hold", "crew")
	hand("plain", "Write a line.")
	hand("risky", "A delicate matter.")
	hand("dear", "A dear line.", "priority: -1")
	require.Equal(t, 3, w.state().QueueCount)
	run("steward", "tier", "crew", "dear", "T2")
	run("steward", "prioritize", "crew", "plain", "1")
	run("steward", "mode", "crew", "plan")
	run("steward", "resume", "crew")
	risky := w.task("risky", "asks", waiting)
	dear := w.task("dear", "asks", waiting)
	require.Equal(t, task.T1, risky.Tier)
	require.Equal(t, task.T2, dear.Tier)
	plain := w.task("plain", "is planned", func(t steward.Task) bool { return t.Plan != nil })
	require.Equal(t, task.T3, plain.Tier)
	run("steward", "pause", "crew")
	run("steward", "mode", "crew", "mission")
	run("steward", "continue", "crew")
	w.task("plain", "is done", done)

	// What waits, for people and for programs.
	var waits []struct {
		Steward, Task string
		Gate          struct{ ID, Kind, Hash string }
		Ways          []struct{ Command, Message string }
	}
	require.NoError(t, json.Unmarshal([]byte(run("inbox", "--json").Out), &waits))
	require.Len(t, waits, 2)
	for _, wait := range waits {
		require.Equal(t, "crew", wait.Steward)
		require.Equal(t, "tier", wait.Gate.Kind)
		require.NotEmpty(t, wait.Ways)
		require.Contains(t, run("inbox").Out, wait.Ways[0].Command)
	}
	riskyPage := run("steward", "show", "crew", "risky").Out
	require.Contains(t, riskyPage, "T1")
	require.Equal(t, 1, strings.Count(riskyPage, "A delicate matter."), "what was submitted, once: %s", riskyPage)
	require.Contains(t, run("steward", "show", "crew", "risky", "--json").Out, `"body": "A delicate matter."`)

	// Approved by its hash; interrupted by another task while it works; steered.
	w.Write("wait", "")
	require.NoError(t, os.Chmod(filepath.Join(w.Dir, "wait"), 0o644))
	run("steward", "answer", "crew", "--task", "risky", "--approve", "--hash", risky.Plan.Hash)
	w.task("risky", "is at work", func(t steward.Task) bool { return t.State == task.Executing && len(t.Loops) == 1 })
	atWork := regexp.MustCompile(`(?m)^crew-risky-\S+ +running +\w+ +1 `)
	w.Until("the list says that the first iteration goes on", func() bool { return atWork.MatchString(run("list").Out) })
	hand("later", "Write a late line.")
	run("steward", "steer", "crew", "later", "Mind the step.")
	run("steward", "interrupt", "crew", "later")
	w.task("risky", "gives way", func(t steward.Task) bool { return t.Interrupted == "later" })
	require.NoError(t, os.Remove(filepath.Join(w.Dir, "wait")))
	w.task("later", "is done", done)
	w.task("risky", "is done", done)

	// A task that costs more than it may.
	run("steward", "answer", "crew", "--task", "dear", "--choice", "replan", "--note", "once more")
	dear = w.task("dear", "asks again", func(t steward.Task) bool {
		return waiting(t) && t.Plan != nil && t.WaitingFor.Gate != dear.WaitingFor.Gate
	})
	run("steward", "answer", "crew", "--task", "dear", "--gate", dear.WaitingFor.Gate, "--approve", "--hash", dear.Plan.Hash)
	w.task("dear", "has cost what it may", func(t steward.Task) bool { return waiting(t) && t.WaitingFor.Kind == "budget" })
	gate := w.state().Gates[0]
	w.Refused("HASH_MISMATCH", "steward", "extend", "crew", "--task", "dear", "--limit", "costUSD=10", "--hash", strings.Repeat("ab", 32))
	run("steward", "extend", "crew", "--task", "dear", "--limit", "costUSD=10", "--hash", gate.Hash)
	w.task("dear", "is done", done)

	// A file that somebody has changed by hand.
	status := filepath.Join(w.Repo, ".pawl", "STATUS_LEDGER.md")
	require.NoError(t, os.WriteFile(status, []byte("mine\n"), 0o644))
	hand("last", "Write a last dear line.")
	last := w.task("last", "asks: the one like it was dear", waiting)
	require.Equal(t, 1, last.Plan.Cost.N)
	run("steward", "answer", "crew", "--task", "last", "--gate", last.WaitingFor.Gate, "--approve", "--hash", last.Plan.Hash)
	w.task("last", "is done", done)
	w.Until("the steward asks about the file", func() bool { s := w.state(); return len(s.Gates) == 1 && s.Gates[0].Kind == steward.GateDrift })
	require.Equal(t, "mine\n", world.ReadFile(status), "nothing is overwritten in silence")
	run("steward", "answer", "crew", "--gate", w.state().Gates[0].ID, "--choice", "restore")
	w.Until("the file is as the steward has it", func() bool { return strings.Contains(world.ReadFile(status), "last") })

	require.Contains(t, run("log", "crew").Out, "plain: submitted by")
	run("log", "crew", "--verify") // it fails if anything is wrong
	run("steward", "show", "crew")
	hand("open", "A delicate matter.")
	w.task("open", "asks", waiting)
	w.Until("the list says so", func() bool { return strings.Contains(run("steward", "list").Out, "waits: tier") }) // Temporal lists a moment later
	run("steward", "stop", "crew")
	w.Until("the steward is over", func() bool { return w.state().Status.Ended() })
	ended := func(from string) { // with a gate that nobody answers
		t.Helper()
		list := run("steward", "list").Out
		require.Contains(t, list, "halted", from)
		require.NotContains(t, list, "waits", from)
		require.Contains(t, list, "tasks done", from)
		require.NotContains(t, run("inbox").Out, "crew", from)
		require.NotContains(t, run("steward", "show", "crew", "open").Out, "--approve", from)
	}
	ended("the engine")
	require.NotContains(t, world.ReadFile(status), "pawl steward answer")
	stop()
	ended("the ledger")

	shown := regexp.MustCompile("pawl (steward [a-z]+|inbox|validate|log)").FindAllStringSubmatch(world.ReadFile("docs/tutorials/first-steward.md")+world.ReadFile("docs/guides/steward.md")+world.ReadFile("docs/reference/steward.md"), -1)
	require.Greater(t, len(shown), 20)
	for _, s := range shown {
		require.True(t, used[s[1]], "the pages about stewards have `pawl %s`, which this test does not use", s[1])
	}
}
