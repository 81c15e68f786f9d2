package test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestE1_WhatARoleMayNotDoIsNotRun takes permissions away: the loop ends with the code, the role
// and the permission are named, and the agent was never called.
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
			w := newWorld(t, `echo >"$WORLD/called"; `+raises)
			w.set(doc{"permissions": c.permissions, "agent": doc{"ideas": strings.Contains(c.says, "ideator")}})
			s := w.pawl("run", "--yes", w.specFile())
			require.Equal(t, 3, s.code, s.err)
			require.Contains(t, s.out+s.err, c.says)
			st := w.show()
			require.Equal(t, "failed PERMISSION_DENIED", st.Status+" "+st.ErrorCode)
			require.Contains(t, st.Reason, c.says)
			require.False(t, w.exists("called"), "nothing is executed")
			require.Empty(t, w.onBranchChanged(), "nothing is kept")
		})
	}
}

// TestE6_WhatAReadOnlyRoleChangesIsThrownAway has an ideator that edits all the same.
func TestE6_WhatAReadOnlyRoleChangesIsThrownAway(t *testing.T) {
	w := newWorld(t, `if [ "$PAWL_ROLE" = ideator ]; then echo 500 >work/n; echo new >work/new; echo "take the lift"; else cat work/n >>"$WORLD/found"; ls work/new && exit 1; `+raises+`; fi`)
	w.set(doc{"agent": doc{"ideas": true}})
	r := w.run(0)
	require.Equal(t, 1, r.Result.KeptCount)
	require.Equal(t, "10\n", w.read("found"), "the writer starts from what was committed")
	require.Equal(t, "11", w.kept("work/n"))
	events, _ := w.events()
	said := ""
	for _, e := range events {
		if e.Type == "permission_denied" {
			said += e.Reason
		}
	}
	require.Contains(t, said, "the role ideator changed source in the phase ideate, where no role is permitted canEditSource")
	require.Contains(t, said, "2 files (work/n, work/new)")
}

// TestRolesHaveAgentsOfTheirOwn overrides command, arguments, environment and model by role.
func TestRolesHaveAgentsOfTheirOwn(t *testing.T) {
	w := newWorld(t, `echo "$PAWL_ROLE: $MOOD, $PAWL_MODEL, $*" >>"$WORLD/said"; `+raises)
	w.write("ideas.sh", `cat >/dev/null; echo "$PAWL_ROLE: $MOOD, $1" >>"$WORLD/said"; echo "take a step"`)
	w.set(doc{"agent": doc{
		"ideas": true, "model": "big", "args": []string{"--all"}, "env": doc{"MOOD": "calm", "WORLD": w.dir},
		"roles": doc{
			"ideator": doc{"command": "sh " + filepath.Join(w.dir, "ideas.sh") + ` "$1"`, "env": doc{"MOOD": "wild"}, "args": []string{"--far"}},
			"writer":  doc{"model": "small"},
		},
	}})
	w.run(0)
	require.Equal(t, "ideator: wild, --far\nwriter: calm, small, --all\n", w.read("said"))
}

// streams is a world whose agent is a script that stands in for a program: what it is called with
// is in $WORLD/said, and what it prints is a stream.
func streams(t *testing.T, use, script string) *world {
	t.Helper()
	w := newWorld(t, "")
	w.standIn(use, script)
	return w
}

func (w *world) standIn(use, script string) {
	w.t.Helper()
	w.write("program.sh", `echo "$*" >>"$WORLD/said"; cat >"$WORLD/prompt"`+"\n"+script+"\n")
	delete(w.spec, "agent")
	w.set(doc{"agent": doc{"use": use, "command": []string{"sh", filepath.Join(w.dir, "program.sh")}, "env": doc{"WORLD": w.dir}, "ideas": false}})
}

// recorded is a stream that the real program printed, as a command that prints it.
func recorded(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("internal", "agent", "stream", "testdata", name+".jsonl"))
	require.NoError(t, err)
	return "cat '" + path + "'"
}

// TestProgramsByTheirStreams has each program's recorded stream counted and described.
func TestProgramsByTheirStreams(t *testing.T) {
	for use, c := range map[string]struct{ stream, called string }{
		"claude": {"claude-partial", "-p --model m --permission-mode acceptEdits --allowedTools Bash,WebFetch,WebSearch --session-id "},
		"codex":  {"codex-exec", "exec -m m --json --sandbox workspace-write --ephemeral --ignore-user-config --ignore-rules -\n"},
		"gemini": {"gemini-stream", "-m m --skip-trust --approval-mode yolo --output-format stream-json\n"},
	} {
		t.Run(use, func(t *testing.T) {
			w := streams(t, use, raises+" >/dev/null; "+recorded(t, c.stream))
			w.set(doc{"agent": doc{"model": "m"}})
			r := w.run(0)
			require.Equal(t, "Changed hello to goodbye in hello.txt.", r.Result.Kept[0].Description)
			require.True(t, strings.HasPrefix(w.read("said"), c.called), w.read("said"))
			require.Contains(t, w.read("prompt"), "Make exactly ONE focused change")
			require.Contains(t, w.read("prompt"), "Begin your final answer with it")
			st := w.show()
			require.Equal(t, "2", st.Budget["toolCalls"].Used.String())
			require.Equal(t, "3840", st.Budget["tokens"].Used.String())
		})
	}
}

