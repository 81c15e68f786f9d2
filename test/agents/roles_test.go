package agents_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// TestE1_WhatARoleMayNotDoIsNotRun takes permissions away. The loop ends with the code and names the role and the
// permission, and the agent is never called.
func TestE1_WhatARoleMayNotDoIsNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		permissions doc
		says        string
	}{
		"a writer that may do nothing":  {doc{"writer": []string{}}, "the role writer is not permitted canExecuteTasks"},
		"a writer that may not edit":    {doc{"writer": []string{"canExecuteTasks"}}, "the role writer is not permitted canEditSource"},
		"an ideator that may not think": {doc{"ideator": []string{"canEditSource"}}, "the role ideator is not permitted canExecuteTasks"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "a writer that may not edit" {
				world.Slow(t, "a writer lacks another permission")
			}
			w := world.New(t, `echo >"$WORLD/called"; `+world.Raises)
			w.Set(doc{"permissions": c.permissions, "agent": doc{"ideas": strings.Contains(c.says, "ideator")}})
			s := w.Pawl("run", "--yes", w.SpecFile())
			require.Equal(t, 3, s.Code, s.Err)
			require.Contains(t, s.Out+s.Err, c.says)
			st := w.Show()
			require.Equal(t, "failed PERMISSION_DENIED", st.Status+" "+st.ErrorCode)
			require.Contains(t, st.Reason, c.says)
			require.False(t, w.Exists("called"), "nothing is executed")
			require.Empty(t, onBranchChanged(w), "nothing is kept")
		})
	}
}

// TestE6_WhatAReadOnlyRoleChangesIsThrownAway has an ideator that edits although it may not.
func TestE6_WhatAReadOnlyRoleChangesIsThrownAway(t *testing.T) {
	w := world.New(t, `if [ "$PAWL_ROLE" = ideator ]; then echo 500 >work/n; echo new >work/new; echo "take the lift"; else cat work/n >>"$WORLD/found"; ls work/new && exit 1; `+world.Raises+`; fi`)
	w.Set(doc{"agent": doc{"ideas": true}})
	r := w.Run(0)
	require.Equal(t, 1, r.Result.KeptCount)
	require.Equal(t, "10\n", w.Read("found"), "the writer starts from what was committed")
	require.Equal(t, "11", w.Kept("work/n"))
	events, _ := w.Events()
	said := ""
	for _, e := range events {
		if e.Type == "permission_denied" {
			said += e.Reason
		}
	}
	require.Contains(t, said, "the role ideator changed source in the phase ideate, where no role is permitted canEditSource")
	require.Contains(t, said, "2 files (work/n, work/new)")
}

// TestRolesHaveAgentsOfTheirOwn overrides command, arguments, environment and model for each role.
func TestRolesHaveAgentsOfTheirOwn(t *testing.T) {
	world.Slow(t, "TestE1_WhatARoleMayNotDoIsNotRun has roles")
	w := world.New(t, `echo "$PAWL_ROLE: $MOOD, $PAWL_MODEL, $*" >>"$WORLD/said"; `+world.Raises)
	w.Write("ideas.sh", `cat >/dev/null; echo "$PAWL_ROLE: $MOOD, $1" >>"$WORLD/said"; echo "take a step"`)
	w.Set(doc{"agent": doc{
		"ideas": true, "model": "big", "args": []string{"--all"}, "env": doc{"MOOD": "calm", "WORLD": w.Dir},
		"roles": doc{
			"ideator": doc{"command": "sh " + filepath.Join(w.Dir, "ideas.sh") + ` "$1"`, "env": doc{"MOOD": "wild"}, "args": []string{"--far"}},
			"writer":  doc{"model": "small"},
		},
	}})
	w.Run(0)
	require.Equal(t, "ideator: wild, --far\nwriter: calm, small, --all\n", w.Read("said"))
}

// streams makes a world whose agent is a script in place of a program. The script's arguments are in $WORLD/said, and
// its output is a stream.
func streams(t *testing.T, use, script string) *world.World {
	t.Helper()
	w := world.New(t, "")
	standIn(w, use, script)
	return w
}

