package usage

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"pawl/internal/lib/loosejson"
)

// maxError limits how many bytes of an error are kept.
const maxError = 400

// WithError adds to a failed call what the provider answered instead of work, and until when it refuses, from the
// headers or the body. header returns a header by its name, "" for none; now is the time of the answer. A call that
// did not fail is unchanged.
func (c Call) WithError(header func(string) string, body []byte, now time.Time) Call {
	if !c.Failed() {
		return c
	}
	answer := loosejson.Decode[loosejson.Object](body)
	if errs := loosejson.Decode[[]loosejson.Object](body); len(errs) > 0 { // the Gemini API sometimes has it in a list
		answer = errs[0]
	}
	problem := answer.At("error")
	said := strings.TrimSpace(problem.Text("type", "status") + ": " + cmp.Or(problem.Text("message"), answer.Text("message")))
	said = strings.TrimSuffix(strings.TrimPrefix(said, ": "), ":")
	c.Error = strings.ToValidUTF8(cmp.Or(said, "it gave no reason"), "?")
	if len(c.Error) > maxError {
		c.Error = strings.ToValidUTF8(c.Error[:maxError], "") + "…"
	}
	if c.Status == 429 {
		c.Until = until(header, problem, now)
	}
	return c
}

// until returns the end of a limit in Unix seconds, 0 if unknown. If a provider has several limits, a header of its
// own has the end of the limit that was hit.
func until(header func(string) string, problem loosejson.Object, now time.Time) int64 {
	inFuture := func(d time.Duration) int64 { return now.Add(d + time.Second - 1).Unix() }
	if reset, err := strconv.ParseInt(header("Anthropic-Ratelimit-Unified-Reset"), 10, 64); err == nil && reset > 0 {
		return reset
	}
	if reset := int64(loosejson.Decode[float64](problem["resets_at"])); reset > 0 {
		return reset
	}
	for _, d := range problem.List("details") {
		if delay, err := time.ParseDuration(d.Text("retryDelay")); err == nil && delay > 0 {
			return inFuture(delay)
		}
	}
	said := header("Retry-After")
	if seconds, err := strconv.ParseFloat(said, 64); err == nil && seconds > 0 && seconds < 1e9 {
		return inFuture(time.Duration(seconds * float64(time.Second)))
	}
	if date, err := time.Parse(time.RFC1123, said); err == nil {
		return date.Unix()
	}
	return 0
}
