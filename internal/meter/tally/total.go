package tally

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Call is one request as the meter notes it, on one line of JSON.
type Call struct {
	// Begun says that the request was sent; another line says what came of it. The rest is of that one.
	Begun bool   `json:"begun,omitempty"`
	Model string `json:"model,omitempty"`
	Usage
	Tools  int64 `json:"tools,omitempty"`
	Status int   `json:"status,omitempty"` // of the answer, 0 for none
	// Nano is the estimate in billionths of a dollar; Priced is false where no price is known.
	Nano   int64 `json:"nano,omitempty"`
	Priced bool  `json:"priced,omitempty"`
	// Guessed says that the provider did not tell what it used, so that the tokens are an estimate by its length.
	Guessed bool `json:"guessed,omitempty"`
	// Cut says that an answer ended before the provider said that it did.
	Cut bool `json:"cut,omitempty"`
	// Refused is the budget for which the request was not sent, "" where it was.
	Refused string `json:"refused,omitempty"`
	// Error is what the provider answered instead of work, "" where it worked.
	Error string `json:"error,omitempty"`
	// Until is when the provider works again, in Unix seconds, as it says in such an answer; 0 where it does not.
	Until int64 `json:"until,omitempty"`
}

// Failed reports whether the provider answered with an error, or could not be reached.
func (c Call) Failed() bool { return c.Status >= 400 }

// bytesAToken is how long a token is taken to be, where nobody tells how many there were.
const bytesAToken = 4

// Guess are the tokens of a text of so many bytes.
func Guess(bytes int64) int64 { return count((bytes + bytesAToken - 1) / bytesAToken) }

// CallOf is the call of an answer with a status, to a request of a path of so many bytes. What the provider does not
// tell of an answer that it made is estimated from the lengths: an agent that goes on without telling must not be free.
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

// Line is the call as a line.
func (c Call) Line() []byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // numbers, and text that is made valid
	}
	return append(b, '\n')
}

// Total is what calls add up to.
type Total struct {
	Calls   int64 // that were sent
	Input   int64
	Output  int64
	Tools   int64
	Nano    int64
	Guessed int64    // calls whose tokens are an estimate
	Refused string   // the budget for which a request was not sent, "" for none
	Unknown []string // the models of which no price is known, "" for one without a name
	Worked  bool     // the provider has answered a request with work
	Open    int64    // requests that are under way
	Failing *Call    // the last call where that failed, nil where the provider has worked since
	Cut     bool     // the last answer was cut off
}

// Tokens are those that went in and came out.
func (t Total) Tokens() int64 { return t.Input + t.Output }

// Add takes a call into the total.
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
	t.Input, t.Output = count(t.Input+count(c.Input)), count(t.Output+count(c.Output))
	t.Tools = count(t.Tools + count(c.Tools))
	t.Nano = min(t.Nano+max(c.Nano, 0), 1e15)
	if c.Guessed {
		t.Guessed++
	}
	if c.Usage != (Usage{}) && !c.Priced && !slices.Contains(t.Unknown, c.Model) && len(t.Unknown) < 20 {
		t.Unknown = append(t.Unknown, c.Model)
	}
}

// Read takes the whole lines that text has into the total, and returns how much of it that was. A line that is none of
// the meter's is skipped: a power cut can leave half of one.
func (t *Total) Read(text []byte) (read int) {
	for {
		line, rest, whole := bytes.Cut(text[read:], []byte("\n"))
		if !whole {
			return read
		}
		var c Call
		if json.Unmarshal(line, &c) == nil {
			t.Add(c)
		}
		read = len(text) - len(rest)
	}
}