func standIn(w *world.World, use, script string) {
	w.T.Helper()
	w.Write("program.sh", `echo "$*" >>"$WORLD/said"; cat >"$WORLD/prompt"`+"\n"+script+"\n")
	delete(w.Spec, "agent")
	w.Set(doc{"agent": doc{"use": use, "command": []string{"sh", filepath.Join(w.Dir, "program.sh")}, "env": doc{"WORLD": w.Dir, "STREAMS": testdata()}, "ideas": false}})
}

// testdata returns the folder of the recorded streams. Agents in a sandbox can read it because the spec names it.
func testdata() string {
	path, err := filepath.Abs(filepath.Join("internal", "agent", "adapter", "testdata"))
	if err != nil {
		panic(err)
	}
	return path
}

// recorded returns a command that prints a stream of the real program.
func recorded(name string) string {
	return `cat "$STREAMS/` + name + `.jsonl"`
}

// TestProgramsByTheirStreams checks the counts and the description from each program's recorded stream.
func TestProgramsByTheirStreams(t *testing.T) {
	const changed, raised = "Changed hello to goodbye in hello.txt.", "raise the number by one"
	programs := map[string]struct{ stream, called, says, tokens string }{
		"claude":   {"claude-partial", "-p --model m --permission-mode acceptEdits --allowedTools Bash,WebFetch,WebSearch --disallowedTools Agent,Task,Workflow,ScheduleWakeup,CronCreate --session-id ", changed, "3840"},
		"codex":    {"codex-exec", "exec -m m -c features.multi_agent=false --json --sandbox workspace-write --ephemeral --ignore-user-config --ignore-rules -\n", changed, "3840"},
		"gemini":   {"gemini-stream", "-m m --skip-trust --policy ", changed, "3840"},
		"opencode": {"opencode-1.18.33", "run -m m --pure --format json\n", raised, "3900"},
		"pi":       {"pi-0.73.1", "-p --mode json --model m --no-session -ne -ns -np\n", raised, "3900"},
		"qwen":     {"qwen-0.24.4", "-m m --exclude-tools agent,", raised, "3900"},
	}
	for _, use := range world.Sample(2, slices.Sorted(maps.Keys(programs))) {
		t.Run(use, func(t *testing.T) {
			c := programs[use]
			w := streams(t, use, world.Raises+" >/dev/null; "+recorded(c.stream))
			w.Set(doc{"agent": doc{"model": "m"}})
			r := w.Run(0)
			require.Equal(t, c.says, r.Result.Kept[0].Description)
			require.True(t, strings.HasPrefix(w.Read("said"), c.called), w.Read("said"))
			require.Contains(t, w.Read("prompt"), "Make exactly ONE focused change")
			require.Contains(t, w.Read("prompt"), "Begin your final answer with it")
			st := w.Show()
			require.Equal(t, "2", st.Budget["toolCalls"].Used.String())
			require.Equal(t, c.tokens, st.Budget["tokens"].Used.String())
		})
	}
}

// TestA2_ABudgetIsWatchedInEveryStream ends a program that calls tools without end.
func TestA2_ABudgetIsWatchedInEveryStream(t *testing.T) {
	calls := map[string]string{
		"codex":  `{"type":"item.started","item":{"id":"%d","type":"command_execution"}}`,
		"gemini": `{"type":"tool_use","tool_name":"replace","tool_id":"%d"}`,
	}
	for _, use := range world.Sample(1, slices.Sorted(maps.Keys(calls))) {
		t.Run(use, func(t *testing.T) {
			w := streams(t, use, `echo 99 >work/n; for i in 1 2 3; do printf '`+calls[use]+`\n' $i; done; trap '' INT; tail -f /dev/null`)
			w.Set(doc{"limits": doc{"toolCalls": 2}})
			r := w.Run(6)
			require.Equal(t, "BUDGET_EXHAUSTED", r.Result.ErrorCode)
			require.Equal(t, 3, r.Result.Usage.ToolCalls)
			require.Empty(t, onBranchChanged(w))
		})
	}
}

