// Package agents is the table of the coding agents that pawl knows: how the spec can restrict each of them, where it
// keeps its sign-in, which of the user's settings it gets, and which files it leaves. How a program is called in
// detail, and how its output is read, is in internal/agent/adapter, by the same name. The package is pure. Start at
// Table.
package agents

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/list"
)

// The values of agent.use.
const (
	Command = "command" // any program, by the command in the spec
	Claude  = "claude"
	Codex   = "codex"
	Gemini  = "gemini"

	OpenCode = "opencode"
	Pi       = "pi"
	Qwen     = "qwen"

	// ACP is any program that speaks the Agent Client Protocol, by the command in the spec.
	ACP = "acp"
)

// Program is one agent program.
type Program struct {
	Name string // the name of its command
	Use  bool   // agent.use may name it; an adapter in internal/agent/adapter calls it

	Tools  Tools // how it is restricted to the tools that a contract approves
	Cost   bool  // it reports its cost while it works, or its own figure is trusted
	Tokens bool  // the same for tokens

	Vendor      string // whose models it calls, "" if its settings decide that
	NamesVendor bool   // the names of its models begin with their vendor: anthropic/claude-sonnet-4-5

	Version string   // the version that was measured, see docs/guides/agents.md
	Package string   // its npm package, which CI installs
	Keys    []string // the variables with its own credentials; it gets no other secrets
	Login   string   // the command with which a person signs in, "" if only keys work
	Env     []string // further variables that it gets; the spec's agent.env overrides them

	// ByACP says what differs if it is called by the Agent Client Protocol.
	ByACP    ByACP
	Metering Metering // how it is made to call pawl's meter

	// What it needs of the user's home inside a sandbox. Writes to Writes (settings, sessions) go to a layer of the
	// loop, so nothing is planted in the user's own sessions. It works on a copy of Copies. SignIn is the user's own,
	// and a program may write it to renew it.
	Writes, Copies, Reads, SignIn []string
	// Settings are what a program that agent.use names gets of the user's settings, instead of everything in Writes
	// and Copies. Its own folders of those names are empty and belong to the loop.
	Settings []Settings

	// Variables is the file in its working folder from which it reads variables that are not set. It is the first
	// such file, before .env. The program finds it empty and reads none. "" if it looks for no such file.
	Variables string

	// Instructs is the file with a repository's instructions for it. If it is set, the program may not read the file
	// itself, because it would read settings of the repository too; pawl adds the file to the prompt. "" if it reads
	// all such files itself.
	Instructs string
	// Hides are folders of the repository from which it would run code, whatever its options. It finds them empty.
	Hides []string
	// Leaves are files that it writes for itself into its working folder. They are not part of a change, unless the
	// scope names them.
	Leaves []string
}

// ByACP names the programs that speak the Agent Client Protocol for an agent, if it does not speak it itself, and
// says what they report about its usage.
type ByACP struct {
	Names  []string
	Tokens bool // the whole usage, when a turn has ended or was cancelled
	Cost   bool // while it works
	// Leads are the variables that make them call pawl's meter, instead of Metering.Args. {base} and {key} are filled
	// in.
	Leads []string
	// Version and Package are those of the first of Names, as in Program. Finds is the variable with the path of the
	// program.
	Version, Package, Finds string
}

// MeteringByACP returns how to make the program call pawl's meter if it is called by the Agent Client Protocol.
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

// Settings is a JSON file in the user's home, with the dotted keys without which a program does not find its sign-in
// or its model. Hooks, servers, plugins and permissions are never among them.
type Settings struct {
	File string
	Keys []string
}

// Of returns the JSON for a loop's own copy of the user's file, "" if the file has none of the keys.
func (s Settings) Of(text []byte) string {
	var values map[string]any
	_ = json.Unmarshal(uncommented(text), &values) // a file that is not JSON has none of the keys
	settings := map[string]any{}
	for _, key := range s.Keys {
		if value, ok := at(values, key); ok {
			put(settings, key, value)
		}
	}
	if len(settings) == 0 {
		return ""
	}
	b, _ := json.Marshal(settings) // it was JSON
	return string(b)
}

// opencodeKeys are the keys of opencode's settings by which it finds its model.
var opencodeKeys = []string{"provider", "model", "small_model", "enabled_providers", "disabled_providers"}

// Table are the programs, in the order in which pawl looks for them.
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
		Hides: []string{".codex"}, // codex-acp makes Codex trust every folder, and run its MCP servers
		ByACP: ByACP{
			Names: []string{"codex-acp"}, Tokens: true, Leads: []string{
				"MODEL_PROVIDER=pawl", `CODEX_CONFIG={"model_providers":{"pawl":{"name":"OpenAI","base_url":"{base}","env_key":"{key}","wire_api":"responses"}}}`,
			},
			Version: "2.6.0", Package: "@agentclientprotocol/codex-acp", Finds: "CODEX_PATH",
		},
		Metering: Metering{ // pawl's own use of OPENAI_BASE_URL: Codex reads it only from arguments
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

// Lookup returns the program of that name; ok is false if there is none.
func Lookup(name string) (p Program, ok bool) {
	return list.First(Table, func(p Program) bool { return p.Name == name })
}

// OfACP returns the program that a command starts as an agent that speaks the Agent Client Protocol. ok is false if
// the table does not have it. The command may start with npx or the like, and the name may end with a version.
func OfACP(argv []string) (p Program, ok bool) {
	for _, word := range argv {
		name, _, _ := strings.Cut(path.Base(word), "@")
		p, ok = list.First(Table, func(p Program) bool {
			return p.Use && p.Name != Command && p.Name != ACP && (p.Name == name || slices.Contains(p.ByACP.Names, name))
		})
		if ok {
			break
		}
	}
	return p, ok
}

// Signs reports whether it is known where the program keeps its sign-in.
func (p Program) Signs() bool { return len(p.SignIn) > 0 }

// Signing returns the names of the programs for which that is known.
func Signing() []string { return names(Program.Signs) }

// Telling returns the values of agent.use whose programs report which tools they were not allowed to use.
func Telling() []string { return names(func(p Program) bool { return p.Use && p.Tools.Tells }) }

// Uses returns the values of agent.use.
func Uses() []string { return names(func(p Program) bool { return p.Use }) }

// names returns the names of some programs of the table.
func names(matches func(Program) bool) []string {
	return list.Map(list.Filter(Table, matches), func(p Program) string { return p.Name })
}
