package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"pawl/internal/evidence"
	"pawl/internal/loop"
)

// Result is what an agent of `use: command` may write to the file named by PAWL_RESULT. Every
// field is optional, and none is believed beyond what it is: words and reported spending.
type Result struct {
	Description  string            `json:"description"`
	Idea         string            `json:"idea"`
	Regenerate   bool              `json:"regenerate"`
	GiveUp       GiveUp            `json:"giveUp"`
	ToolCalls    *Count            `json:"toolCalls"`
	InputTokens  Count             `json:"inputTokens"`
	OutputTokens Count             `json:"outputTokens"`
	CostUSD      *evidence.Decimal `json:"costUSD"`
	SessionID    string            `json:"sessionId"`
	RetryAt      *time.Time        `json:"retryAt"` // it was refused work until then
	Review       json.RawMessage   `json:"review"`  // read by govern.ReadReview alone
}

// GiveUpWords begin the last words of an agent that can't, where those are all that it answers by.
const GiveUpWords = "GIVE UP:"

// RegenerateWords begin the last words of a fixer that asks for another approach.
const RegenerateWords = "REGENERATE:"

// NoReason stands for the reason of an agent that gave up without one.
const NoReason = "no reason given"

// GiveUp is the agent's word that it can't: true, or the reason in words.
type GiveUp string

// UnmarshalJSON takes a boolean or a text.
func (g *GiveUp) UnmarshalJSON(b []byte) error {
	var flag bool
	if err := json.Unmarshal(b, &flag); err == nil {
		*g = ""
		if flag {
			*g = NoReason
		}
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("giveUp must be true, false or a text")
	}
	*g = GiveUp(text)
	return nil
}

// Count is a whole number, however it is written: 2, 2.0 and 2e0 are the same to many programs.
type Count int64

// UnmarshalJSON reads a whole number. One that is too large to be believed stays too large.
func (c *Count) UnmarshalJSON(b []byte) error {
	var d evidence.Decimal
	if err := json.Unmarshal(b, &d); err != nil {
		return err
	}
	n := int64(max(-1, min(d.Float(), maxSpent+1)))
	if *c = Count(n); n >= 0 && n <= maxSpent && loop.Count(n).Cmp(d) != 0 {
		return fmt.Errorf("%s is not a whole number", d)
	}
	return nil
}

// The result file is small; what is beyond this is not read.
const maxResult = 1 << 20

// More tool calls or tokens than this in one call are a mistake or a lie, and their sum over a
// loop must not overflow.
const maxSpent = 1e12

// ReadResult reads the result file, by its path below a folder; a missing or empty one is the empty result.
// A file that is not such JSON is an error that says so: the caller warns and goes on without it.
func ReadResult(folder string, path ...string) (Result, error) {
	b, err := Left(maxResult, folder, path...)
	if err != nil {
		return Result{}, fmt.Errorf("the agent's result file can't be read: %w", err)
	}
	if strings.TrimSpace(string(b)) == "" {
		return Result{}, nil
	}
	var r Result
	if err := json.Unmarshal(b, &r); err != nil {
		return Result{}, fmt.Errorf("the agent's result file is not the JSON that is expected: %w", err)
	}
	for _, n := range []*Count{r.ToolCalls, &r.InputTokens, &r.OutputTokens} {
		if n != nil && *n < 0 {
			return Result{}, errors.New("the agent's result file reports negative spending")
		}
		if n != nil && *n > maxSpent {
			return Result{}, fmt.Errorf("the agent's result file reports spending of more than %d, which is not believed", int64(maxSpent))
		}
	}
	if r.CostUSD != nil && r.CostUSD.Sign() < 0 {
		return Result{}, errors.New("the agent's result file reports negative spending")
	}
	return r, nil
}
