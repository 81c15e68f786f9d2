package adapter

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

	"pawl/internal/exec/usage"
	"pawl/internal/lib/list"
	"pawl/internal/lib/loosejson"
	"pawl/internal/loop"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/internal/spec/agents"
)

// looking are the tools of Claude Code that change nothing. A role that may not edit has only these.
var looking = []string{"Read", "Glob", "Grep", "LS", "WebFetch", "WebSearch", "TodoWrite"}

// asking are the tools that its edit mode does not approve by itself.
var asking = []string{"Bash", "WebFetch", "WebSearch"}

// spawning are the two names of the tool that starts an agent.
var spawning = []string{"Agent", "Task"}

// withheld returns those of its tools that "*" does not include and that the contract does not name.
func (c Call) withheld(tools []string) []string {
	named := names(tools)
	hasSubagents := slices.ContainsFunc(spawning, func(tool string) bool { return slices.Contains(named, tool) })
	return list.Filter(c.held().Withheld(agents.Approve(c.Tools)), func(tool string) bool {
		return !slices.Contains(named, tool) && !(hasSubagents && slices.Contains(spawning, tool))
	})
}

// claudeArgv calls Claude Code headless. It does not read the settings of the user and of the repository, because
// their hooks would run. --include-partial-messages makes tokens known while it works. --tools removes the other
// tools from the request, while --allowedTools only approves tools beforehand. The arguments that pawl needs come
// after the spec's own, because the last one wins.
func claudeArgv(c Call) []string {
	tools, servers := c.held().Names(c.Tools), c.servers()
	var before, after []string // the spec's own arguments
	switch {
	case !c.MayEdit:
		look := looking
		if !c.all() {
			look = only(looking, tools)
		}
		after = []string{"--permission-mode", "default", "--tools", strings.Join(look, ","), "--allowedTools", strings.Join(look, ","), "--disallowedTools", anyServer}
	case c.all():
		before = []string{"--permission-mode", "acceptEdits", "--allowedTools", strings.Join(slices.Concat(asking, servers), ",")}
		if withheld := c.withheld(tools); len(withheld) > 0 {
			after = []string{"--disallowedTools", strings.Join(withheld, ",")}
		}
	default: // the edit mode would also approve commands: rm, cp, a redirection
		before = []string{"--permission-mode", "default", "--allowedTools", strings.Join(slices.Concat(tools, servers), ",")}
		after = []string{"--tools", strings.Join(slices.DeleteFunc(names(tools), ofServer), ",")}
		if len(servers) == 0 && !slices.ContainsFunc(tools, ofServer) {
			after = append(after, "--disallowedTools", anyServer)
		}
	}
	argv := slices.Concat(c.begin("--model", "-p"), before, c.Agent.Args, after)
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
	if !c.approved().May(agents.MCP) {
		return nil
	}
	names, _ := agents.Servers(c.Agent.Args)
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
	result *spending       // by the program's own report
	limit  *result.Refusal // the last report of its rate limit
}

func (c *claude) refusal() *result.Refusal { return cmp.Or(c.limit, c.last) }

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
	return spending{in: m.used.in(), out: m.used.output, nano: m.used.nano(m.model)}
}

// textIn returns the text of a content: a string, or the text blocks in a list that are not blank.
func textIn(content json.RawMessage) string {
	if bytes.HasPrefix(content, []byte(`"`)) {
		return loosejson.Decode[string](content)
	}
	var said []string
	for _, b := range loosejson.Decode[[]loosejson.Object](content) {
		if text := b.Text("text"); b.Text("type") == "text" && strings.TrimSpace(text) != "" {
			said = append(said, text)
		}
	}
	return strings.Join(said, "\n")
}

type claudeUsage struct{ input, cacheWrite, cacheRead, output int64 }

// used reads the usage in a message or a line.
func (c *claude) used(o loosejson.Object) claudeUsage {
	u := o.At("usage")
	used := claudeUsage{u.Count("input_tokens"), u.Count("cache_creation_input_tokens"), u.Count("cache_read_input_tokens"), u.Count("output_tokens")}
	if c.within {
		used.input = max(used.input-used.cacheRead-used.cacheWrite, 0)
	}
	return used
}

// in returns the input tokens, including those from a cache, as the other programs count them.
func (u claudeUsage) in() int64 { return loosejson.Count(u.input + u.cacheWrite + u.cacheRead) }

// most returns the larger of each number, because later events of a message correct earlier ones upwards.
func (u claudeUsage) most(v claudeUsage) claudeUsage {
	return claudeUsage{max(u.input, v.input), max(u.cacheWrite, v.cacheWrite), max(u.cacheRead, v.cacheRead), max(u.output, v.output)}
}