// TestHostileStreams has programs that lie. pawl believes none of it, and ends it.
func TestHostileStreams(t *testing.T) {
	done := `printf '{"type":"result","subtype":"success","result":"raise the number","terminal_reason":"completed"}\n'`
	hostile := map[string]struct{ script, reason string }{
		"success and a bad exit":      {world.Raises + "; " + done + "; exit 3", "error:agent: the agent failed (exit 3)"},
		"a clean exit without an end": {world.Raises, "error:agent: the agent failed (it ended without saying how)"},
		"one line that does not end":  {world.Raises + `; head -c 9000000 /dev/zero; echo; ` + done, ""},
		"spending that is absurd":     {world.Raises + `; printf '{"type":"assistant","message":{"id":"m","usage":{"input_tokens":-1,"output_tokens":-9}}}\n'; ` + done, ""},
	}
	for _, name := range world.Sample(2, slices.Sorted(maps.Keys(hostile))) {
		t.Run(name, func(t *testing.T) {
			c := hostile[name]
			w := streams(t, "claude", c.script)
			code := 0
			if c.reason != "" {
				code = 3
			}
			w.Run(code)
			if c.reason == "" {
				require.Equal(t, "raise the number", w.LastRow().Description())
				return
			}
			require.Equal(t, c.reason, w.LastRow().Description())
			require.Empty(t, onBranchChanged(w))
		})
	}
}

// TestWhatALostAttemptSpentIsCounted kills the worker, and with it the agent, in the middle of a call. The call is
// repeated, and the usage of the lost attempt counts, too.
func TestWhatALostAttemptSpentIsCounted(t *testing.T) {
	world.Slow(t, "activities tests what a call tells of its attempts")
	t.Parallel()
	w := world.Alone(t, "")
	standIn(w, "claude", `if [ ! -e "$WORLD/again" ]; then echo 99 >work/n; head -7 "$STREAMS/claude-partial.jsonl"; echo >"$WORLD/at"; tail -f /dev/null; fi
		`+world.Raises+" >/dev/null; "+recorded("claude-partial"))
	run := w.Start("run", "--yes", w.SpecFile())
	w.Until("it has spent something", func() bool { return w.Exists("at") })
	require.NoError(t, run.Cmd.Process.Kill())
	<-run.Gone
	w.Write("again", "")
	u, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up"))
	require.NoError(t, err)
	w.Waits("completed")
	st := w.Show()
	require.Equal(t, "3", st.Budget["toolCalls"].Used.String(), "one of the call that was lost, two of the one after it")
	require.Equal(t, "5041", st.Budget["tokens"].Used.String(), "1200 in and the first of the tokens out, and 3840")
	require.Equal(t, "11", w.Kept("work/n"))
	require.NoError(t, u.Stop())
}

// TestE2_TheWallClockEndsACall has an agent that does not end by itself, nor when it is interrupted.
func TestE2_TheWallClockEndsACall(t *testing.T) {
	world.Slow(t, "TestAgentThatHangs is ended by its phase")
	w := world.New(t, `trap '' INT TERM; echo 99 >work/n; while :; do sleep 60; done`)
	w.Set(doc{"limits": doc{"wallClock": "6s"}})
	r := w.Run(6)
	require.Equal(t, "timeout BUDGET_EXHAUSTED", r.Result.ExitStatus+" "+r.Result.ErrorCode)
	require.Contains(t, r.Result.Reason, "wallClock")
	require.Empty(t, onBranchChanged(w))
}

// onBranchChanged returns the files in which the loop's branch differs from its base.
func onBranchChanged(w *world.World) string {
	w.T.Helper()
	if !strings.Contains(w.PawlRefs(), "refs/heads/pawl/"+w.Loop) {
		return ""
	}
	return w.Git("diff", "--name-only", "main", "refs/heads/pawl/"+w.Loop)
}
