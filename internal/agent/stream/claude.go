package stream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"pawl/internal/evidence"
	"pawl/internal/list"
	"pawl/internal/loop"
	"pawl/internal/meter/tally"
	"pawl/internal/outcome"
	"pawl/internal/program"
)

// looking are the tools of Claude Code that change nothing. A role that may not edit has only these.
var looking = []string{"Read", "Glob", "Grep", "LS", "WebFetch", "WebSearch", "TodoWrite"}

// asking are the tools that its edit mode does not approve by itself.
var asking = []string{"Bash", "WebFetch", "WebSearch"}

// spawning are the two names of the tool that starts an agent.
var spawning = []string{"Agent", "Task"}

// withheld returns those of its tools that "*" does not include and that the contract does not name.
func (c Call) withheld(tools []string) (all []string) {
	named := names(tools)
	agents := slices.ContainsFunc(spawning, func(tool string) bool { return slices.Contains(named, tool) })
	for _, tool := range c.held().Withheld(program.Approve(c.Tools)) {
		if is := slices.Contains(spawning, tool); is && !agents || !is && !slices.Contains(named, tool) {
			all = append(all, tool)
		}
	}
	return all
}

// claudeArgv calls Claude Code headless. It does not read the settings of the user and of the repository, because
// their hooks would run. --include-partial-messages makes tokens known while it works. --tools removes the other
// tools from the request, while --allowedTools only approves tools beforehand. The arguments that pawl needs come
// after the spec's own, because the last one wins.
func claudeArgv(c Call) []string {
	tools, servers := c.held().Names(c.Tools), c.servers()
	argv := c.begin("--model", "-p")
	switch {
	case !c.MayEdit:
	case c.all():
		argv = append(argv, "--permission-mode", "acceptEdits", "--allowedTools", strings.Join(slices.Concat(asking, servers), ","))
	default: // the edit mode would also approve commands: rm, cp, a redirection
		argv = append(argv, "--permission-mode", "default", "--allowedTools", strings.Join(slices.Concat(tools, servers), ","))
	}
	argv = append(argv, c.Agent.Args...)
	switch {
	case !c.MayEdit:
		look := looking
		if !c.all() {
			look = only(looking, tools)
		}
		argv = append(argv, "--permission-mode", "default", "--tools", strings.Join(look, ","), "--allowedTools", strings.Join(look, ","), "--disallowedTools", anyServer)
	case !c.all():
		argv = append(argv, "--tools", strings.Join(slices.DeleteFunc(names(tools), ofServer), ","))
		if len(servers) == 0 && !slices.ContainsFunc(tools, ofServer) {
			argv = append(argv, "--disallowedTools", anyServer)
		}
	default:
		if withheld := c.withheld(tools); len(withheld) > 0 {
			argv = append(argv, "--disallowedTools", strings.Join(withheld, ","))
		}
	}
	if c.Session != "" {
		argv = append(argv, "--session-id", c.Session)
	}
	if left, limited := c.Budget[loop.CostUSD]; limited && left.Sign() > 0 {
		argv = append(argv, "--max-budget-usd", left.String())
	}
	return append(argv, "--setting-sources", "", "--strict-mcp-config",
		"--output-format", "stream-json", "--verbose", "--include-partial-messages")
}

// anyServer stands for every tool of every MCP server.
const anyServer = "mcp__*"

// servers returns rules that approve the MCP servers of the spec's own arguments, if the class is approved. There is
// no rule that approves every server.
func (c Call) servers() (rules []string) {
	if !c.approved().May(program.MCP) {
		return nil
	}
	names, _ := program.Servers(c.Agent.Args)
	return list.Map(names, func(name string) string { return "mcp__" + name })
}

// ofServer reports whether a tool belongs to an MCP server. --tools does not accept such tools.
func ofServer(tool string) bool { return strings.HasPrefix(tool, "mcp__") }

// only returns those of the tools that are approved by name.
func only(tools, approved []string) []string {
	return slices.DeleteFunc(slices.Clone(tools), func(tool string) bool { return !slices.Contains(names(approved), tool) })
}

// names returns the names of the tools in rules such as Bash(go test:*).
func names(rules []string) (tools []string) {
	for _, rule := range rules {
		name, _, _ := strings.Cut(rule, "(")
		if !slices.Contains(tools, name) {
			tools = append(tools, name)
		}
	}
	return tools
}

// claude reads Claude Code's stream-json.
type claude struct {
	totals                     // of complete messages; last is the refusal after which it asks its provider again
	within bool                // the input includes tokens from a cache
	open   map[string]*message // the open message of each agent, by the tool call that started the agent
	agents map[string]*helper  // the agents that it started, by the tool call that started each
	model  string
	result *claudeLine
	limit  *outcome.Refusal // the last report of its rate limit
}

