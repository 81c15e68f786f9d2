package test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// claudeWorld is a world whose agent is Claude Code, with a scripted model behind it.
func claudeWorld(t *testing.T, script func(request) answer) (*world, *model) {
	t.Helper()
	path := claudeCode(t)
	m := newModel(t, script)
	w := newWorld(t, "")
	delete(w.spec, "agent")
	w.set(doc{"agent": doc{
		"use": "claude", "command": []string{path}, "model": "claude-sonnet-4-5",
		"env": doc{"ANTHROPIC_BASE_URL": m.url, "ANTHROPIC_API_KEY": "none", "HOME": filepath.Join(w.dir, "agent-home"), "WORLD": w.dir},
	}})
	return w, m
}

// claudeClimbs is a model that raises the number as an agent would: it looks, edits and says so.
func claudeClimbs(w func() *world) func(request) answer {
	number := regexp.MustCompile(`\d+\s+(\d+)`)
	return func(r request) answer {
		file := filepath.Join(w().show().Desk, "work", "n")
		switch {
		case !r.has("Edit"):
			return say("raise the number\n\nIt is what is measured.")
		case r.Turn == 0:
			return answer{tool: "Read", input: doc{"file_path": file}}
		case r.Turn == 1:
			old := number.FindStringSubmatch(r.Result)[1]
			return answer{tool: "Edit", input: doc{"file_path": file, "old_string": old, "new_string": old + "1"}}
		}
		return say("raise the number by a digit\n\nThat should do.")
	}
}

// TestClaudeRunsAWholeLoop is an Improve loop with the real Claude Code: it is asked for an idea
// with tools that only look, then for the change; what it spends is what the stream says.
func TestClaudeRunsAWholeLoop(t *testing.T) {
	var w *world
	w, m := claudeWorld(t, claudeClimbs(func() *world { return w }))
	w.set(doc{"limits": doc{"iterations": 2, "tokens": 1000000, "costUSD": 5}})
	r := w.run(0)
	require.Equal(t, "max_steps", r.Result.ExitStatus)
	require.Equal(t, 2, r.Result.KeptCount)
	require.Equal(t, "1011", w.kept("work/n"))
	require.Equal(t, "raise the number by a digit", r.Result.Kept[0].Description)
	require.Equal(t, doc{"ToolCalls": 4, "AgentCalls": 4}, doc{"ToolCalls": r.Result.Usage.ToolCalls, "AgentCalls": r.Result.Usage.AgentCalls})
	st := w.show()
	require.Equal(t, json.Number("4"), *st.Budget["toolCalls"].Used)
	require.Equal(t, json.Number("10240"), *st.Budget["tokens"].Used, "eight answers of 1280 tokens")
	require.Equal(t, json.Number("0.0384"), *st.Budget["costUSD"].Used, "what Claude Code says it cost")
	asked := m.asked()
	require.Len(t, asked, 8)
	require.NotContains(t, asked[0].Tools, "Edit", "an ideator only looks")
	require.NotContains(t, asked[0].Tools, "Bash")
	require.Contains(t, asked[0].Prompt, "Propose exactly ONE focused change")
	require.Contains(t, asked[1].Tools, "Edit")
	require.Contains(t, asked[1].Prompt, "raise the number")
}

// TestA2_BudgetsEndAClaudeCallInTheMiddle crosses each budget while Claude Code works. The model
// then does not answer any more, or a tool does not end: nobody but pawl ends the call.
func TestA2_BudgetsEndAClaudeCallInTheMiddle(t *testing.T) {
	spoil := bash(`echo 99 >work/n; echo bad >work/other; echo "$PWD" >"$WORLD/at"`)
	forever := bash(`echo >>"$WORLD/forever"; tail -f /dev/null`)
	for name, c := range map[string]struct {
		limits doc
		script func(request) answer
		budget string
		used   string
	}{
		"tool calls, the model silent": {doc{"toolCalls": 3}, func(r request) answer {
			switch {
			case r.Turn == 0:
				return spoil
			case r.Turn < 4:
				return bash("echo again")
			}
			return hang(t, r)
		}, "toolCalls", "4"},
		"tokens, the model silent": {doc{"tokens": 3000}, func(r request) answer {
			switch {
			case r.Turn == 0:
				return spoil
			case r.Turn < 3:
				return bash("echo again")
			}
			return hang(t, r)
		}, "tokens", "3840"},
		"dollars, a tool at work": {doc{"costUSD": 0.006}, func(r request) answer {
			if r.Turn == 0 {
				return spoil
			}
			return forever
		}, "costUSD", "0.0096"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := claudeWorld(t, c.script)
			w.set(doc{"agent": doc{"ideas": false}, "limits": c.limits})
			r := w.run(6)
			require.Equal(t, "halted BUDGET_EXHAUSTED", r.Status+" "+r.Result.ErrorCode)
			require.Contains(t, r.Result.Reason, c.budget)
			require.True(t, w.exists("at"), "it was at work")
			require.Empty(t, w.onBranchChanged(), "its partial change is undone")
			st := w.show()
			require.Equal(t, json.Number(c.used), *st.Budget[c.budget].Used, "what it spent is accounted")
			require.Equal(t, json.Number("0"), *st.Budget[c.budget].Remaining)
			events, _ := w.events()
			require.Contains(t, types(events), "budget_exhausted")
			require.Equal(t, row{"1", "10", "+0.00", "no", "interrupted: a change that was not finished"}, w.lastRow())
		})
	}
}

