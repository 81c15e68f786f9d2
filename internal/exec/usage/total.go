package usage

import (
	"bytes"
	"encoding/json"
	"slices"

	"pawl/internal/lib/loosejson"
	"pawl/internal/lib/must"
)

// Call is one request as the meter records it, on one line of JSON.
type Call struct {
	// Begun says that the request was sent; another line has the result. The other fields belong to that line.
	Begun bool   `json:"begun,omitempty"`
	Model string `json:"model,omitempty"`
	Usage
	Tools  int64 `json:"tools,omitempty"`
	Status int   `json:"status,omitempty"` // of the answer, 0 for none
	// Nano is the estimate in billionths of a dollar. Priced is false if no price is known.
	Nano   int64 `json:"nano,omitempty"`
	Priced bool  `json:"priced,omitempty"`
	// Guessed says that the provider did not report the usage, so the tokens are estimated from the length.
	Guessed bool `json:"guessed,omitempty"`
	// Cut says that an answer ended before the provider reported its end.
	Cut bool `json:"cut,omitempty"`
	// Refused is the budget because of which the request was not sent, "" if it was sent.
	Refused string `json:"refused,omitempty"`
	// Error is what the provider answered instead of work, "" if it worked.
	Error string `json:"error,omitempty"`
	// Until is when the provider works again, in Unix seconds, as its answer says; 0 if the answer does not say it.
	Until int64 `json:"until,omitempty"`
}

// Failed reports whether the provider answered with an error, or could not be reached.
func (c Call) Failed() bool { return c.Status >= 400 }

// bytesAToken is the assumed length of a token, if nobody reports how many there were.
const bytesAToken = 4

// Guess estimates the tokens of a text of that many bytes.
func Guess(bytes int64) int64 { return loosejson.Count((bytes + bytesAToken - 1) / bytesAToken) }

// CallOf returns the call of an answer with a status to a request of that many bytes. If the provider does not report
// the usage of an answer, it is estimated from the lengths: an agent whose provider reports nothing must not be free.
func CallOf(a Answer, status int, request int64, ps Prices) Call {
	c := Call{Model: a.Model, Usage: a.Usage, Tools: a.Tools, Status: status}
	c.Cut = !a.Whole && status/100 == 2
	if !a.Told && status/100 == 2 {
		c.Guessed, c.Usage = true, Usage{Input: Guess(request), Output: Guess(a.Bytes)}
	}
	if c.Usage != (Usage{}) {
		c.Nano, c.Priced = ps.Nano(c.Model, c.Usage)
	}
	return c
}

// Line returns the call as a line of JSON.
func (c Call) Line() []byte {
	return append(must.Have(json.Marshal(c)), '\n') // numbers, and text that was made valid
}

// Total is the sum of calls.
type Total struct {
	Calls   int64 // that were sent
	Input   int64
	Output  int64
	Tools   int64
	Nano    int64
	Guessed int64    // calls whose tokens are estimated
	Refused string   // the budget because of which a request was not sent, "" for none
	Unknown []string // the models without a known price, "" for a model without a name
	Worked  bool     // the provider has answered a request with work
	Open    int64    // requests that are under way
	Failing *Call    // the last call if it failed, nil if the provider has worked since
	Cut     bool     // the last answer was cut off
}

// Tokens returns input and output tokens.
func (t Total) Tokens() int64 { return t.Input + t.Output }

// Add adds a call to the total.
func (t *Total) Add(c Call) {
	switch {
	case c.Refused != "":
		t.Refused = c.Refused
		return
	case c.Begun:
		t.Open++
		return
	}
	t.Calls++
	t.Open, t.Cut = max(0, t.Open-1), c.Cut
	switch {
	case c.Failed():
		t.Failing = &c
	case c.Status != 0:
		t.Worked, t.Failing = true, nil
	}
	t.Input, t.Output = loosejson.Count(t.Input+loosejson.Count(c.Input)), loosejson.Count(t.Output+loosejson.Count(c.Output))
	t.Tools = loosejson.Count(t.Tools + loosejson.Count(c.Tools))
	t.Nano = min(t.Nano+max(c.Nano, 0), 1e15)
	if c.Guessed {
		t.Guessed++
	}
	if c.Usage != (Usage{}) && !c.Priced && !slices.Contains(t.Unknown, c.Model) && len(t.Unknown) < 20 {
		t.Unknown = append(t.Unknown, c.Model)
	}
}

// Read adds the complete lines of text to the total, and returns how many bytes it read. It skips lines that the
// meter did not write: a power cut can leave half a line.
func (t *Total) Read(text []byte) (read int) {
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var c Call
		if json.Unmarshal(line, &c) == nil {
			t.Add(c)
		}
		read += len(line)
	}
	return read
}
