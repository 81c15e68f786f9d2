package usage

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pawl/internal/lib/must"
)

// Price is what a model costs, in dollars per million tokens. Over has the prices of requests with more input than a
// number of tokens, nil if there are no such prices.
type Price struct {
	Model      string  `json:"model"` // a part of the model's name
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite,omitempty"`
	Over       *Over   `json:"over,omitempty"`
}

// Over is the price of a long request.
type Over struct {
	Tokens    int64   `json:"tokens"`
	Input     float64 `json:"input"`
	Output    float64 `json:"output"`
	CacheRead float64 `json:"cacheRead"`
	// CacheWrite is 0 if writing to a cache costs the same as other input.
	CacheWrite float64 `json:"cacheWrite,omitempty"`
}

// Prices is a table of prices. The longest entry that is part of a model's name counts, and the first of two equal
// ones. An entry that ends with a number is not part of a name in which the number continues: gpt-5.9 is not gpt-5,
// and may cost something else.
type Prices []Price

//go:embed prices.json
var listed []byte

// Listed returns the list prices that pawl contains. They are estimates; docs/reference/meter.md has their source and date.
func Listed() Prices { return must.Have(ParsePrices(listed)) } // a test reads it

// ParsePrices reads a table from a JSON list of Price. The error names the wrong entry.
func ParsePrices(text []byte) (Prices, error) {
	var prices Prices
	if err := json.Unmarshal(text, &prices); err != nil {
		return nil, fmt.Errorf("it is no list of prices: %w", err)
	}
	for i, p := range prices {
		if strings.TrimSpace(p.Model) == "" {
			return nil, fmt.Errorf("entry %d has no model", i+1)
		}
		dollars := []float64{p.Input, p.Output, p.CacheRead, p.CacheWrite}
		if p.Over != nil {
			dollars = append(dollars, p.Over.Input, p.Over.Output, p.Over.CacheRead, p.Over.CacheWrite)
		}
		for _, d := range dollars {
			if d < 0 || d > 1e6 {
				return nil, fmt.Errorf("entry %d (%s) has a price that is not between 0 and a million dollars", i+1, p.Model)
			}
		}
	}
	return prices, nil
}

// Capped returns the prices with one more for every other model, because no model is free under a budget of dollars.
func (ps Prices) Capped() Prices {
	return append(slices.Clone(ps), Price{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25})
}

// Nano estimates the cost of an answer in billionths of a dollar. ok is false if the model's price is unknown.
func (ps Prices) Nano(model string, u Usage) (nano int64, ok bool) {
	var p Price
	for _, price := range ps {
		if (!ok || len(price.Model) > len(p.Model)) && names(price.Model, model) {
			p, ok = price, true
		}
	}
	if !ok {
		return 0, false
	}
	if o := p.Over; o != nil && u.Input > o.Tokens {
		p.Input, p.Output, p.CacheRead, p.CacheWrite = o.Input, o.Output, o.CacheRead, o.CacheWrite
	}
	written := cmp.Or(p.CacheWrite, p.Input)
	fresh := max(0, u.Input-u.Cached-u.CacheWrite)
	// A dollar per million tokens is 1000 billionths per token.
	sum := 1000 * (float64(fresh)*p.Input + float64(u.Cached)*p.CacheRead + float64(u.CacheWrite)*written + float64(u.Output)*p.Output)
	return int64(min(sum+0.5, 1e15)), true
}

// names reports whether a part names a model. A date of four or more digits may follow a version (-20250929), but no
// further number.
func names(part, model string) bool {
	_, rest, found := strings.Cut(model, part)
	if !found {
		return false
	}
	digits := func(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }
	if part == "" || digits(part[len(part)-1:]) == 0 || rest == "" {
		return true
	}
	n := digits(strings.TrimLeft(rest[:1], ".-") + rest[1:])
	if rest[0] == '.' || rest[0] == '-' {
		return n == 0 || n >= 4
	}
	return n == 0
}
