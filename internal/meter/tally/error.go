package tally

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// maxError limits how many bytes of an error are kept.
const maxError = 400

// provided is an answer that is an error, in the format of any of the APIs.
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

// WithError adds to a failed call what the provider answered instead of work, and until when it refuses, from the
// headers or the body. header returns a header by its name, "" for none; now is the time of the answer. A call that
// did not fail is unchanged.
func (c Call) WithError(header func(string) string, body []byte, now time.Time) Call {
	if !c.Failed() {
		return c
	}
	var all []provided // the Gemini API sometimes has it in a list
	var one provided
	if json.Unmarshal(body, &all) == nil && len(all) > 0 {
		one = all[0]
	} else {
		_ = json.Unmarshal(body, &one) // fields of another type are left out
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

// until returns the end of a limit in Unix seconds, 0 if unknown. If a provider has several limits, a header of its
// own has the end of the limit that was hit.
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
