package llmproxy

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"pawl/internal/exec/usage"
	"pawl/internal/loop"
)

// Limit is a number that must not be exceeded, if Set.
type Limit struct {
	Set bool
	At  int64
}

// Budget is what may be used. Nano is in billionths of a dollar.
type Budget struct {
	Tokens, Nano, Tools Limit
}

// over returns the budget that forbids another request, "" for none. A used-up budget forbids one. Tool calls must
// exceed their budget, because the work ends with the request after the last allowed tool call.
func (b Budget) over(t usage.Total, tokens, nano int64) loop.Resource {
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

// budget admits requests. It admits requests of several agents together while the budget has room for all of them,
// and one at a time when the budget gets scarce. So they exceed it by one request at most, if the others are no
// larger than the largest so far.
type budget struct {
	limits Budget

	mu      sync.Mutex
	changed chan struct{} // closed when a request has ended
	spent   usage.Total
	flights map[*flight]bool
	largest usage.Call
}

// flight is a request under way: what it is expected to use, and what its answer has reported so far. The meter sees
// an answer before the program does, so a request that follows it never comes too early.
type flight struct {
	expected int64 // tokens
	seen     func() usage.Call
}

// admit waits until a request may be sent that is expected to have that many tokens. seen returns what its answer has
// reported so far. admit returns the budget that forbids the request, or a function to call with the request's cost,
// or neither if ctx has ended.
func (b *budget) admit(ctx context.Context, expected int64, seen func() usage.Call) (exhausted string, done func(usage.Call)) {
	for {
		b.mu.Lock()
		spent, largest := b.spent, b.largest
		var tokens, nano int64 // that are still expected
		for f := range b.flights {
			c := f.seen()
			spent.Add(c)
			largest = larger(largest, c)
			tokens += max(0, f.expected-c.Input-c.Output)
			nano += max(0, b.largest.Nano-c.Nano)
		}
		if exhausted := b.limits.over(spent, 0, 0); exhausted != "" {
			b.mu.Unlock()
			return string(exhausted), nil
		}
		if b.limits.over(spent, tokens, nano) == "" { // always, if no other is under way
			f := &flight{max(expected, largest.Input+largest.Output), seen}
			b.flights[f] = true
			b.mu.Unlock()
			return "", func(c usage.Call) { b.took(f, c) }
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

func (b *budget) took(f *flight, c usage.Call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.flights, f)
	b.spent.Add(c)
	b.largest = larger(b.largest, c)
	close(b.changed)
	b.changed = make(chan struct{})
}

// larger returns the larger of each number that is expected of the next call.
func larger(c, d usage.Call) usage.Call {
	c.Input, c.Output, c.Nano = max(c.Input, d.Input), max(c.Output, d.Output), max(c.Nano, d.Nano)
	return c
}

// sized counts the bytes that are read of a request.
type sized struct {
	io.ReadCloser
	n atomic.Int64
}

func (s *sized) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	s.n.Add(int64(n))
	return n, err
}
