package stream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawl/internal/evidence"
	"pawl/internal/loop"
	"pawl/internal/task"
)

// looking are Claude Code's tools that change nothing: all that a role has that may not edit.
var looking = []string{"Read", "Glob", "Grep", "LS", "WebFetch", "WebSearch", "TodoWrite"}

// asking are the tools that its edit mode does not approve by itself.
var asking = []string{"Bash", "WebFetch", "WebSearch"}

// claudeArgv calls Claude Code headless. Neither the user's nor the repository's settings are
// read, whose hooks would run; --include-partial-messages is what makes tokens known while it
// works; --tools takes the others out of the request, where --allowedTools only approves
// beforehand. What must hold comes after the spec's own arguments, as the last one wins.
func claudeArgv(c Call) []string {
	argv := append(started(c), "-p")
	if c.Agent.Model != "" {
		argv = append(argv, "--model", c.Agent.Model)
	}
	switch {
	case !c.MayEdit:
	case c.all():
		argv = append(argv, "--permission-mode", "acceptEdits", "--allowedTools", strings.Join(asking, ","))
	default:
		argv = append(argv, "--permission-mode", "acceptEdits", "--allowedTools", strings.Join(c.Tools, ","))
	}
	argv = append(argv, c.Agent.Args...)
	switch {
	case !c.MayEdit:
		argv = append(argv, "--permission-mode", "default", "--tools", strings.Join(c.mayLook(), ","), "--allowedTools", strings.Join(c.mayLook(), ","))
	case !c.all():
		argv = append(argv, "--tools", strings.Join(names(c.Tools), ","))
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

// mayLook are the tools of a role that may not edit.
func (c Call) mayLook() []string {
	if c.all() {
		return looking
	}
	return slices.DeleteFunc(slices.Clone(looking), func(tool string) bool { return !slices.Contains(names(c.Tools), tool) })
}

// names takes the tools' names out of rules such as Bash(go test:*).
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
	tools  calls
	done   spending            // the messages that are complete
	open   map[string]*message // the one under way, by the tool call whose agent it belongs to
	result *claudeLine
	limit  *task.RateLimit // as it was last told of it
}

// message is one answer of the model as it comes in.
type message struct {
	id, model string
	spent     claudeUsage
}

// spending is what was spent on messages.
type spending struct {
	in, out, nano int64 // nano are billionths of a dollar
}

// maxNano is a million dollars: more than any call costs.
const maxNano = int64(1e15)

func (s spending) plus(m message) spending {
	s.in = count(s.in + m.spent.in())
	s.out = count(s.out + count(m.spent.Output))
	s.nano = min(s.nano+m.spent.nano(m.model), maxNano)
	return s
}

type claudeLine struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Model     string `json:"model"`
	Version   string `json:"claude_code_version"`
	Parent    string `json:"parent_tool_use_id"`

	Message claudeMessage `json:"message"`
	Event   struct {
		Type    string        `json:"type"`
		Message claudeMessage `json:"message"`
		Block   claudeBlock   `json:"content_block"`
		Usage   *claudeUsage  `json:"usage"`
	} `json:"event"`

	IsError  bool         `json:"is_error"`
	Result   string       `json:"result"`
	Errors   []any        `json:"errors"`
	Cost     json.Number  `json:"total_cost_usd"`
	Usage    *claudeUsage `json:"usage"`
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

type claudeMessage struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`
	Usage   *claudeUsage    `json:"usage"`
}

type claudeBlock struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Name string `json:"name"`
	Text string `json:"text"`
}

type claudeUsage struct {
	Input       int64 `json:"input_tokens"`
	CacheCreate int64 `json:"cache_creation_input_tokens"`
	CacheRead   int64 `json:"cache_read_input_tokens"`
	Output      int64 `json:"output_tokens"`
}

// in are the tokens that went in, those from a cache too, as the other programs count them.
func (u claudeUsage) in() int64 {
	return count(count(u.Input) + count(u.CacheCreate) + count(u.CacheRead))
}

// most takes the larger of each number: later events of a message correct earlier ones upwards.
func (u claudeUsage) most(v claudeUsage) claudeUsage {
	return claudeUsage{max(u.Input, v.Input), max(u.CacheCreate, v.CacheCreate), max(u.CacheRead, v.CacheRead), max(u.Output, v.Output)}
}

// prices are the list prices of the models in billionths of a dollar per token. They are for a
// call that is under way, or was ended before it could say what it cost: then Claude Code's own
// figure, an estimate too, takes their place. The first whose name is part of the model's counts;
// an unknown model is taken for the last, as Claude Code takes it.
var prices = []struct {
	name                         string
	in, out, cacheCreate, cached int64
}{
	{"haiku", 1000, 5000, 1250, 100},
	{"sonnet", 3000, 15000, 3750, 300},
	{"opus-4-1", 15000, 75000, 18750, 1500},
	{"opus-4-0", 15000, 75000, 18750, 1500},
	{"opus-4-2", 15000, 75000, 18750, 1500}, // claude-opus-4-20250514
	{"3-opus", 15000, 75000, 18750, 1500},
	{"", 5000, 25000, 6250, 500},
}

func (u claudeUsage) nano(model string) int64 {
	for _, p := range prices {
		if strings.Contains(model, p.name) {
			return count(u.Input)*p.in + count(u.Output)*p.out + count(u.CacheCreate)*p.cacheCreate + count(u.CacheRead)*p.cached
		}
	}
	return 0
}

func (c *claude) line(raw []byte) (events []Event) {
	var l claudeLine
	if !decode(raw, &l) {
		return nil
	}
	switch l.Type {
	case "system":
		if l.Subtype == "init" {
			events = append(events, Event{Kind: Started, Session: l.SessionID, Model: l.Model, Version: l.Version})
		}
	case "stream_event":
		switch l.Event.Type {
		case "message_start":
			c.begin(l.Parent, l.Event.Message)
		case "content_block_start":
			events = c.block(l.Event.Block, events)
		case "message_delta":
			if m := c.open[l.Parent]; m != nil && l.Event.Usage != nil {
				m.spent = m.spent.most(*l.Event.Usage)
			}
		}
	case "assistant":
		c.begin(l.Parent, l.Message)
		var blocks []claudeBlock
		if !decode(l.Message.Content, &blocks) {
			return events
		}
		for _, b := range blocks {
			events = c.block(b, events)
			if b.Type == "text" && strings.TrimSpace(b.Text) != "" && l.Parent == "" {
				events = append(events, Event{Kind: Text, Text: b.Text})
			}
		}
	case "rate_limit_event":
		if c.limit = nil; l.RateLimit.Status == "rejected" {
			c.limit = &task.RateLimit{Said: strings.TrimSpace("rate limit " + evidence.Description(l.RateLimit.Type))}
			if at := l.RateLimit.ResetsAt; at > 0 {
				c.limit.Until = time.Unix(count(at), 0).UTC()
			}
		}
	case "result":
		c.result = &l
		end := l.end()
		if end.Failure != "" && end.Exhausted == "" {
			end.RateLimit = c.limit
		}
		events = append(events, Event{Kind: Ended, End: end})
	}
	return events
}

// begin notes the message that is under way, and books the one before it.
func (c *claude) begin(parent string, m claudeMessage) {
	var spent claudeUsage
	if m.Usage != nil {
		spent = *m.Usage
	}
	if was := c.open[parent]; was != nil && was.id == m.ID {
		was.spent = was.spent.most(spent)
		return
	} else if was != nil {
		c.done = c.done.plus(*was)
	} else if len(c.open) >= maxTools {
		for parent, was := range c.open {
			c.done = c.done.plus(*was)
			delete(c.open, parent)
		}
	}
	c.open[parent] = &message{id: m.ID, model: m.Model, spent: spent}
}

// block counts the tool call that a block of a message is.
func (c *claude) block(b claudeBlock, events []Event) []Event {
	if (b.Type == "tool_use" || b.Type == "server_tool_use") && c.tools.add(b.ID) {
		events = append(events, Event{Kind: ToolCall, Tool: b.Name})
	}
	return events
}

// usage is what the messages add up to. The result knows of tokens that no message showed, such
// as those of another model for a summary, and what it all cost; but not of a message that was
// cut off. So tokens are the larger of both, and the cost is the result's where it names one.
func (c *claude) usage() loop.Usage {
	s := c.done
	for _, m := range c.open {
		s = s.plus(*m)
	}
	u := loop.Usage{AgentCalls: 1, ToolCalls: c.tools.count, InputTokens: s.in, OutputTokens: s.out, CostUSD: dollars(s.nano)}
	r := c.result
	if r == nil {
		return u
	}
	var in, out int64
	for _, m := range r.PerModel {
		in += count(m.Input) + count(m.CacheRead) + count(m.CacheCreate)
		out += count(m.Output)
	}
	if r.Usage != nil {
		in, out = max(in, r.Usage.in()), max(out, count(r.Usage.Output))
	}
	u.InputTokens, u.OutputTokens = max(u.InputTokens, count(in)), max(u.OutputTokens, count(out))
	if cost, err := r.Cost.Float64(); err == nil && cost > 0 {
		u.CostUSD = dollars(int64(min(cost*1e9+0.5, float64(maxNano))))
	}
	return u
}

// end is how the result says that the call ended. Success is a subtype that even an error has:
// the flag and the reason for the end are what counts.
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
		said := l.Result
		if said == "" && len(l.Errors) > 0 {
			said = fmt.Sprint(l.Errors[0])
		}
		e.Failure = strings.TrimSpace(strings.TrimPrefix(l.Subtype+": ", "success: ") + evidence.Description(said))
	case l.Terminal != "" && l.Terminal != "completed":
		e.Failure = "it ended with " + evidence.Description(l.Terminal)
	}
	if l.IsError && e.Failure == "" {
		e.Failure = "an error of which it says nothing"
	}
	return e
}

// dollars turns billionths of a dollar into the exact number.
func dollars(nano int64) evidence.Decimal {
	text := fmt.Sprintf("%d.%09d", nano/1e9, nano%1e9)
	text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	d, err := evidence.ParseDecimal(text)
	if err != nil {
		panic("stream: " + strconv.Quote(text) + " is no number") // digits with one point always are
	}
	return d
}