// prices are used for a call that still runs, or was ended before it could report its cost. When Claude Code reports
// its own figure, also an estimate, that replaces them. An unknown model has a price too, as in Claude Code.
var prices = sync.OnceValue(func() usage.Prices { return usage.Listed().Capped() })

func (u claudeUsage) nano(model string) int64 {
	nano, _ := prices().Nano(model, usage.Usage{Input: u.in(), Cached: u.cacheRead, CacheWrite: u.cacheWrite, Output: u.output})
	return nano
}

func (c *claude) line(raw []byte) (events []Event) {
	l := loosejson.Decode[loosejson.Object](raw)
	parent, m := l.Text("parent_tool_use_id"), l.At("message")
	switch l.Text("type") {
	case "system":
		switch l.Text("subtype") {
		case "init":
			c.model = l.Text("model")
			events = append(events, Event{Kind: Started, Session: l.Text("session_id"), Model: c.model, Version: l.Text("claude_code_version")})
		case "api_retry":
			c.last = retry(l)
		}
		if by := l.Text("tool_use_id", "task_id"); by != "" {
			h := c.helper(by)
			h.deep = h.deep || l.Int("spawn_depth") > 1
			c.progress(h, l.At("usage"))
		}
	case "stream_event":
		switch e := l.At("event"); e.Text("type") {
		case "message_start":
			c.last = nil
			c.begin(parent, e.At("message"))
		case "content_block_start":
			events = c.block(parent, e.At("content_block"), events)
		case "message_delta":
			if m := c.open[parent]; m != nil {
				m.used = m.used.most(c.used(e))
			}
		}
	case "user":
		for _, b := range m.List("content") {
			call := b.Text("tool_use_id")
			if c.tools.end(call); b.Text("type") == "tool_result" {
				events = append(events, Event{Kind: Answered, Call: call, Text: textIn(b["content"]), Failed: b.Is("is_error")})
			}
		}
	case "assistant":
		if c.last = nil; l.Is("is_api_error_message") { // its own text about the provider's answer
			c.last = refused(l)
		}
		c.begin(parent, m)
		for _, b := range m.List("content") {
			events = c.block(parent, b, events)
			switch kind, text := b.Text("type"), b.Text("text"); {
			case strings.HasSuffix(kind, "tool_use"):
				events = append(events, Event{Kind: Asked, Call: b.Text("id"), Tool: b.Text("name"), Text: b.Raw("input")})
			case kind != "text" || strings.TrimSpace(text) == "":
			case parent == "":
				events = append(events, Event{Kind: Text, Text: text})
			default:
				events = append(events, Event{Kind: Aside, Text: text})
			}
		}
	case "rate_limit_event":
		limit := l.At("rate_limit_info") // its status is allowed, allowed_warning or rejected
		if c.limit = nil; limit.Text("status") == "rejected" {
			c.limit = &result.Refusal{Class: result.RateLimited, Status: 429, Said: strings.TrimSpace("rate limit " + metric.Description(limit.Text("rateLimitType")))}
			if at := limit.Count("resetsAt"); at > 0 {
				c.limit.Until = time.Unix(at, 0).UTC()
			}
		}
	case "result":
		c.result = c.total(l)
		end := ended(l)
		if end.Failure != "" && end.Exhausted == "" {
			end.Refusal = cmp.Or(c.limit, refused(l))
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
func (c *claude) progress(h *helper, used loosejson.Object) {
	more := max(used.Count("tool_uses")-h.told, 0)
	h.told += more
	if h.deep && more > 0 {
		h.spent.add(message{model: c.model, used: claudeUsage{input: loosejson.Count(used.Count("total_tokens") * min(more, 1000))}}.spent())
	}
}

// begin records the open message, and adds the usage of the one before.
func (c *claude) begin(parent string, m loosejson.Object) {
	now := &message{m.Text("id"), m.Text("model"), c.used(m)}
	if h := c.agents[parent]; h != nil && h.deep { // this version shows the helper's messages
		h.deep, h.spent = false, spending{}
	}
	if was := c.open[parent]; was != nil && was.id == now.id {
		was.used = was.used.most(now.used)
		return
	} else if was != nil {
		c.add(was.spent())
	} else if len(c.open) >= maxTools {
		for parent, was := range c.open {
			c.add(was.spent())
			delete(c.open, parent)
		}
	}
	c.open[parent] = now
}

// block counts the tool call in a block of a message.
func (c *claude) block(parent string, b loosejson.Object, events []Event) []Event {
	kind, id := b.Text("type"), b.Text("id")
	if (kind == "tool_use" || kind == "server_tool_use") && c.tools.add(id) {
		if parent != "" {
			c.helper(parent).shown++
		}
		if kind == "tool_use" { // the provider runs the other kind of tool
			c.tools.begin(id)
		}
		events = append(events, Event{Kind: ToolCall, Tool: b.Text("name")})
	}
	return events
}

// errorIn returns what a line says about an error: a string, or an object with a message, which Qwen Code uses.
func errorIn(l loosejson.Object) string {
	return cmp.Or(l.Text("error"), l.At("error").Text("message"))
}

// retry returns the provider's answer after which it asks again.
func retry(l loosejson.Object) *result.Refusal {
	status, said := l.Int("error_status"), metric.Description(errorIn(l))
	r := &result.Refusal{Class: result.ByStatus(status), Status: status, Said: strings.TrimSpace(strconv.Itoa(status) + " " + said)}
	switch {
	case status == 0: // the provider was not reached
		r.Class, r.Said = result.ProviderDown, cmp.Or(said, "the provider was not reached")
	case r.Class == result.RateLimited:
		r.After = time.Duration(min(l.Count("retry_delay_ms"), int64(maxRetry/time.Millisecond))) * time.Millisecond
	case r.Class == "":
		return nil
	}
	return r
}

// maxRetry is a longer wait than any provider asks for.
const maxRetry = 30 * 24 * time.Hour

// refused returns the provider's refusal, from the message or the result about it; nil if there was none.
func refused(l loosejson.Object) *result.Refusal {
	status := l.Int("api_error_status")
	class := result.ByStatus(status)
	if class == "" { // it sent no request, such as without a sign-in
		class = cmp.Or(result.ByCode(l.Text("api_error")), result.ByCode(l.Text("api_error_type")), result.ByCode(l.Text("error")))
	}
	if class == "" {
		return nil
	}
	said := cmp.Or(l.Text("result"), textIn(l.At("message")["content"]))
	if r := result.In(said); r != nil && r.Class == class {
		r.Status = status
		return r
	}
	return &result.Refusal{Class: class, Status: status, Said: cmp.Or(metric.Description(said), metric.Description(errorIn(l)))}
}

// total returns what the result reports.
func (c *claude) total(l loosejson.Object) *spending {
	all := spending{nano: nanoOf(l["total_cost_usd"])}
	for _, m := range loosejson.Decode[map[string]loosejson.Object](l["modelUsage"]) {
		all.in += m.Count("inputTokens") + m.Count("cacheReadInputTokens") + m.Count("cacheCreationInputTokens")
		all.out += m.Count("outputTokens")
	}
	used := c.used(l)
	all.in, all.out = max(loosejson.Count(all.in), used.in()), max(loosejson.Count(all.out), used.output)
	return &all
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
		all.tools.count = loosejson.Count(all.tools.count + h.hidden())
		if r == nil {
			all.add(h.spent)
		}
	}
	u := all.usage()
	if r == nil {
		return u
	}
	u.InputTokens, u.OutputTokens = max(u.InputTokens, r.in), max(u.OutputTokens, r.out)
	if r.nano > 0 {
		u.CostUSD = Dollars(r.nano)
	}
	return u
}

// ended returns how the call ended, by its result. Even an error may have the subtype success, so the flag and the
// reason for the end decide.
func ended(l loosejson.Object) *End {
	e := &End{Text: l.Text("result")}
	for _, d := range l.List("permission_denials") {
		if tool := d.Text("tool_name"); !slices.Contains(e.Denied, tool) && len(e.Denied) < 20 {
			e.Denied = append(e.Denied, loop.Clip(tool, 80))
		}
	}
	kind, failed, reason := l.Text("subtype"), l.Is("is_error"), l.Text("terminal_reason")
	switch {
	case kind == "error_max_budget_usd":
		e.Exhausted = loop.CostUSD
		e.Failure = "it reached its budget"
	case failed || kind != "success":
		said := cmp.Or(e.Text, errorIn(l))
		if errors := loosejson.Decode[[]any](l["errors"]); said == "" && len(errors) > 0 {
			said = fmt.Sprint(errors[0])
		}
		e.Failure = strings.TrimSpace(strings.TrimPrefix(kind+": ", "success: ") + metric.Description(said))
	case reason != "" && reason != "completed":
		e.Failure = "it ended with " + metric.Description(reason)
	}
	if failed && e.Failure == "" {
		e.Failure = "an error without a message"
	}
	return e
}

// Dollars turns billionths of a dollar into the exact number.
func Dollars(nano int64) metric.Decimal {
	text := fmt.Sprintf("%d.%09d", nano/1e9, nano%1e9)
	return metric.MustDecimal(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}
