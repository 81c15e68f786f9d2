// Package tally finds out what an answer of a model provider cost. It reads the tokens, the tool calls and the model
// from answers of the Anthropic Messages API, OpenAI's chat completions and responses, and Gemini's generateContent,
// complete or as a stream, and estimates dollars from a table of prices. It is pure: bytes go in, numbers come out.
// It decides nothing about budgets and stores no text. Start at Counter; prices.go has the table, total.go adds up
// several calls.
package tally

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
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

const (
	// maxPiece limits how many bytes of an answer are kept at a time: an event of a stream, or a complete answer.
	// Nothing is read from a longer one.
	maxPiece = 32 << 20
	// maxCount is more than any call uses. A larger number is a mistake, and sums must not overflow.
	maxCount = int64(1e12)
)

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

func (c *Counter) keep(to *[]byte, b []byte) {
	if c.skipped = c.skipped || len(*to)+len(b) > maxPiece; c.skipped {
		*to = nil
		return
	}
	*to = append(*to, b...)
}

func (c *Counter) endLine() {
	line := bytes.TrimSuffix(c.line, []byte("\r"))
	if data, is := bytes.CutPrefix(line, []byte("data:")); is {
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
		var all []json.RawMessage
		if json.Unmarshal(data, &all) == nil {
			for _, one := range all {
				c.read(one)
			}
		}
	}
}

// usage has the counts of all APIs except Gemini's.
type usage struct {
	Input       *int64   `json:"input_tokens"`
	Output      int64    `json:"output_tokens"`
	CacheCreate int64    `json:"cache_creation_input_tokens"`
	CacheRead   int64    `json:"cache_read_input_tokens"`
	InputOf     *details `json:"input_tokens_details"`
	Prompt      *int64   `json:"prompt_tokens"`
	Completion  int64    `json:"completion_tokens"`
	PromptOf    *details `json:"prompt_tokens_details"`
}

type details struct {
	Cached     int64 `json:"cached_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
}

// of converts the counts to a Usage. Anthropic counts cache reads and writes separately, OpenAI as a part of the
// input.
func (u usage) of() Usage {
	if u.Prompt != nil {
		out := Usage{Input: count(*u.Prompt), Output: count(u.Completion)}
		if d := u.PromptOf; d != nil {
			out.Cached, out.CacheWrite = min(count(d.Cached), out.Input), count(d.CacheWrite)
		}
		return out
	}
	var in int64
	if u.Input != nil {
		in = count(*u.Input)
	}
	if d := u.InputOf; d != nil {
		return Usage{Input: in, Cached: min(count(d.Cached), in), CacheWrite: count(d.CacheWrite), Output: count(u.Output)}
	}
	read, written := count(u.CacheRead), count(u.CacheCreate)
	return Usage{Input: in + read + written, Cached: read, CacheWrite: written, Output: count(u.Output)}
}

// told reports whether it has a number: a chunk of a chat has empty counts, or none.
func (u *usage) told() bool { return u != nil && (u.Input != nil || u.Prompt != nil || u.Output > 0) }

type typed struct {
	Type string `json:"type"`
}

type toolCall struct {
	Index int    `json:"index"`
	ID    string `json:"id"`
}

// piece is an event or a whole answer of any of the APIs.
type piece struct {
	Type  string          `json:"type"`
	Model string          `json:"model"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"` // in the middle of a stream

	// Anthropic
	Message *struct {
		Model string `json:"model"`
		Usage *usage `json:"usage"`
	} `json:"message"`
	Block   typed           `json:"content_block"`
	Content json.RawMessage `json:"content"`

	// OpenAI's responses
	Response *struct {
		Model  string  `json:"model"`
		Usage  *usage  `json:"usage"`
		Output []typed `json:"output"`
	} `json:"response"`
	Output []typed `json:"output"`
	Item   typed   `json:"item"`

	// OpenAI's chat
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Calls []toolCall `json:"tool_calls"`
		} `json:"delta"`
		Message struct {
			Calls []toolCall `json:"tool_calls"`
		} `json:"message"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`

	// Gemini
	Meta *struct {
		Prompt     int64 `json:"promptTokenCount"`
		ToolPrompt int64 `json:"toolUsePromptTokenCount"`
		Cached     int64 `json:"cachedContentTokenCount"`
		Candidates int64 `json:"candidatesTokenCount"`
		Thoughts   int64 `json:"thoughtsTokenCount"`
		Total      int64 `json:"totalTokenCount"`
	} `json:"usageMetadata"`
	ModelVersion string          `json:"modelVersion"`
	Feedback     json.RawMessage `json:"promptFeedback"` // instead of an answer
	Candidates   []struct {
		Finish  string `json:"finishReason"`
		Content struct {
			Parts []struct {
				Call json.RawMessage `json:"functionCall"`
			} `json:"parts"`
		} `json:"content"`
	} `json:"candidates"`
}

