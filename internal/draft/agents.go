package draft

// Agent is a coding agent that people have, and how it runs without a terminal.
type Agent struct {
	Name    string
	Program string // on the PATH
	// Command runs it on the desk with the prompt that $PAWL_PROMPT names. It may edit what is there
	// without being asked; its last words are its description.
	Command string
	Key     string // the variable with its key, which goes to it only where the spec says so
}

// Agents are those that are looked for, in this order. The command lines are measured ones: with
// no input but the prompt, no approval that nobody could give, and none of the repository's own
// settings for the agent where it knows an option against them, since those would be the agent's
// to write.
var Agents = []Agent{
	{"claude", "claude", `claude -p "$(cat "$PAWL_PROMPT")" --permission-mode acceptEdits --setting-sources '' </dev/null`, "ANTHROPIC_API_KEY"},
	{"codex", "codex", `codex exec -s workspace-write --ephemeral --ignore-rules "$(cat "$PAWL_PROMPT")" </dev/null`, "OPENAI_API_KEY"},
	{"gemini", "gemini", `gemini --skip-trust --approval-mode auto_edit -p "$(cat "$PAWL_PROMPT")" </dev/null`, "GEMINI_API_KEY"},
	{"opencode", "opencode", `opencode run "$(cat "$PAWL_PROMPT")" </dev/null`, ""},
}
