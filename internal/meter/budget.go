package meter

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"pawl/internal/loop"
	"pawl/internal/meter/tally"
)

// Limit is a number that may not be exceeded, where it is set.
type Limit struct {
	Set bool
	At  int64
}

// Budget is what may be used. Nano are billionths of a dollar.
type Budget struct {
	Tokens, Nano, Tools Limit
}

// over returns the budget that forbids one more request, "" where none does. One that is used up does; tool calls have
// to be more, since it is the request after the last of them that ends the work.
func (b Budget) over(t tally.Total, tokens, nano int64) loop.Resource {
	switch {
	case b.Tokens.Set && t.Tokens()+tokens >= b.Tokens.At:
		return loop.Tokens
	case b.Nano.Set && t.Nano+nano >= b.Nano.At:
		return loop.CostUSD
	case b.Tools.Set && t.Tools > b.Tools.At:
		return loop.ToolCalls
	}
	return ""
}

// budget lets requests through. Those of several agents at once are let through together while the budget has room for
// them all, and one at a time when it gets scarce: so it is exceeded by one request at most, as far as the others are no
// larger than the largest so far.
type budget struct {
	limits Budget

	mu      sync.Mutex
	changed chan struct{} // closed when a request has ended
	spent   tally.Total
	flights map[*flight]bool
	largest tally.Call
}

// flight is a request under way: what it is expected to use, and what its answer has told so far. That passes here before
// the program sees it, so that no request that follows upon it comes too early.
type flight struct {
	expected int64 // tokens
	seen     func() tally.Call
}

func (b *budget) begin(limits Budget, spent tally.Total) {
	b.limits, b.spent, b.changed, b.flights = limits, spent, make(chan struct{}), map[*flight]bool{}
	b.spent.Refused = ""
}

// admit waits until a request may be sent, which is expected to have so many tokens, and whose answer tells what seen
// returns. It returns the budget that forbids it, else what has to be called with what it cost; neither where ctx has ended.
func (b *budget) admit(ctx context.Context, expected int64, seen func() tally.Call) (over string, done func(tally.Call)) {
	for {
		b.mu.Lock()
		known, largest := b.spent, b.largest
		var tokens, nano int64 // that are still to come
		for f := range b.flights {
			c := f.seen()
			known.Add(c)
			largest = larger(largest, c)
			tokens += max(0, f.expected-c.Input-c.Output)
			nano += max(0, b.largest.Nano-c.Nano)
		}
		if over := b.limits.over(known, 0, 0); over != "" {
			b.mu.Unlock()
			return string(over), nil
		}
		if len(b.flights) == 0 || b.limits.over(known, tokens, nano) == "" {
			f := &flight{max(expected, largest.Input+largest.Output), seen}
			b.flights[f] = true
			b.mu.Unlock()
			return "", func(c tally.Call) { b.took(f, c) }
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return "", nil
		}
	}
}

func (b *budget) took(f *flight, c tally.Call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.flights, f)
	b.spent.Add(c)
	b.largest = larger(b.largest, c)
	close(b.changed)
	b.changed = make(chan struct{})
}

// larger has the larger of each number of two calls that is expected of another.
func larger(c, d tally.Call) tally.Call {
	c.Input, c.Output, c.Nano = max(c.Input, d.Input), max(c.Output, d.Output), max(c.Nano, d.Nano)
	return c
}

// sized counts what is read of a request.
type sized struct {
	io.ReadCloser
	n atomic.Int64
}

func (s *sized) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	s.n.Add(int64(n))
	return n, err
}