// onBranchChanged are the files that the loop's branch differs from its base by.
func (w *world) onBranchChanged() string {
	w.t.Helper()
	if !strings.Contains(w.pawlRefs(), "refs/heads/pawl/"+w.loop) {
		return ""
	}
	return w.git("diff", "--name-only", "main", "refs/heads/pawl/"+w.loop)
}

// TestA6_ClaudeIsPausedInTheMiddle pauses while Claude Code runs a tool. What it spent stays
// counted, what it did is undone, and the step is done again.
func TestA6_ClaudeIsPausedInTheMiddle(t *testing.T) {
	var w *world
	climbs := claudeClimbs(func() *world { return w })
	w, m := claudeWorld(t, func(r request) answer {
		if !w.exists("paused") {
			return bash(`echo bad >work/other; echo >"$WORLD/at"; tail -f /dev/null`)
		}
		return climbs(r)
	})
	w.set(doc{"agent": doc{"ideas": false}, "limits": doc{"tokens": 100000}})
	run := w.start("run", "--json", "--yes", w.specFile())
	w.until("Claude Code is at work", func() bool { return w.exists("at") })
	w.until("its budget falls while it works", func() bool {
		out := w.pawl("show", w.loop).out
		return strings.Contains(out, "toolCalls  1 of 1000") && strings.Contains(out, "tokens     1280 of 100000")
	})
	require.Equal(t, json.Number("0"), *w.show().Budget["toolCalls"].Used, "it is booked when the call has ended")
	require.Equal(t, 0, w.pawl("pause", w.loop).code)
	st := w.waits("paused")
	require.Equal(t, json.Number("1"), *st.Budget["toolCalls"].Used)
	require.Equal(t, json.Number("1280"), *st.Budget["tokens"].Used)
	require.Equal(t, 4, run.wait().code, "a gate is open")
	w.until("nothing of it runs any more", func() bool { return len(survivors(w.dir)) == 0 })
	w.write("paused", "")
	require.Equal(t, 0, w.pawl("continue", w.loop).code)
	w.waits("completed")
	require.Equal(t, "101", w.kept("work/n"))
	require.Equal(t, "work/n", w.onBranchChanged(), "what was done before the pause is undone")
	require.Len(t, m.asked(), 4)
	require.Equal(t, json.Number("5120"), *w.show().Budget["tokens"].Used)
}

// TestE6_ARepositorysOwnAgentSettingsAreNotObeyed has hooks and a server of its own in the
// repository: they would run whatever they like, each time that the agent calls a tool.
func TestE6_ARepositorysOwnAgentSettingsAreNotObeyed(t *testing.T) {
	var w *world
	w, _ = claudeWorld(t, claudeClimbs(func() *world { return w }))
	touch := doc{"type": "command", "command": "touch " + filepath.Join(w.dir, "hooked")}
	hook := []doc{{"matcher": "*", "hooks": []doc{touch}}}
	for name, content := range map[string]doc{
		".claude/settings.json": {"hooks": doc{"PreToolUse": hook, "SessionStart": hook, "Stop": hook}, "permissions": doc{"deny": []string{"Edit"}}, "enableAllProjectMcpServers": true},
		".mcp.json":             {"mcpServers": doc{"spy": doc{"command": "touch", "args": []string{filepath.Join(w.dir, "hooked")}}}},
	} {
		b, err := json.Marshal(content)
		require.NoError(t, err)
		w.write("repo/"+name, string(b))
	}
	w.commit("settings")
	w.set(doc{"agent": doc{"ideas": false}})
	r := w.run(0)
	require.Equal(t, 1, r.Result.KeptCount, "nor may they forbid anything")
	require.False(t, w.exists("hooked"))
}

// TestA1_ClaudeIsOfferedTheApprovedToolsAlone approves some tools: the model never sees another.
func TestA1_ClaudeIsOfferedTheApprovedToolsAlone(t *testing.T) {
	var w *world
	w, m := claudeWorld(t, claudeClimbs(func() *world { return w }))
	w.set(doc{"approvals": doc{"tools": []string{"Read", "Edit", "Bash(go test:*)"}}})
	w.run(0)
	asked := m.asked()
	require.Equal(t, []string{"Read"}, asked[0].Tools, "the ideator only looks")
	require.ElementsMatch(t, []string{"Read", "Edit", "Bash"}, asked[1].Tools)
}

func TestClaudeThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		script func(request) answer
		why    string
	}{
		"it gives up in words":           {func(request) answer { return say("GIVE UP: there is nothing to raise") }, "the agent gave up: there is nothing to raise"},
		"its provider refuses":           {func(request) answer { return answer{status: 400, text: "scripted"} }, "the agent failed (API Error: 400 scripted)"},
		"it is not there":                {nil, "the agent failed (can't be started: "},
		"its answer is no stream at all": {nil, "the agent failed (it ended without saying how)"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := claudeWorld(t, c.script)
			w.set(doc{"agent": doc{"ideas": false}})
			switch name {
			case "it is not there":
				w.set(doc{"agent": doc{"command": []string{"/nowhere/claude"}}})
			case "its answer is no stream at all":
				w.set(doc{"agent": doc{"command": []string{"echo", "done"}}})
			}
			w.run(0)
			last := w.lastRow()
			require.True(t, strings.HasPrefix(last.description, "error:agent: "+c.why), last.description)
		})
	}
}
