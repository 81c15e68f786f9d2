package agents_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec/agents"
	"pawl/test/harness/world"
)

// claudeWorld makes a world whose agent is Claude Code, with a scripted model. Claude reaches the model like the real
// one: by its name, through the sandbox's proxy and then through the proxy of this network.
func claudeWorld(t *testing.T, script func(request) answer) (*world.World, *model) {
	t.Helper()
	p, _ := agents.Lookup(agents.Claude)
	path, _ := installed(t, p.Package, p.Version, p.Name)
	m := newModel(t, script)
	w := world.Alone(t, "")
	host := named(m.url)
	delete(w.Spec, "agent")
	w.Set(doc{"agent": doc{
		"use": "claude", "command": []string{path}, "model": "claude-sonnet-4-5",
		"env": doc{"ANTHROPIC_BASE_URL": "http://" + host, "ANTHROPIC_API_KEY": "none", "HOME": filepath.Join(w.Dir, "agent-home"), "WORLD": w.Dir},
	}, "sandbox": doc{"use": "required", "hosts": []string{host}}})
	return w, m
}

// claudeClimbs is a model that raises the number like an agent: it looks, edits and says so.
func claudeClimbs(w func() *world.World) func(request) answer {
	number := regexp.MustCompile(`\d+\s+(\d+)`)
	return func(r request) answer {
		file := filepath.Join(w().Show().Desk, "work", "n")
		switch {
		case !r.has("Edit"):
			return say("raise the number\n\nIt is what is measured.")
		case r.Turn == 0:
			return answer{tool: "Read", input: doc{"file_path": file}}
		case r.Turn == 1:
			old := number.FindStringSubmatch(r.Result)[1]
			n, _ := strconv.Atoi(old)
			return answer{tool: "Edit", input: doc{"file_path": file, "old_string": old, "new_string": strconv.Itoa(n + 1)}}
		}
		return say("raise the number by one\n\nThat should do.")
	}
}

// TestClaudeRunsAWholeLoop is an Improve loop with the real Claude Code. It is asked for an idea with tools that only
// look, then for the change. The loop's usage is that of the stream.
func TestClaudeRunsAWholeLoop(t *testing.T) {
	world.Slow(t, "TestProgramsByTheirStreams has its stream")
	var w *world.World
	w, m := claudeWorld(t, claudeClimbs(func() *world.World { return w }))
	w.Set(doc{"limits": doc{"iterations": 2, "tokens": 1000000, "costUSD": 5}})
	r := w.Run(0)
	require.Equal(t, "max_steps", r.Result.ExitStatus)
	require.Equal(t, 2, r.Result.KeptCount)
	require.Equal(t, "12", w.Kept("work/n"))
	require.Equal(t, "raise the number by one", r.Result.Kept[0].Description)
	require.Equal(t, doc{"ToolCalls": 4, "AgentCalls": 4}, doc{"ToolCalls": r.Result.Usage.ToolCalls, "AgentCalls": r.Result.Usage.AgentCalls})
	st := w.Show()
	require.Equal(t, json.Number("4"), *st.Budget["toolCalls"].Used)
	require.Equal(t, json.Number("10240"), *st.Budget["tokens"].Used, "eight answers of 1280 tokens")
	require.Equal(t, json.Number("0.0384"), *st.Budget["costUSD"].Used, "what Claude Code says it cost")
	asked := m.asked()
	require.Len(t, asked, 8)
	require.NotContains(t, asked[0].Tools, "Edit", "an ideator only looks")
	require.NotContains(t, asked[0].Tools, "Bash")
	require.Contains(t, asked[0].Prompt, "Propose exactly ONE focused change")
	require.Contains(t, asked[1].Tools, "Edit")
	for _, tool := range []string{"Agent", "Task", "Workflow", "ScheduleWakeup"} {
		require.NotContains(t, asked[1].Tools, tool, "the contract does not name it")
	}
	require.Contains(t, asked[1].Prompt, "raise the number")
}

