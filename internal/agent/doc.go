// Package agent is the room for what passes between pawl and a coding agent.
//
// Sub-rooms: prompt (what pawl tells an agent, and the result file that it leaves), adapter (how each program is
// called, and what the lines on its stdout mean), acp (the client for agents that speak the Agent Client Protocol),
// transcript (an agent's output as a text for people).
//
// Start at prompt.Brief for the prompt, at adapter.Lookup for a program.
//
// No package here starts a process (internal/exec/supervisor does, for activities/agentcall), but acp, which runs
// inside the sandbox. None believes what an agent says about itself. Which programs there are is in
// internal/spec/agents.
package agent
