package tally

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Price is what a model costs, in dollars per million tokens. Over is what it costs where more than a number of tokens
// went in; nil where that makes no difference.
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
	// CacheWrite is 0 where what is written to a cache costs what other input does.
	CacheWrite float64 `json:"cacheWrite,omitempty"`
}

// Prices are a table of prices. The longest name that is a part of a model's counts; of two alike the first. One that ends
// with a number is no part of a name in which that number goes on: gpt-5.9 is no gpt-5, and need not cost the same.
type Prices []Price

//go:embed prices.json
var listed []byte

// Listed returns the list prices that pawl comes with: an estimate, of the source and the date in docs/meter.md.
func Listed() Prices {
	p, err := ParsePrices(listed)
	if err != nil {
		panic(err) // a test reads it
	}
	return p
}

// ParsePrices reads a table: a JSON list of Price. The error says which entry is wrong.
func ParsePrices(text []byte) (Prices, error) {
	var all Prices
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("it is no list of prices: %w", err)
	}
	for i, p := range all {
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
	return all, nil
}

// Capped are the prices with one for every other model: where a budget of dollars is kept, none is free.
func (ps Prices) Capped() Prices {
	return append(slices.Clone(ps), Price{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25})
}

// Nano estimates what an answer cost, in billionths of a dollar; ok is false where no price is known for the model.
func (ps Prices) Nano(model string, u Usage) (nano int64, ok bool) {
	var p Price
	for _, one := range ps {
		if (!ok || len(one.Model) > len(p.Model)) && names(one.Model, model) {
			p, ok = one, true
		}
	}
	if !ok {
		return 0, false
	}
	if o := p.Over; o != nil && u.Input > o.Tokens {
		p.Input, p.Output, p.CacheRead, p.CacheWrite = o.Input, o.Output, o.CacheRead, o.CacheWrite
	}
	written := p.CacheWrite
	if written == 0 {
		written = p.Input
	}
	fresh := max(0, u.Input-u.Cached-u.CacheWrite)
	// A dollar for a million tokens is 1000 billionths for one.
	sum := 1000 * (float64(fresh)*p.Input + float64(u.Cached)*p.CacheRead + float64(u.CacheWrite)*written + float64(u.Output)*p.Output)
	return int64(min(sum+0.5, 1e15)), true
}

// names reports whether a part names a model. Behind a version a date may follow (-20250929), of four digits or more at once,
// but no further number.
func names(part, model string) bool {
	i := strings.Index(model, part)
	if i < 0 {
		return false
	}
	rest := model[i+len(part):]
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