func (c *claude) refusal() *outcome.Refusal { return cmp.Or(c.limit, c.last) }

// helper is an agent that Claude Code has started. If another helper has started it, its messages are not in the
// stream. The stream then only has the number of its tool calls and the size of its last request.
type helper struct {
	shown int64 // tool calls in the stream
	told  int64 // tool calls by its progress reports
	deep  bool  // another helper has started it
	spent spending
}

// hidden returns how many tool calls are not in the stream.
func (h helper) hidden() int64 { return max(h.told-h.shown, 0) }

// message is one answer of the model while it arrives.
type message struct {
	id, model string
	used      claudeUsage
}

func (m message) spent() spending {
	return spending{in: m.used.in(), out: count(m.used.Output), nano: m.used.nano(m.model)}
}

type claudeLine struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Model     string `json:"model"`
	Version   string `json:"claude_code_version"`
	Parent    string `json:"parent_tool_use_id"`

	// Of what its provider answers instead of work: while it asks again, and in the end.
	ErrorStatus int   `json:"error_status"`
	RetryMs     int64 `json:"retry_delay_ms"`
	Error       words `json:"error"`
	APIStatus   int   `json:"api_error_status"`
	APIError    bool  `json:"is_api_error_message"`

	// Of a helper's progress.
	Task     string `json:"task_id"`
	TaskCall string `json:"tool_use_id"`
	Depth    int    `json:"spawn_depth"`

	Message claudeMessage `json:"message"`
	Event   struct {
		Type    string        `json:"type"`
		Message claudeMessage `json:"message"`
		Block   claudeBlock   `json:"content_block"`
		Usage   claudeUsage   `json:"usage"`
	} `json:"event"`

	IsError  bool        `json:"is_error"`
	Result   string      `json:"result"`
	Errors   []any       `json:"errors"`
	Cost     json.Number `json:"total_cost_usd"`
	Usage    claudeUsage `json:"usage"`
	PerModel map[string]struct {
		Input       int64 `json:"inputTokens"`
		Output      int64 `json:"outputTokens"`
		CacheRead   int64 `json:"cacheReadInputTokens"`
		CacheCreate int64 `json:"cacheCreationInputTokens"`
	} `json:"modelUsage"`
	Denials []struct {
		Tool string `json:"tool_name"`
	} `json:"permission_denials"`
	Terminal string `json:"terminal_reason"`

	RateLimit struct {
		Status   string `json:"status"` // allowed, allowed_warning, rejected
		ResetsAt int64  `json:"resetsAt"`
		Type     string `json:"rateLimitType"`
	} `json:"rate_limit_info"`
}

// words are a string, or an object with a message, which Qwen Code uses.
type words string

// UnmarshalJSON reads either form. Anything else is the empty text.
func (w *words) UnmarshalJSON(raw []byte) error {
	var text string
	var object struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &object) == nil {
		text = object.Message
	}
	*w = words(text)
	return nil
}

type claudeMessage struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`
	Usage   claudeUsage     `json:"usage"`
}

type claudeBlock struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Name string `json:"name"`
	Text string `json:"text"`
	Of   string `json:"tool_use_id"` // of a result

	Input   json.RawMessage `json:"input"`
	Content json.RawMessage `json:"content"` // of a result
	Error   bool            `json:"is_error"`
}

// textIn returns the text of a content: a string, or the text blocks in a list that are not blank.
func textIn(content json.RawMessage) string {
	if bytes.HasPrefix(content, []byte(`"`)) {
		return decode[string](content)
	}
	var said []string
	for _, b := range decode[[]struct{ Type, Text string }](content) {
		if b.Type == "text" && strings.TrimSpace(b.Text) != "" {
			said = append(said, b.Text)
		}
	}
	return strings.Join(said, "\n")
}

type claudeUsage struct {
	Input       int64 `json:"input_tokens"`
	CacheCreate int64 `json:"cache_creation_input_tokens"`
	CacheRead   int64 `json:"cache_read_input_tokens"`
	Output      int64 `json:"output_tokens"`

	// Of a helper's progress.
	Tools int64 `json:"tool_uses"`
	Total int64 `json:"total_tokens"` // the size of its last request
}

// in returns the input tokens, including those from a cache, as the other programs count them.
func (u claudeUsage) in() int64 {
	return count(count(u.Input) + count(u.CacheCreate) + count(u.CacheRead))
}

// most returns the larger of each number, because later events of a message correct earlier ones upwards.
func (u claudeUsage) most(v claudeUsage) claudeUsage {
	return claudeUsage{
		Input: max(u.Input, v.Input), CacheCreate: max(u.CacheCreate, v.CacheCreate), CacheRead: max(u.CacheRead, v.CacheRead), Output: max(u.Output, v.Output),
	}
}

