// Package usage finds out what an answer of a model provider cost. It reads the tokens, the tool calls and the model
// from answers of the Anthropic Messages API, OpenAI's chat completions and responses, and Gemini's generateContent,
// complete or as a stream, and estimates dollars from a table of prices. It is pure: bytes go in, numbers come out.
// It decides nothing about budgets and stores no text. Start at Counter; prices.go has the table, total.go adds up
// several calls.
package usage

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/lib/loosejson"
)

// Usage is what one answer used. Input counts all input tokens, including those read from a cache and those written
// to one. Output counts all output tokens, including thinking.
type Usage struct {
	Input      int64 `json:"input,omitempty"`
	Cached     int64 `json:"cached,omitempty"`     // of Input: read from a cache
	CacheWrite int64 `json:"cacheWrite,omitempty"` // of Input: written to a cache
	Output     int64 `json:"output,omitempty"`
}

// most returns the larger of each number: later events of a stream raise earlier numbers.
func (u Usage) most(v Usage) Usage {
	return Usage{max(u.Input, v.Input), max(u.Cached, v.Cached), max(u.CacheWrite, v.CacheWrite), max(u.Output, v.Output)}
}

// Answer is what one answer of a model reports about itself.
type Answer struct {
	Model string // as the provider names it, "" if it does not
	Usage Usage
	Tools int64 // the tool calls in it
	Told  bool  // the provider reported the usage
	Whole bool  // the provider reported the end
	Bytes int64 // how long it was
}

// maxPiece limits how many bytes of an answer are kept at a time: an event of a stream, or a complete answer. Nothing is
// read from a longer one.
const maxPiece = 32 << 20

// Counter reads one answer, in pieces of any size. It recognises a stream of server-sent events and a complete JSON
// document of any of the APIs by their structure. The zero Counter is ready to use.
type Counter struct {
	// Stream says that the answer is a stream of server-sent events.
	Stream bool

	answer  Answer
	line    []byte
	data    []byte // of the current event, or the whole document
	skipped bool   // the current piece is too long
	items   int64  // tool calls of the responses API that came one by one
	chat    map[[2]int]bool
	gemini  int64
}

// Write reads the next bytes of the answer. It never fails.
func (c *Counter) Write(b []byte) (int, error) {
	c.answer.Bytes += int64(len(b))
	if !c.Stream {
		c.keep(&c.data, b)
		return len(b), nil
	}
	for line := range bytes.Lines(b) {
		part, whole := bytes.CutSuffix(line, []byte("\n"))
		c.keep(&c.line, part)
		if whole {
			c.endLine()
		}
	}
	return len(b), nil
}

// Answer returns the counts so far.
func (c *Counter) Answer() Answer { return c.answer }

// Close reads what came after the last line, and returns the counts.
func (c *Counter) Close() Answer {
	if c.Stream {
		c.endLine()
	}
	c.dispatch()
	return c.answer
}

func (c *Counter) keep(buffer *[]byte, b []byte) {
	if c.skipped = c.skipped || len(*buffer)+len(b) > maxPiece; c.skipped {
		*buffer = nil
		return
	}
	*buffer = append(*buffer, b...)
}

func (c *Counter) endLine() {
	line := bytes.TrimSuffix(c.line, []byte("\r"))
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		c.keep(&c.data, data)
	} else if len(line) == 0 {
		c.dispatch()
	}
	c.line = c.line[:0]
}

// dispatch reads the complete event or document.
func (c *Counter) dispatch() {
	data := bytes.TrimSpace(c.data)
	c.data = c.data[:0]
	if c.skipped {
		c.skipped = false
		return
	}
	if len(data) == 0 {
		return
	}
	c.answer.Whole = c.answer.Whole || !c.Stream || string(data) == "[DONE]"
	switch data[0] {
	case '{':
		c.read(data)
	case '[': // a stream of Gemini's that is not a stream of events
		for _, event := range loosejson.Decode[[]json.RawMessage](data) {
			c.read(event)
		}
	}
}