// TestA2_BudgetsEndAClaudeCallInTheMiddle exceeds each budget while Claude Code works. Then the model stops answering,
// or a tool does not end, so only pawl can end the call.
func TestA2_BudgetsEndAClaudeCallInTheMiddle(t *testing.T) {
	world.Slow(t, "TestClaudeRunsAWholeLoop calls the real program")
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
			w.Set(doc{"agent": doc{"ideas": false}, "limits": c.limits})
			r := w.Run(6)
			require.Equal(t, "halted BUDGET_EXHAUSTED", r.Status+" "+r.Result.ErrorCode)
			require.Contains(t, r.Result.Reason, c.budget)
			require.True(t, w.Exists("at"), "it was at work")
			require.Empty(t, onBranchChanged(w), "its partial change is undone")
			st := w.Show()
			require.Equal(t, json.Number(c.used), *st.Budget[c.budget].Used, "what it spent is accounted")
			require.Equal(t, json.Number("0"), *st.Budget[c.budget].Remaining)
			events, _ := w.Events()
			require.Contains(t, world.Types(events), "budget_exhausted")
			require.Equal(t, row{"1", "10", "+0.00", "no", "interrupted: a change that was not finished"}, w.LastRow())
		})
	}
}

// TestA6_ClaudeIsPausedInTheMiddle pauses while Claude Code runs a tool. Its usage still counts, its changes are
// undone, and the step runs again.
func TestA6_ClaudeIsPausedInTheMiddle(t *testing.T) {
	world.Slow(t, "TestClaudeRunsAWholeLoop calls the real program")
	var w *world.World
	climbs := claudeClimbs(func() *world.World { return w })
	w, m := claudeWorld(t, func(r request) answer {
		if !w.Exists("paused") {
			return bash(`echo bad >work/other; echo >"$WORLD/at"; tail -f /dev/null`)
		}
		return climbs(r)
	})
	w.Set(doc{"agent": doc{"ideas": false}, "limits": doc{"tokens": 100000}})
	run := w.Start("run", "--json", "--yes", w.SpecFile())
	w.Until("Claude Code is at work", func() bool { return w.Exists("at") })
	w.Until("its budget falls while it works", func() bool {
		out := w.Pawl("show", w.Loop).Out
		return strings.Contains(out, "toolCalls  1 of 1000") && strings.Contains(out, "tokens     1280 of 100000")
	})
	require.Equal(t, json.Number("1"), *w.Show().Budget["toolCalls"].Used, "A8: in JSON too, though it is booked when the call has ended")
	require.Equal(t, 0, w.Pawl("pause", w.Loop).Code)
	st := w.Waits("paused")
	require.Equal(t, json.Number("1"), *st.Budget["toolCalls"].Used)
	require.Equal(t, json.Number("1280"), *st.Budget["tokens"].Used)
	require.Equal(t, 4, run.Wait().Code, "a gate is open")
	w.Until("nothing of it runs any more", func() bool { return len(world.Survivors(w.Dir)) == 0 })
	w.Write("paused", "")
	up := w.Start("up")
	require.Equal(t, 0, w.Pawl("continue", w.Loop).Code)
	w.Waits("completed")
	require.Equal(t, "11", w.Kept("work/n"))
	require.Equal(t, "work/n", onBranchChanged(w), "what was done before the pause is undone")
	require.Len(t, m.asked(), 4)
	require.Equal(t, json.Number("5120"), *w.Show().Budget["tokens"].Used)
	up.Interrupt()
	up.Wait()
}

// TestA1_ClaudeIsOfferedTheApprovedToolsAlone approves some tools: the model never sees the others.
func TestA1_ClaudeIsOfferedTheApprovedToolsAlone(t *testing.T) {
	world.Slow(t, "TestClaudeRunsAWholeLoop calls the real program")
	var w *world.World
	w, m := claudeWorld(t, claudeClimbs(func() *world.World { return w }))
	w.Set(doc{"approvals": doc{"tools": []string{"Read", "Edit", "Bash(go test:*)"}}})
	w.Run(0)
	asked := m.asked()
	require.Equal(t, []string{"Read"}, asked[0].Tools, "the ideator only looks")
	require.ElementsMatch(t, []string{"Read", "Edit", "Bash"}, asked[1].Tools)
}

// TestA1_ClaudeRunsNoOtherCommandThanThoseApproved has a model that tries commands that change files. Its approved
// tools may change them, too, but the commands are not approved.
func TestA1_ClaudeRunsNoOtherCommandThanThoseApproved(t *testing.T) {
	world.Slow(t, "TestClaudeRunsAWholeLoop calls the real program")
	commands := []string{"echo bad >work/other", "rm work/other", "cp work/n work/other", "touch work/more", "mkdir work/more", "go test $(touch work/more)"}
	w, _ := claudeWorld(t, func(r request) answer {
		switch {
		case !r.has("Edit"):
			return say("raise the number\n\nIt is what is measured.")
		case r.Turn < len(commands):
			return bash(commands[r.Turn])
		}
		return say("raise the number\n\nThat should do.")
	})
	w.Set(doc{"approvals": doc{"tools": []string{"read", "edit", "shell(go test *)"}}, "limits": doc{"iterations": 1}})
	w.Run(0)
	require.Equal(t, "no", w.LastRow().Kept())
	require.Contains(t, w.LastRow().Description(), "the agent was not allowed to use Bash")
}

