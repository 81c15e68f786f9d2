// Package program is the table of the coding agents that pawl knows: what the spec can hold each of them to, where it
// keeps its sign-in, what else of the user's settings it gets, and what it leaves behind. How a program is called in
// detail and what its output means is in internal/agent/stream, by the same name. Pure. Start at Table.
package program

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// The values of agent.use.
const (
	Command = "command" // any program, by the command that the spec has
	Claude  = "claude"
	Codex   = "codex"
	Gemini  = "gemini"

	OpenCode = "opencode"
	Pi       = "pi"
	Qwen     = "qwen"

	// ACP is any program that speaks the Agent Client Protocol, by the command that the spec has.
	ACP = "acp"
)

// Program is one agent program.
type Program struct {
	Name string // as people call it on the command line
	Use  bool   // agent.use may name it; an adapter in internal/agent/stream carries it out

	Tools  Tools // how it is held to the tools that a contract approves
	Cost   bool  // it says what it cost while it works, or its own word for it is taken
	Tokens bool  // the same of tokens

	Vendor      string // whose models it calls, "" where that depends on what it is told
	NamesVendor bool   // its models have their vendor in their names: anthropic/claude-sonnet-4-5

	Version string   // the one that was measured; docs/agents.md says what
	Package string   // the npm package that has it, which CI installs
	Keys    []string // the variables with its own credentials. It gets them, as it gets no other secret
	Login   string   // the command by which a person signs in, "" where the keys are the way
	Env     []string // what it is told beside what the spec says; the spec's agent.env wins

	// ByACP is what is particular where it is called by the Agent Client Protocol.
	ByACP    ByACP
	Metering Metering // how it is made to speak to pawl's meter

	// What it needs of the user's home inside a sandbox. What it writes to Writes (settings, sessions) goes to
	// a layer of the loop's own, so that it plants nothing in the user's own sessions; it works on a copy of
	// Copies. SignIn is the user's own, and written where a program renews it.
	Writes, Copies, Reads, SignIn []string
	// Settings are what a program that agent.use names gets of the user's settings instead of all that is in Writes and
	// Copies: those folders it has empty, of the loop's own.
	Settings []Settings

	// Variables is the file of the folder that it works in from which it takes variables that are not set, and the first
	// that it looks for, before .env: it finds it empty, and takes none. "" where it looks for none.
	Variables string

	// Instructs is the file by which a repository instructs it, where it is not let read that itself, since settings of
	// the repository would come with it: pawl adds it to the prompt. "" where it reads what there is.
	Instructs string
	// Hides are folders of the repository from which it would run code, whatever it is told: it finds them empty.
	Hides []string
	// Leaves are files of the folder that it works in which it writes for itself: they are no part of a change, unless the
	// scope names them.
	Leaves []string
}

// ByACP are the programs by which an agent speaks the Agent Client Protocol, where it does not speak that itself, and
// what it then says of what it spends.
type ByACP struct {
	Names  []string
	Tokens bool // when a turn has ended or was cancelled, all that it used
	Cost   bool // while it works
	// Leads are the variables that lead them to pawl's meter in place of Metering.Args, with {base} and {key} in them.
	Leads []string
	// Version and Package are of the first of Names, as those of a program; Finds is the variable by which it is told
	// where the program is.
	Version, Package, Finds string
}

// MeteringByACP is how the program is made to speak to pawl's meter where it is called by the Agent Client Protocol.
func (p Program) MeteringByACP() Metering {
	m := p.Metering
	if len(m.Args) == 0 {
		return m
	}
	if len(p.ByACP.Leads) == 0 {
		return Metering{}
	}
	m.Args, m.Env = nil, p.ByACP.Leads
	return m
}

// Settings is a JSON file in the user's home, and the keys of it, dotted, without which a program does not find its
// sign-in or its model. Hooks, servers, plugins and permissions are none of them.
type Settings struct {
	File string
	Keys []string
}

// Of returns the JSON that a loop's own copy has, of the user's; "" where that has none of the keys.
func (s Settings) Of(text []byte) string {
	var all map[string]any
	if json.Unmarshal(uncommented(text), &all) != nil {
		return ""
	}
	own := map[string]any{}
	for _, key := range s.Keys {
		if value, there := at(all, key); there {
			put(own, key, value)
		}
	}
	if len(own) == 0 {
		return ""
	}
	b, err := json.Marshal(own)
	if err != nil {
		return "" // what was JSON is
	}
	return string(b)
}