// TestA2_ABudgetIsWatchedInEveryStream ends a program that calls tools without end.
func TestA2_ABudgetIsWatchedInEveryStream(t *testing.T) {
	for use, line := range map[string]string{
		"codex":  `{"type":"item.started","item":{"id":"%d","type":"command_execution"}}`,
		"gemini": `{"type":"tool_use","tool_name":"replace","tool_id":"%d"}`,
	} {
		t.Run(use, func(t *testing.T) {
			w := streams(t, use, `echo 99 >work/n; for i in 1 2 3; do printf '`+line+`\n' $i; done; trap '' INT; tail -f /dev/null`)
			w.set(doc{"limits": doc{"toolCalls": 2}})
			r := w.run(6)
			require.Equal(t, "BUDGET_EXHAUSTED", r.Result.ErrorCode)
			require.Equal(t, 3, r.Result.Usage.ToolCalls)
			require.Empty(t, w.onBranchChanged())
		})
	}
}

// TestHostileStreams has programs lie and flood. None of it is believed, or goes on.
func TestHostileStreams(t *testing.T) {
	done := `printf '{"type":"result","subtype":"success","result":"raise the number","terminal_reason":"completed"}\n'`
	for name, c := range map[string]struct{ script, reason string }{
		"success and a bad exit":      {raises + "; " + done + "; exit 3", "error:agent: the agent failed (exit 3)"},
		"a clean exit without an end": {raises, "error:agent: the agent failed (it ended without saying how)"},
		"a flood":                     {raises + `; yes '{"type":"text","text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'`, "error:agent: the agent failed (it said more than 67108864 bytes)"},
		"one line that does not end":  {raises + `; head -c 9000000 /dev/zero; echo; ` + done, ""},
		"spending that is absurd":     {raises + `; printf '{"type":"assistant","message":{"id":"m","usage":{"input_tokens":-1,"output_tokens":-9}}}\n'; ` + done, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := streams(t, "claude", c.script)
			w.run(0)
			if c.reason == "" {
				require.Equal(t, "raise the number", w.lastRow().description)
				return
			}
			require.Equal(t, c.reason, w.lastRow().description)
			require.Empty(t, w.onBranchChanged())
		})
	}
}

// TestWhatALostAttemptSpentIsCounted kills the worker, and with it the agent, in the middle of a
// call. The call is made again, and what the lost one had spent counts as well.
func TestWhatALostAttemptSpentIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorldOfItsOwn(t, "")
	w.standIn("claude", `if [ ! -e "$WORLD/again" ]; then echo 99 >work/n; head -7 '`+strings.Trim(strings.TrimPrefix(recorded(t, "claude-partial"), "cat "), "'")+`'; echo >"$WORLD/at"; tail -f /dev/null; fi
		`+raises+" >/dev/null; "+recorded(t, "claude-partial"))
	run := w.start("run", "--yes", w.specFile())
	w.until("it has spent something", func() bool { return w.exists("at") })
	require.NoError(t, run.cmd.Process.Kill())
	<-run.gone
	w.write("again", "")
	u, err := startUp(w.home, filepath.Join(w.dir, "up"))
	require.NoError(t, err)
	w.waits("completed")
	st := w.show()
	require.Equal(t, "3", st.Budget["toolCalls"].Used.String(), "one of the call that was lost, two of the one after it")
	require.Equal(t, "5041", st.Budget["tokens"].Used.String(), "1200 in and the first of the tokens out, and 3840")
	require.Equal(t, "11", w.kept("work/n"))
	require.NoError(t, u.stop())
}

// TestE2_TheWallClockEndsACall has an agent that does not end by itself, nor when it is asked to.
func TestE2_TheWallClockEndsACall(t *testing.T) {
	w := newWorld(t, `trap '' INT TERM; echo 99 >work/n; while :; do sleep 60; done`)
	w.set(doc{"limits": doc{"wallClock": "6s"}})
	r := w.run(6)
	require.Equal(t, "timeout BUDGET_EXHAUSTED", r.Result.ExitStatus+" "+r.Result.ErrorCode)
	require.Contains(t, r.Result.Reason, "wallClock")
	require.Empty(t, w.onBranchChanged())
}