// TestA2_ToolCallsOfAgentsOfAgentsCount has the model start an agent that starts another one, which works without end.
// The stream shows only the progress of that one.
func TestA2_ToolCallsOfAgentsOfAgentsCount(t *testing.T) {
	world.Slow(t, "TestClassesOfRecordedStreams has such a stream")
	helper := func(prompt string) answer {
		return answer{tool: "Agent", input: doc{"description": "look", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": false}}
	}
	w, _ := claudeWorld(t, func(r request) answer {
		switch {
		case strings.Contains(r.Prompt, "SECOND"):
			return bash("echo again")
		case strings.Contains(r.Prompt, "FIRST") && r.Turn == 0:
			return helper("SECOND look at it")
		case r.Turn == 0:
			return helper("FIRST look at it")
		}
		return say("looked")
	})
	w.Set(doc{"agent": doc{"ideas": false}, "limits": doc{"toolCalls": 8}, "approvals": doc{"tools": []string{"*", "Agent"}}})
	r := w.Run(6)
	require.Equal(t, "BUDGET_EXHAUSTED", r.Result.ErrorCode)
	require.Contains(t, r.Result.Reason, "toolCalls")
	require.GreaterOrEqual(t, r.Result.Usage.ToolCalls, 9)
	require.Less(t, r.Result.Usage.ToolCalls, 30, "it is ended soon after")
}

// TestA2_NoRequestOfAnAgentsAgentPassesTheBudget does the same with a budget of tokens. The meter counts exactly the
// tokens of the model's answers, and sends no request for which the budget has no room.
func TestA2_NoRequestOfAnAgentsAgentPassesTheBudget(t *testing.T) {
	world.Slow(t, "TestA2_NoRequestPastTheBudgetIsSent has a stand-in")
	helper := func(prompt string) answer {
		return answer{tool: "Agent", input: doc{"description": "look", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": false}}
	}
	w, m := claudeWorld(t, func(r request) answer {
		switch {
		case strings.Contains(r.Prompt, "SECOND"):
			return bash(`echo "$ANTHROPIC_API_KEY" >"$WORLD/key"`)
		case strings.Contains(r.Prompt, "FIRST") && r.Turn == 0:
			return helper("SECOND look at it")
		case r.Turn == 0:
			return helper("FIRST look at it")
		}
		return say("looked")
	})
	w.Set(doc{"agent": doc{"ideas": false}, "limits": doc{"tokens": 12000}, "approvals": doc{"tools": []string{"*", "Agent"}}})
	r := w.Run(6)
	require.Equal(t, "BUDGET_EXHAUSTED", r.Result.ErrorCode)
	tokens, keys := m.counted()
	require.Equal(t, 12800, tokens, "ten answers of 1280")
	require.Equal(t, json.Number("12800"), *w.Show().Budget["tokens"].Used)
	require.Equal(t, []string{"none"}, keys, "as agent.env has it")
	require.Contains(t, w.Read("key"), "pawl-", "the agent has a placeholder")
}

func TestClaudeThatFails(t *testing.T) {
	world.Slow(t, "TestClaudeRunsAWholeLoop calls the real program")
	for name, c := range map[string]struct {
		script func(request) answer
		why    string
	}{
		"it gives up in words":           {func(request) answer { return say("GIVE UP: there is nothing to raise") }, "the agent gave up: there is nothing to raise"},
		"its provider refuses":           {func(request) answer { return answer{status: 400, text: "scripted"} }, "the agent failed (API Error: 400 scripted)"},
		"its answer is no stream at all": {nil, "the agent failed (it ended without saying how)"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := claudeWorld(t, c.script)
			w.Set(doc{"agent": doc{"ideas": false}})
			if name == "its answer is no stream at all" {
				w.Set(doc{"agent": doc{"command": []string{"echo", "done"}}})
			}
			w.Run(3)
			last := w.LastRow()
			require.True(t, strings.HasPrefix(last.Description(), "error:agent: "+c.why), last.Description())
		})
	}
}