// opencodeKeys are those of its settings by which it finds its model.
var opencodeKeys = []string{"provider", "model", "small_model", "enabled_providers", "disabled_providers"}

// Table are the programs, those first that are looked for first.
var Table = []Program{
	{Name: Command, Use: true, Cost: true, Tokens: true},
	{
		Name: Claude, Use: true, Vendor: "anthropic", Cost: true, Tokens: true, Version: "2.1.330", Package: "@anthropic-ai/claude-code",
		Tools: Tools{By: "--tools, --allowedTools, --disallowedTools", Patterns: true, Own: true, Tells: true, Has: map[Class][]string{
			Looks: {"Read", "Glob", "Grep", "LS", "TodoWrite"}, Edits: {"Edit", "Write", "NotebookEdit"}, Shell: {"Bash"},
			Network: {"WebFetch", "WebSearch"}, Subagents: {"Agent", "Task", "Workflow", "ScheduleWakeup", "CronCreate"},
		}},
		Keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}, Login: "claude auth login",
		Env: []string{
			"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		},
		Writes: []string{".claude", ".config/claude", ".cache/claude-cli-nodejs"}, Copies: []string{".claude.json"},
		SignIn:    []string{".claude/.credentials.json"},
		Settings:  []Settings{{".claude.json", []string{"oauthAccount", "primaryApiKey", "customApiKeyResponses", "hasCompletedOnboarding", "userID"}}},
		Instructs: "CLAUDE.md",
		ByACP: ByACP{
			Names: []string{"claude-agent-acp", "claude-code-acp"}, Tokens: true, Cost: true,
			Version: "0.101.0", Package: "@agentclientprotocol/claude-agent-acp", Finds: "CLAUDE_CODE_EXECUTABLE",
		},
		Metering: Metering{
			Base: "ANTHROPIC_BASE_URL", At: "https://api.anthropic.com", Keys: []Key{{Name: "ANTHROPIC_AUTH_TOKEN"}, {Name: "ANTHROPIC_API_KEY"}},
			Secrets:   []string{"primaryApiKey"},
			Elsewhere: []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"},
		},
	},
	{
		Name: Codex, Use: true, Vendor: "openai", Version: "0.169.0", Package: "@openai/codex", Keys: []string{"OPENAI_API_KEY", "CODEX_API_KEY"}, Login: "codex login",
		Tools: Tools{By: "its sandbox, web_search, features.multi_agent", Always: []Class{Looks, Shell}, Has: map[Class][]string{
			Looks: {"exec_command"}, Edits: {"apply_patch"}, Shell: {"exec_command"}, Network: {"web_search"}, Subagents: {"multi_agent"},
		}},
		Writes: []string{".codex"}, SignIn: []string{".codex/auth.json"},
		Hides: []string{".codex"}, // codex-acp has Codex trust every folder, and run its MCP servers
		ByACP: ByACP{
			Names: []string{"codex-acp"}, Tokens: true, Leads: []string{
				"MODEL_PROVIDER=pawl", `CODEX_CONFIG={"model_providers":{"pawl":{"name":"OpenAI","base_url":"{base}","env_key":"{key}","wire_api":"responses"}}}`,
			},
			Version: "2.6.0", Package: "@agentclientprotocol/codex-acp", Finds: "CODEX_PATH",
		},
		Metering: Metering{ // OPENAI_BASE_URL is pawl's word for it: Codex itself reads it from arguments alone
			Base: "OPENAI_BASE_URL", At: "https://api.openai.com/v1", Keys: []Key{{Name: "CODEX_API_KEY"}, {Name: "OPENAI_API_KEY", Yields: ".codex/auth.json"}},
			Args:      []string{"-c", "model_provider=pawl", "-c", `model_providers.pawl={name="OpenAI",base_url="{base}",env_key="{key}",wire_api="responses"}`},
			Elsewhere: []string{"model_provider", "openai_base_url", "--oss"},
		},
	},
	{
		Name: Gemini, Use: true, Vendor: "google", Version: "0.61.0", Package: "@google/gemini-cli", Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, Login: "gemini",
		Tools: Tools{By: "--approval-mode, --policy", Patterns: true, Has: map[Class][]string{
			Looks: {"read_file", "read_many_files", "list_directory", "glob", "grep_search"}, Edits: {"replace", "write_file"},
			Shell: {"run_shell_command", "list_background_processes", "read_background_output"}, Network: {"web_fetch", "google_web_search"}, Subagents: {"invoke_agent"},
		}},
		Writes: []string{".gemini"}, SignIn: []string{".gemini/oauth_creds.json", ".gemini/google_accounts.json", ".gemini/gemini-credentials.json"},
		Settings:  []Settings{{".gemini/settings.json", []string{"security.auth", "selectedAuthType", "model"}}},
		Variables: ".gemini/.env",
		Metering: Metering{
			Base: "GOOGLE_GEMINI_BASE_URL", At: "https://generativelanguage.googleapis.com", Keys: []Key{{Name: "GEMINI_API_KEY"}},
			Elsewhere: []string{"GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"},
			Chosen:    []Settings{{".gemini/settings.json", []string{"security.auth.selectedType", "selectedAuthType"}}}, Choice: "gemini-api-key",
		},
	},
	{
		Name: OpenCode, Use: true, NamesVendor: true, Cost: true, Tokens: true, Version: "1.18.33", Package: "opencode-ai", Login: "opencode auth login",
		Keys: []string{"OPENCODE_API_KEY"}, Env: []string{"OPENCODE_DISABLE_PROJECT_CONFIG=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"},
		Tools: Tools{By: "OPENCODE_PERMISSION", Patterns: true, Has: map[Class][]string{
			Looks: {"read", "glob", "grep", "list", "lsp"}, Edits: {"edit"}, Shell: {"bash"}, Network: {"webfetch", "websearch"}, Subagents: {"task"},
		}},
		Writes:   []string{".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"},
		SignIn:   []string{".local/share/opencode/auth.json"},
		Settings: []Settings{{".config/opencode/opencode.json", opencodeKeys}, {".config/opencode/opencode.jsonc", opencodeKeys}},
		Hides:    []string{".opencode"},
		Leaves:   []string{"opencode.json"},
		Metering: Metering{
			ByModel: &ByModel{
				Known: []Provider{
					{"anthropic", "https://api.anthropic.com/v1", []string{"ANTHROPIC_API_KEY"}},
					{"openai", "https://api.openai.com/v1", []string{"OPENAI_API_KEY"}},
					{"google", "https://generativelanguage.googleapis.com/v1beta", []string{"GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"}},
					{"openrouter", "https://openrouter.ai/api/v1", []string{"OPENROUTER_API_KEY"}},
				},
				Files: []string{".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"}, In: "provider", Base: "options.baseURL", Secret: "options.apiKey",
				Model: "model", Accounts: ".local/share/opencode/auth.json", Content: "OPENCODE_CONFIG_CONTENT",
			},
			Secrets:   []string{"provider.*.options.apiKey"},
			Elsewhere: []string{"OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT", "OPENCODE_CONFIG_DIR", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"},
		},
	},
	{
		Name: Pi, Use: true, NamesVendor: true, Cost: true, Tokens: true, Version: "0.73.1", Package: "@mariozechner/pi-coding-agent", Login: "pi",
		Keys: []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"}, Env: []string{"PI_OFFLINE=1", "PI_TELEMETRY=0"},
		Tools:  Tools{By: "--tools", Own: true, Has: map[Class][]string{Looks: {"read", "grep", "find", "ls"}, Edits: {"edit", "write"}, Shell: {"bash"}}},
		Writes: []string{".pi"}, SignIn: []string{".pi/agent/auth.json"},
		Settings: []Settings{{".pi/agent/models.json", []string{"providers"}}, {".pi/agent/settings.json", []string{"defaultProvider", "defaultModel"}}},
		Metering: Metering{
			ByModel: &ByModel{
				Known: []Provider{
					{"anthropic", "https://api.anthropic.com", []string{"ANTHROPIC_API_KEY"}},
					{"openai", "https://api.openai.com/v1", []string{"OPENAI_API_KEY"}},
					{"google", "https://generativelanguage.googleapis.com/v1beta", []string{"GEMINI_API_KEY"}},
					{"openrouter", "https://openrouter.ai/api/v1", []string{"OPENROUTER_API_KEY"}},
				},
				Files: []string{".pi/agent/models.json"}, In: "providers", Base: "baseUrl", Secret: "apiKey",
				Accounts: ".pi/agent/auth.json", Folder: "PI_CODING_AGENT_DIR",
			},
			Secrets:   []string{"providers.*.apiKey"},
			Elsewhere: []string{"PI_CODING_AGENT_DIR", "--api-key", "--provider"},
		},
	},
	{
		Name: Qwen, Use: true, Tokens: true, Version: "0.24.4", Package: "@qwen-code/qwen-code", Login: "qwen", Keys: []string{"OPENAI_API_KEY"},
		Tools: Tools{By: "--approval-mode, --exclude-tools", Has: map[Class][]string{
			Looks: {"read_file", "read_many_files", "list_directory", "glob", "grep_search", "lsp"}, Edits: {"edit", "write_file", "notebook_edit"},
			Shell: {"run_shell_command", "exec", "monitor"}, Network: {"web_fetch", "web_search"},
			Subagents: {"agent", "workflow", "create_sub_session", "team_create", "send_message", "loop_wakeup", "cron_create"},
		}},
		Writes: []string{".qwen"}, SignIn: []string{".qwen/oauth_creds.json"},
		Settings:  []Settings{{".qwen/settings.json", []string{"security.auth", "selectedAuthType", "model", "modelProviders", "env"}}},
		Leaves:    []string{".qwen/settings.json"},
		Variables: ".qwen/.env",
		Metering: Metering{
			Base: "OPENAI_BASE_URL", At: "https://api.openai.com/v1", Keys: []Key{{Name: "OPENAI_API_KEY"}},
			Secrets:   []string{"env"},
			Elsewhere: []string{"--openai-base-url", "--openai-api-key"},
			Others:    []Settings{{".qwen/settings.json", []string{"modelProviders", "security.auth.baseUrl", "security.auth.apiKey", "env.OPENAI_BASE_URL"}}},
			Chosen:    []Settings{{".qwen/settings.json", []string{"security.auth.selectedType", "selectedAuthType"}}}, Choice: "openai", ChosenBy: "--auth-type",
		},
	},
	{Name: ACP, Use: true, Tools: Tools{By: "its questions", Patterns: true, Asks: true, Tells: true}},
	{Name: "cursor-agent", Writes: []string{".cursor", ".config/cursor"}},
	{Name: "aider", Writes: []string{".aider"}, Reads: []string{".aider.conf.yml"}},
	{Name: "goose", Writes: []string{".config/goose", ".local/share/goose"}},
	{Name: "amp", Writes: []string{".config/amp", ".local/share/amp"}},
	{Name: "copilot", Writes: []string{".copilot"}, Reads: []string{".config/github-copilot"}},
}

// Lookup returns the program of that name; ok is false where there is none.
func Lookup(name string) (p Program, ok bool) {
	i := slices.IndexFunc(Table, func(p Program) bool { return p.Name == name })
	if i < 0 {
		return Program{}, false
	}
	return Table[i], true
}

// OfACP returns the program that a command starts as an agent that speaks the Agent Client Protocol; ok is false for one that is
// not in the table. npx and its like may stand before it, and a version behind it.
func OfACP(argv []string) (p Program, ok bool) {
	for _, word := range argv {
		name, _, _ := strings.Cut(path.Base(word), "@")
		for _, p := range Table {
			if p.Use && p.Name != Command && p.Name != ACP && (p.Name == name || slices.Contains(p.ByACP.Names, name)) {
				return p, true
			}
		}
	}
	return Program{}, false
}

// Signs reports whether it is known where the program keeps its sign-in.
func (p Program) Signs() bool { return len(p.SignIn) > 0 }

// Signing lists the programs that do.
func Signing() (all []string) {
	for _, p := range Table {
		if p.Signs() {
			all = append(all, p.Name)
		}
	}
	return all
}

// Telling lists the values of agent.use whose programs say which tools they were not allowed to use.
func Telling() (all []string) {
	for _, p := range Table {
		if p.Use && p.Tools.Tells {
			all = append(all, p.Name)
		}
	}
	return all
}

// Uses lists the values of agent.use.
func Uses() (all []string) {
	for _, p := range Table {
		if p.Use {
			all = append(all, p.Name)
		}
	}
	return all
}