// prices are used for a call that still runs, or was ended before it could report its cost. When Claude Code reports
// its own figure, also an estimate, that replaces them. An unknown model has a price too, as in Claude Code.
var prices = sync.OnceValue(func() tally.Prices { return tally.Listed().Capped() })

func (u claudeUsage) nano(model string) int64 {
	nano, _ := prices().Nano(model, tally.Usage{
		Input: u.in(), Cached: count(u.CacheRead), CacheWrite: count(u.CacheCreate), Output: count(u.Output),
	})
	return nano
}

func (c *claude) line(raw []byte) (events []Event) {
	l := decode[claudeLine](raw)
	for _, u := range []*claudeUsage{&l.Usage, &l.Message.Usage, &l.Event.Usage, &l.Event.Message.Usage} {
		if c.within {
			u.Input = max(count(u.Input)-count(u.CacheRead)-count(u.CacheCreate), 0)
		}
	}
	switch l.Type {
	case "system":
		if l.Subtype == "init" {
			c.model = l.Model
			events = append(events, Event{Kind: Started, Session: l.SessionID, Model: l.Model, Version: l.Version})
		}
		if l.Subtype == "api_retry" {
			c.last = l.retry()
		}
		if by := cmp.Or(l.TaskCall, l.Task); by != "" {
			h := c.helper(by)
			h.deep = h.deep || l.Depth > 1
			c.progress(h, l.Usage)
		}
	case "stream_event":
		switch l.Event.Type {
		case "message_start":
			c.last = nil
			c.begin(l.Parent, l.Event.Message)
		case "content_block_start":
			events = c.block(l.Parent, l.Event.Block, events)
		case "message_delta":
			if m := c.open[l.Parent]; m != nil {
				m.used = m.used.most(l.Event.Usage)
			}
		}
	case "user":
		for _, b := range decode[[]claudeBlock](l.Message.Content) {
			if c.tools.end(b.Of); b.Type == "tool_result" {
				events = append(events, Event{Kind: Answered, Call: b.Of, Text: textIn(b.Content), Failed: b.Error})
			}
		}
	case "assistant":
		if c.last = nil; l.APIError { // its own text about the provider's answer
			c.last = l.refused()
		}
		c.begin(l.Parent, l.Message)
		for _, b := range decode[[]claudeBlock](l.Message.Content) {
			events = c.block(l.Parent, b, events)
			switch {
			case strings.HasSuffix(b.Type, "tool_use"):
				events = append(events, Event{Kind: Asked, Call: b.ID, Tool: b.Name, Text: string(b.Input)})
			case b.Type != "text" || strings.TrimSpace(b.Text) == "":
			case l.Parent == "":
				events = append(events, Event{Kind: Text, Text: b.Text})
			default:
				events = append(events, Event{Kind: Aside, Text: b.Text})
			}
		}
	case "rate_limit_event":
		if c.limit = nil; l.RateLimit.Status == "rejected" {
			c.limit = &outcome.Refusal{Class: outcome.RateLimited, Status: 429, Said: strings.TrimSpace("rate limit " + evidence.Description(l.RateLimit.Type))}
			if at := l.RateLimit.ResetsAt; at > 0 {
				c.limit.Until = time.Unix(count(at), 0).UTC()
			}
		}
	case "result":
		c.result = &l
		end := l.end()
		if end.Failure != "" && end.Exhausted == "" {
			end.Refusal = cmp.Or(c.limit, l.refused())
		}
		events = append(events, Event{Kind: Ended, End: end})
	}
	return events
}

// helper returns the agent that a tool call started.
func (c *claude) helper(call string) *helper {
	if c.agents == nil || len(c.agents) >= maxTools && c.agents[call] == nil {
		c.agents = map[string]*helper{}
	}
	if c.agents[call] == nil {
		c.agents[call] = &helper{}
	}
	return c.agents[call]
}

// progress records a progress report of a helper. If the helper's messages are not in the stream, each of its tool
// calls counts as one request as large as its last one, at the price without a cache. That is too much rather than
// too little, until the result has the real numbers.
func (c *claude) progress(h *helper, u claudeUsage) {
	more := max(count(u.Tools)-h.told, 0)
	h.told += more
	if h.deep && more > 0 {
		h.spent.add(message{model: c.model, used: claudeUsage{Input: count(count(u.Total) * min(more, 1000))}}.spent())
	}
}

// begin records the open message, and adds the usage of the one before.
func (c *claude) begin(parent string, m claudeMessage) {
	if h := c.agents[parent]; h != nil && h.deep { // this version shows the helper's messages
		h.deep, h.spent = false, spending{}
	}
	if was := c.open[parent]; was != nil && was.id == m.ID {
		was.used = was.used.most(m.Usage)
		return
	} else if was != nil {
		c.add(was.spent())
	} else if len(c.open) >= maxTools {
		for parent, was := range c.open {
			c.add(was.spent())
			delete(c.open, parent)
		}
	}
	c.open[parent] = &message{id: m.ID, model: m.Model, used: m.Usage}
}

