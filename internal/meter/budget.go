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
	flying  int   // requests under way
	tokens  int64 // what those are expected to use
	largest tally.Call
}

func (b *budget) begin(limits Budget, spent tally.Total) {
	b.limits, b.spent, b.changed = limits, spent, make(chan struct{})
	b.spent.Refused = ""
}

// admit waits until a request may be sent, which is expected to have so many tokens. It returns the budget that forbids
// it, else what has to be called with what it cost; neither where ctx has ended.
func (b *budget) admit(ctx context.Context, expected int64) (over string, done func(tally.Call)) {
	for {
		b.mu.Lock()
		if over := b.limits.over(b.spent, 0, 0); over != "" {
			b.mu.Unlock()
			return string(over), nil
		}
		each := max(expected, b.largest.Input+b.largest.Output)
		if b.flying == 0 || b.limits.over(b.spent, b.tokens, int64(b.flying)*b.largest.Nano) == "" {
			b.flying++
			b.tokens += each
			b.mu.Unlock()
			return "", func(c tally.Call) { b.took(each, c) }
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

func (b *budget) took(expected int64, c tally.Call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying--
	b.tokens -= expected
	b.spent.Add(c)
	b.largest.Input, b.largest.Output, b.largest.Nano = max(b.largest.Input, c.Input), max(b.largest.Output, c.Output), max(b.largest.Nano, c.Nano)
	close(b.changed)
	b.changed = make(chan struct{})
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
