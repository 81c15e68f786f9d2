package tally

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// maxError bounds what is kept of an error, in bytes.
const maxError = 400

// provided is an answer that is an error, of any of the APIs.
type provided struct {
	Error struct {
		Type     string  `json:"type"`
		Status   string  `json:"status"`
		Message  string  `json:"message"`
		ResetsAt float64 `json:"resets_at"`
		Details  []struct {
			Delay string `json:"retryDelay"`
		} `json:"details"`
	} `json:"error"`
	Message string `json:"message"`
}

// WithError notes in a call what the provider answered instead of work, and until when it will: in the headers, or in the
// body. header returns one by its name, "" for none; now is when it answered. A call that did not fail is as it was.
func (c Call) WithError(header func(string) string, body []byte, now time.Time) Call {
	if !c.Failed() {
		return c
	}
	var all []provided // the Gemini API has it in a list at times
	var one provided
	if json.Unmarshal(body, &all) == nil && len(all) > 0 {
		one = all[0]
	} else {
		_ = json.Unmarshal(body, &one) // what has another type is left out
	}
	said := strings.TrimSpace(cmp.Or(one.Error.Type, one.Error.Status) + ": " + cmp.Or(one.Error.Message, one.Message))
	said = strings.TrimSuffix(strings.TrimPrefix(said, ": "), ":")
	c.Error = strings.ToValidUTF8(cmp.Or(said, "it gave no reason"), "?")
	if len(c.Error) > maxError {
		c.Error = strings.ToValidUTF8(c.Error[:maxError], "") + "…"
	}
	if c.Status == 429 {
		c.Until = until(header, one, now)
	}
	return c
}

// until is the end of a limit, in Unix seconds, 0 where nobody tells it. Of several ends that of the limit that was hit
// is named by a header of its own.
func until(header func(string) string, p provided, now time.Time) int64 {
	after := func(d time.Duration) int64 { return now.Add(d + time.Second - 1).Unix() }
	if at, err := strconv.ParseInt(header("Anthropic-Ratelimit-Unified-Reset"), 10, 64); err == nil && at > 0 {
		return at
	}
	if at := int64(p.Error.ResetsAt); at > 0 {
		return at
	}
	for _, d := range p.Error.Details {
		if delay, err := time.ParseDuration(d.Delay); err == nil && delay > 0 {
			return after(delay)
		}
	}
	said := header("Retry-After")
	if seconds, err := strconv.ParseFloat(said, 64); err == nil && seconds > 0 && seconds < 1e9 {
		return after(time.Duration(seconds * float64(time.Second)))
	}
	if at, err := time.Parse(time.RFC1123, said); err == nil {
		return at.Unix()
	}
	return 0
}
