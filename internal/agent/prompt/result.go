package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"pawl/internal/loop"
	"pawl/internal/metric"
)

// Result is what an agent of `use: command` may write to the file named by PAWL_RESULT. Every field is optional. pawl
// uses the texts and the reported usage, and believes nothing else.
type Result struct {
	Description  string          `json:"description"`
	Idea         string          `json:"idea"`
	Regenerate   bool            `json:"regenerate"`
	GiveUp       GiveUp          `json:"giveUp"`
	ToolCalls    *Count          `json:"toolCalls"`
	InputTokens  Count           `json:"inputTokens"`
	OutputTokens Count           `json:"outputTokens"`
	CostUSD      *metric.Decimal `json:"costUSD"`
	SessionID    string          `json:"sessionId"`
	RetryAt      *time.Time      `json:"retryAt"` // the provider refuses work until then
	Review       json.RawMessage `json:"review"`  // only rules.ReadReview reads it
}

// GiveUpWords begin the last words of an agent that can't do its task, if the agent answers only by its output.
const GiveUpWords = "GIVE UP:"

// RegenerateWords begin the last words of a fixer that asks for another approach.
const RegenerateWords = "REGENERATE:"

// NoReason stands for the reason of an agent that gave up without one.
const NoReason = "no reason given"

// GiveUp says that the agent can't do its task: true, or the reason in words.
type GiveUp string

// UnmarshalJSON reads a boolean or a string.
func (g *GiveUp) UnmarshalJSON(b []byte) error {
	var flag bool
	var text string
	if json.Unmarshal(b, &flag) != nil && json.Unmarshal(b, &text) != nil {
		return fmt.Errorf("giveUp must be true, false or a text")
	}
	if flag {
		text = NoReason
	}
	*g = GiveUp(text)
	return nil
}

// Count is a whole number in any form: to many programs 2, 2.0 and 2e0 are the same.
type Count int64

// UnmarshalJSON reads a whole number. A number that is too large to be true stays too large.
func (c *Count) UnmarshalJSON(b []byte) error {
	var d metric.Decimal
	if err := json.Unmarshal(b, &d); err != nil {
		return err
	}
	n := int64(max(-1, min(d.Float(), maxSpent+1)))
	if *c = Count(n); n >= 0 && n <= maxSpent && loop.Count(n).Cmp(d) != 0 {
		return fmt.Errorf("%s is not a whole number", d)
	}
	return nil
}

// maxResult is how many bytes of the result file are read, far more than it needs.
const maxResult = 1 << 20

// maxSpent limits the tool calls or tokens of one call. A higher number is a mistake or a lie, and the sum over a
// loop must not overflow.
const maxSpent = 1e12

// ReadResult reads the result file, by its path below a folder. A missing or empty file is the empty result. It
// returns an error if the file is not such JSON; the caller warns and continues without it.
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
		return Result{}, fmt.Errorf("the agent's result file does not have the expected JSON: %w", err)
	}
	for _, n := range []*Count{r.ToolCalls, &r.InputTokens, &r.OutputTokens} {
		if n != nil && *n < 0 {
			return Result{}, errors.New("the agent's result file reports negative spending")
		}
		if n != nil && *n > maxSpent {
			return Result{}, fmt.Errorf("the agent's result file reports spending of more than %d, which can't be true", int64(maxSpent))
		}
	}
	if r.CostUSD != nil && r.CostUSD.Sign() < 0 {
		return Result{}, errors.New("the agent's result file reports negative spending")
	}
	return r, nil
}
