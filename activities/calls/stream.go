package calls

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"pawl/internal/agent/stream"
	"pawl/internal/evidence"
	"pawl/internal/held"
	"pawl/internal/loop"
	"pawl/internal/proc"
)

const (
	// streamLimit is how much a program may say in one call. What is beyond it can't be followed,
	// so that a budget might be crossed unseen: such a call is ended.
	streamLimit = 64 << 20
	// lookEvery is how often a stream is looked at. With the supervisor's grace it is what a
	// budget is overdrawn by.
	lookEvery = 250 * time.Millisecond
	// lookAtMost bounds one look's memory.
	lookAtMost = 1 << 20
)

// call is one call of an agent whose stdout is a stream: it is read while the program writes it,
// and a budget that is crossed interrupts the program.
type call struct {
	adapter stream.Adapter
	stream  *stream.Stream
	file    string
	at      int64                              // what of the file has been read
	carried loop.Usage                         // what attempts that were lost have spent
	left    map[loop.Resource]evidence.Decimal // the budgets, nil for none
	tell    func(loop.Usage, string)           // what is spent so far, and the last tool

	meter *counted // what pawl's meter has counted, nil where the stream alone tells

	silence time.Duration // how long it may say nothing while no tool is at work, 0 for no limit

	over     loop.Resource // the budget that ended it
	flooded  bool          // its output was too long to be followed
	hopeless bool          // its provider does not let it work, and it went on asking
	silent   bool          // it said nothing for too long
	heard    time.Time     // when it last said something
	tool     string
}

// newCall takes up a call. What an attempt of this step has left behind, whose worker died, is put
// aside and counts: it was spent.
func newCall(adapter stream.Adapter, budget map[loop.Resource]evidence.Decimal, stdout string, tell func(loop.Usage, string)) (*call, error) {
	c := &call{adapter: adapter, stream: adapter.Stream(), file: stdout, left: budget, tell: tell}
	n := 1
	for ; ; n++ {
		if _, err := os.Stat(held.At(lost(stdout, n))); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	if err := os.Rename(held.At(stdout), held.At(lost(stdout, n))); err == nil {
		n++
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("putting a lost attempt's output aside: %w", err)
	}
	for i := 1; i < n; i++ {
		before := call{stream: adapter.Stream(), file: lost(stdout, i)}
		if err := before.finish(); err != nil {
			return nil, err
		}
		c.carried = c.carried.Add(before.stream.Usage())
	}
	return c, nil
}

// lost is where the output of the nth lost attempt is kept.
func lost(stdout string, n int) string { return stdout + ".lost" + strconv.Itoa(n) }

// spent is what the step has cost up to now. A call that is tried again by the machine is still
// one.
func (c *call) spent() loop.Usage {
	u := c.carried.Add(c.stream.Usage())
	if c.meter != nil {
		u = c.meter.in(u)
	}
	u.AgentCalls = 1
	return u
}

// spentUp is the budget that is used up, "" for none: by what is spent, or since the meter has let no further request
// through.
func (c *call) spentUp() loop.Resource {
	over := stream.Over(c.left, c.spent())
	if over == "" && c.meter != nil {
		over = loop.Resource(c.meter.total.Refused)
	}
	return over
}

// run runs the command and follows it.
func (c *call) run(ctx context.Context, s *proc.Supervisor, command proc.Command) (proc.Result, error) {
	if c.meter != nil { // of attempts that were lost
		if err := c.meter.read(); err != nil {
			return proc.Result{}, err
		}
		c.meter.begin()
	}
	if c.over = c.spentUp(); c.over != "" {
		return proc.Result{ExitCode: -1}, nil
	}
	running, interrupt := context.WithCancel(ctx)
	defer interrupt()
	c.heard = time.Now()
	ended := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			if running.Err() != nil || !c.poll() {
				continue
			}
			interrupt()
		}
	})
	result, err := s.Run(running, command)
	close(ended)
	following.Wait()
	if err != nil {
		return result, err
	}
	if ctx.Err() == nil && running.Err() != nil {
		result.Interrupted = false // by nobody but us
	}
	if err := c.finish(); err != nil {
		return result, err
	}
	// Whether a call is over its budget must not hang on when it was looked at last. One that was ended for it is, also
	// where the program then says that it had spent a little less.
	c.over = cmp.Or(c.spentUp(), c.over)
	return result, nil
}

// poll reads what is new and reports whether the program is to be ended.
func (c *call) poll() bool {
	for {
		n, err := c.readMore()
		if err != nil || n == 0 {
			break // an output that can't be read now is read at the end
		}
	}
	if c.meter != nil {
		before := c.meter.at
		_ = c.meter.read() // what can't be read now is read at the end
		if c.meter.at > before && c.tell != nil {
			c.tell(c.spent(), c.tool)
		}
		if at := c.meter.heard(); at.After(c.heard) {
			c.heard = at
		}
	}
	c.flooded = c.at >= streamLimit
	c.over = c.spentUp()
	c.hopeless = c.hopeless || c.stream.Hopeless() || c.meter != nil && !c.stream.Ended() && c.meter.hopeless(time.Now())
	if c.busy() {
		c.heard = time.Now()
	}
	c.silent = c.silence > 0 && time.Since(c.heard) > c.silence
	return c.flooded || c.over != "" || c.hopeless || c.silent
}

// busy reports whether a tool is at work, as far as anybody tells. A program that tells of one only when that has ended
// is not while it waits for its model.
func (c *call) busy() bool {
	if c.adapter.Late && c.meter != nil {
		return c.meter.total.Open == 0
	}
	return c.stream.Busy()
}

// finish reads the rest.
func (c *call) finish() error {
	for {
		n, err := c.readMore()
		if err != nil {
			return fmt.Errorf("reading what the agent said: %w", err)
		}
		if n == 0 {
			c.stream.Close()
			break
		}
	}
	if c.meter != nil {
		return c.meter.read()
	}
	return nil
}

func (c *call) readMore() (int64, error) {
	f, err := os.Open(held.At(c.file))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // it has not begun
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, c.at, min(lookAtMost, max(0, streamLimit-c.at))))
	if err != nil {
		return 0, err
	}
	c.at += int64(len(b))
	if len(b) > 0 {
		c.heard = time.Now()
	}
	for _, e := range c.stream.Feed(b) {
		if e.Kind == stream.ToolCall {
			c.tool = e.Tool
		}
	}
	if len(b) > 0 && c.tell != nil {
		c.tell(c.spent(), c.tool)
	}
	return int64(len(b)), nil
}