// used reads the counts of all APIs except Gemini's. Anthropic counts cache reads and writes separately, OpenAI as a part
// of the input. A chunk of a chat has empty counts, or none.
func (c *Counter) used(u loosejson.Object) {
	input, out := u.Count("input_tokens"), u.Count("output_tokens")
	read, written := u.Count("cache_read_input_tokens"), u.Count("cache_creation_input_tokens")
	details := "input_tokens_details"
	switch {
	case u.Has("prompt_tokens"):
		input, out, details = u.Count("prompt_tokens"), u.Count("completion_tokens"), "prompt_tokens_details"
	case !u.Has("input_tokens") && out == 0:
		return
	}
	if d := u.At(details); u.Has("prompt_tokens") || u.Has(details) {
		read, written = min(d.Count("cached_tokens"), input), d.Count("cache_write_tokens")
	} else {
		input += read + written
	}
	c.answer.Usage, c.answer.Told = c.answer.Usage.most(Usage{Input: input, Cached: read, CacheWrite: written, Output: out}), true
}

// lastTypes are the events that end a stream, in the APIs that have such events. A chat and Gemini give a reason
// instead.
var lastTypes = []string{"message_stop", "error", "response.completed", "response.incomplete", "response.failed"}

func (c *Counter) read(raw []byte) {
	p := loosejson.Decode[loosejson.Object](raw)
	kind := p.Text("type")
	c.model(p.Text("model"), p.Text("modelVersion"))
	c.used(p.At("usage"))
	if kind == "message_start" {
		c.model(p.At("message").Text("model"))
		c.used(p.At("message").At("usage"))
	}
	c.blocks(kind, p)
	c.outputs(kind, p)
	// An error may come in the middle of a stream. Gemini gives feedback on the prompt instead of an answer.
	if slices.Contains(lastTypes, kind) || len(p["error"]) > 0 || len(p["promptFeedback"]) > 0 {
		c.answer.Whole = true
	}
	for _, choice := range p.List("choices") {
		c.answer.Whole = c.answer.Whole || choice.Text("finish_reason") != ""
		for _, part := range []string{"delta", "message"} {
			c.calls(choice.Int("index"), choice.At(part).List("tool_calls"))
		}
	}
	if p.Has("usageMetadata") {
		m := p.At("usageMetadata")
		input := m.Count("promptTokenCount") + m.Count("toolUsePromptTokenCount")
		out := max(m.Count("candidatesTokenCount")+m.Count("thoughtsTokenCount"), m.Count("totalTokenCount")-input)
		c.answer.Usage = c.answer.Usage.most(Usage{Input: input, Cached: min(m.Count("cachedContentTokenCount"), input), Output: out})
		c.answer.Told = true
	}
	for _, candidate := range p.List("candidates") {
		c.answer.Whole = c.answer.Whole || candidate.Text("finishReason") != ""
		for _, part := range candidate.At("content").List("parts") {
			if len(part["functionCall"]) > 0 {
				c.gemini++
			}
		}
	}
	c.answer.Tools = max(c.answer.Tools, c.gemini)
}

// blocks counts the tool calls of Anthropic's API.
func (c *Counter) blocks(kind string, p loosejson.Object) {
	var blocks []loosejson.Object
	switch kind {
	case "content_block_start":
		blocks = []loosejson.Object{p.At("content_block")}
	case "message":
		blocks = p.List("content")
	}
	for _, b := range blocks {
		if kind := b.Text("type"); kind == "tool_use" || kind == "server_tool_use" || kind == "mcp_tool_use" {
			c.answer.Tools++
		}
	}
}

// outputs counts the tool calls of OpenAI's responses, which come one by one and again at the end.
func (c *Counter) outputs(kind string, p loosejson.Object) {
	isCall := func(item loosejson.Object) bool { return strings.HasSuffix(item.Text("type"), "_call") }
	if kind == "response.output_item.done" && isCall(p.At("item")) {
		c.items++
	}
	item := p
	if p.Has("response") {
		item = p.At("response")
		c.model(item.Text("model"))
		c.used(item.At("usage"))
	}
	c.answer.Tools = max(c.answer.Tools, c.items, int64(len(list.Filter(item.List("output"), isCall))))
}

// calls counts the tool calls of a chat. A stream mentions each in several chunks.
func (c *Counter) calls(choice int, calls []loosejson.Object) {
	for i, call := range calls {
		place := [2]int{choice, max(call.Int("index"), i)}
		if call.Text("id") == "" || c.chat[place] {
			continue
		}
		if c.chat == nil {
			c.chat = map[[2]int]bool{}
		}
		c.chat[place] = true
		c.answer.Tools++
	}
}

func (c *Counter) model(names ...string) {
	for _, name := range names {
		if name != "" && len(name) <= 200 {
			c.answer.Model = name
		}
	}
}