// lastTypes are the events that end a stream, in the APIs that have such events. A chat and Gemini give a reason
// instead.
var lastTypes = []string{"message_stop", "error", "response.completed", "response.incomplete", "response.failed"}

func (c *Counter) read(raw []byte) {
	var p piece
	if err := json.Unmarshal(raw, &p); err != nil {
		if _, mistyped := err.(*json.UnmarshalTypeError); !mistyped { // if one field has another type, the rest counts
			return
		}
	}
	c.model(p.Model, p.ModelVersion)
	c.used(p.Usage)
	if m := p.Message; m != nil && p.Type == "message_start" {
		c.model(m.Model)
		c.used(m.Usage)
	}
	c.blocks(p)
	c.outputs(p)
	if slices.Contains(lastTypes, p.Type) || len(p.Error) > 0 || len(p.Feedback) > 0 {
		c.answer.Whole = true
	}
	for _, choice := range p.Choices {
		c.answer.Whole = c.answer.Whole || choice.Finish != ""
		for _, calls := range [][]toolCall{choice.Delta.Calls, choice.Message.Calls} {
			c.calls(choice.Index, calls)
		}
	}
	if m := p.Meta; m != nil {
		out := max(count(m.Candidates)+count(m.Thoughts), count(m.Total)-count(m.Prompt)-count(m.ToolPrompt))
		in := count(m.Prompt) + count(m.ToolPrompt)
		c.answer.Usage = c.answer.Usage.most(Usage{Input: in, Cached: min(count(m.Cached), in), Output: out})
		c.answer.Told = true
	}
	for _, candidate := range p.Candidates {
		c.answer.Whole = c.answer.Whole || candidate.Finish != ""
		for _, part := range candidate.Content.Parts {
			if len(part.Call) > 0 {
				c.gemini++
			}
		}
	}
	c.answer.Tools = max(c.answer.Tools, c.gemini)
}

// blocks counts the tool calls of Anthropic's API.
func (c *Counter) blocks(p piece) {
	var all []typed
	switch p.Type {
	case "content_block_start":
		all = []typed{p.Block}
	case "message":
		_ = json.Unmarshal(p.Content, &all)
	}
	for _, b := range all {
		if b.Type == "tool_use" || b.Type == "server_tool_use" || b.Type == "mcp_tool_use" {
			c.answer.Tools++
		}
	}
}

// outputs counts the tool calls of OpenAI's responses, which come one by one and again at the end.
func (c *Counter) outputs(p piece) {
	is := func(item typed) bool { return strings.HasSuffix(item.Type, "_call") }
	if p.Type == "response.output_item.done" && is(p.Item) {
		c.items++
	}
	all := p.Output
	if r := p.Response; r != nil {
		c.model(r.Model)
		c.used(r.Usage)
		all = r.Output
	}
	var n int64
	for _, item := range all {
		if is(item) {
			n++
		}
	}
	c.answer.Tools = max(c.answer.Tools, c.items, n)
}

// calls counts the tool calls of a chat. A stream mentions each in several chunks.
func (c *Counter) calls(choice int, calls []toolCall) {
	for i, call := range calls {
		at := [2]int{choice, max(call.Index, i)}
		if call.ID == "" || c.chat[at] {
			continue
		}
		if c.chat == nil {
			c.chat = map[[2]int]bool{}
		}
		c.chat[at] = true
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

func (c *Counter) used(u *usage) {
	if u.told() {
		c.answer.Usage, c.answer.Told = c.answer.Usage.most(u.of()), true
	}
}

// count limits a number from a provider to a possible value.
func count(n int64) int64 { return max(0, min(n, maxCount)) }