// block counts the tool call in a block of a message.
func (c *claude) block(parent string, b claudeBlock, events []Event) []Event {
	if (b.Type == "tool_use" || b.Type == "server_tool_use") && c.tools.add(b.ID) {
		if parent != "" {
			c.helper(parent).shown++
		}
		if b.Type == "tool_use" { // the provider runs the other kind of tool
			c.tools.begin(b.ID)
		}
		events = append(events, Event{Kind: ToolCall, Tool: b.Name})
	}
	return events
}

// retry returns the provider's answer after which it asks again.
func (l claudeLine) retry() *outcome.Refusal {
	r := &outcome.Refusal{
		Class: outcome.ByStatus(l.ErrorStatus), Status: l.ErrorStatus, Said: strings.TrimSpace(strconv.Itoa(l.ErrorStatus) + " " + evidence.Description(string(l.Error))),
	}
	switch {
	case l.ErrorStatus == 0: // the provider was not reached
		r.Class, r.Said = outcome.ProviderDown, cmp.Or(evidence.Description(string(l.Error)), "the provider was not reached")
	case r.Class == outcome.RateLimited:
		r.After = time.Duration(min(count(l.RetryMs), int64(maxRetry/time.Millisecond))) * time.Millisecond
	case r.Class == "":
		return nil
	}
	return r
}

// maxRetry is a longer wait than any provider asks for.
const maxRetry = 30 * 24 * time.Hour

// refused returns the provider's refusal, from the message or the result about it; nil if there was none.
func (l claudeLine) refused() *outcome.Refusal {
	class := outcome.ByStatus(l.APIStatus)
	if class == "" && l.Error == "authentication_failed" { // it is not signed in, so it sent no request
		class = outcome.AuthMissing
	}
	if class == "" {
		return nil
	}
	said := cmp.Or(l.Result, textIn(l.Message.Content))
	if r := outcome.In(said); r != nil && r.Class == class {
		r.Status = l.APIStatus
		return r
	}
	return &outcome.Refusal{Class: class, Status: l.APIStatus, Said: cmp.Or(evidence.Description(said), evidence.Description(string(l.Error)))}
}

// usage returns the sum over the messages, corrected by the result. The result includes tokens that no message
// showed, such as those of another model for a summary, and the cost. But it lacks a message that was cut off. So
// tokens are the larger of both, and the cost is the result's if it has one.
func (c *claude) usage() loop.Usage {
	all, r := c.totals, c.result
	for _, m := range c.open {
		all.add(m.spent())
	}
	for _, h := range c.agents {
		all.tools.count = count(all.tools.count + h.hidden())
		if r == nil {
			all.add(h.spent)
		}
	}
	u := all.usage()
	if r == nil {
		return u
	}
	var in, out int64
	for _, m := range r.PerModel {
		in += count(m.Input) + count(m.CacheRead) + count(m.CacheCreate)
		out += count(m.Output)
	}
	u.InputTokens = max(u.InputTokens, count(in), r.Usage.in())
	u.OutputTokens = max(u.OutputTokens, count(out), count(r.Usage.Output))
	if nano := nanoOf(r.Cost); nano > 0 {
		u.CostUSD = Dollars(nano)
	}
	return u
}

// end returns how the call ended, by its result. Even an error may have the subtype success, so the flag and the
// reason for the end decide.
func (l claudeLine) end() *End {
	e := &End{Text: l.Result}
	for _, d := range l.Denials {
		if !slices.Contains(e.Denied, d.Tool) && len(e.Denied) < 20 {
			e.Denied = append(e.Denied, loop.Clip(d.Tool, 80))
		}
	}
	switch {
	case l.Subtype == "error_max_budget_usd":
		e.Exhausted = loop.CostUSD
		e.Failure = "it reached its budget"
	case l.IsError || l.Subtype != "success":
		said := cmp.Or(l.Result, string(l.Error))
		if said == "" && len(l.Errors) > 0 {
			said = fmt.Sprint(l.Errors[0])
		}
		e.Failure = strings.TrimSpace(strings.TrimPrefix(l.Subtype+": ", "success: ") + evidence.Description(said))
	case l.Terminal != "" && l.Terminal != "completed":
		e.Failure = "it ended with " + evidence.Description(l.Terminal)
	}
	if l.IsError && e.Failure == "" {
		e.Failure = "an error without a message"
	}
	return e
}

// Dollars turns billionths of a dollar into the exact number.
func Dollars(nano int64) evidence.Decimal {
	text := fmt.Sprintf("%d.%09d", nano/1e9, nano%1e9)
	return evidence.MustDecimal(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}
