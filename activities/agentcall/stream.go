package agentcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"pawl/activities/workspace"
	"pawl/internal/agent/adapter"
	"pawl/internal/exec/supervisor"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/loop"
	"pawl/internal/metric"
)

// streamLimit is how much a program may print in one call. It is far more than a healthy one prints, and bounds the
// disk: a call that reaches it is ended.
const streamLimit = 1 << 30

// call is one call of an agent whose stdout is a stream. The stream is read while the program writes it, and the
// program is interrupted when it exceeds a budget.
type call struct {
	adapter adapter.Adapter
	stream  *adapter.Stream
	file    string
	limit   int64                            // how much of it is followed, 0 for streamLimit
	at      int64                            // how many bytes of the file have been read
	lost    []string                         // the files with the output of lost attempts, the first one first
	carried loop.Usage                       // their usage
	left    map[loop.Resource]metric.Decimal // the budgets, nil for none
	tell    func(loop.Usage, string)         // receives the usage so far, and the last tool
	take    func([]adapter.Event)            // receives the events, nil if nobody wants them

	meter *counted // what pawl's meter has counted, nil if only the stream reports

	quiet silence // how long it has printed nothing while no tool ran

	over     loop.Resource // the budget that ended it
	flooded  bool          // its output was too long to be followed
	hopeless bool          // its provider refused it, and it kept asking
	patience patience      // with a program that waits for its provider
	tool     string
}

// newCall prepares a call. It puts the output of lost attempts of this step aside; their usage counts.
func newCall(adapter adapter.Adapter, budget map[loop.Resource]metric.Decimal, stdout string, tell func(loop.Usage, string)) (*call, error) {
	c := &call{adapter: adapter, stream: adapter.Stream(), file: stdout, left: budget, tell: tell}
	for {
		earlier := call{stream: adapter.Stream(), file: stdout + ".lost" + strconv.Itoa(len(c.lost)+1)}
		_, err := os.Stat(dirfd.At(earlier.file))
		if errors.Is(err, fs.ErrNotExist) { // the latest attempt, or there is no further one
			if err = os.Rename(dirfd.At(stdout), dirfd.At(earlier.file)); errors.Is(err, fs.ErrNotExist) {
				return c, nil
			}
		}
		if err != nil {
			return nil, fmt.Errorf("putting a lost attempt's output aside: %w", err)
		}
		if err := earlier.finish(); err != nil {
			return nil, err
		}
		c.lost, c.carried = append(c.lost, earlier.file), c.carried.Add(earlier.stream.Usage())
	}
}

// spent returns what the step has used so far. A call that the machine repeats still counts as one call.
func (c *call) spent() loop.Usage {
	u := c.carried.Add(c.stream.Usage())
	if c.meter != nil {
		u = c.meter.in(u)
	}
	u.AgentCalls = 1
	return u
}

// spentUp returns the budget that is used up, or for which the meter has refused a request, "" if there is none.
func (c *call) spentUp() loop.Resource {
	exceeded := adapter.Over(c.left, c.spent())
	if exceeded == "" && c.meter != nil {
		exceeded = loop.Resource(c.meter.total.Refused)
	}
	return exceeded
}

func (c *call) run(ctx context.Context, s *supervisor.Supervisor, command supervisor.Command) (supervisor.Result, error) {
	if c.meter != nil { // counts lost attempts too
		if err := c.meter.read(); err != nil {
			return supervisor.Result{}, err
		}
		t := &c.meter.total // what the provider answered to earlier attempts is forgotten
		t.Open, t.Worked, t.Failing, t.Cut = 0, false, nil, false
	}
	if c.over = c.spentUp(); c.over != "" {
		return supervisor.Result{ExitCode: -1}, nil
	}
	c.quiet.begin(s.Effort)
	result, err := watch(ctx, s, command, c.poll)
	if err != nil {
		return result, err
	}
	if err := c.finish(); err != nil {
		return result, err
	}
	// The result must not depend on the time of the last look. A call that was ended for its budget stays over it,
	// even if the program then reports a little less.
	c.over = cmp.Or(c.spentUp(), c.over)
	return result, nil
}

// poll reads new output, and reports whether the program has to be ended.
func (c *call) poll() bool {
	_ = c.read() // output that can't be read now is read at the end
	if c.meter != nil {
		offset := c.meter.at
		_ = c.meter.read() // what can't be read now is read at the end
		if c.meter.at > offset && c.tell != nil {
			c.tell(c.spent(), c.tool)
		}
		if heardAt := c.meter.heard(); heardAt.After(c.quiet.heard) {
			c.quiet.heard = heardAt
		}
	}
	c.flooded = c.at >= c.most()
	c.over = c.spentUp()
	c.hopeless = c.hopeless || c.stream.Hopeless() || c.meter != nil && !c.stream.Ended() && c.meter.hopeless(time.Now())
	if c.patience.ends(c.stream.Waiting(), time.Now()) {
		c.hopeless = true
	}
	if c.busy() {
		c.quiet.heard = time.Now()
	}
	c.quiet.look(time.Now())
	return c.flooded || c.over != "" || c.hopeless || c.quiet.tooLong
}

// patience is how long a program has waited for its provider without a break.
type patience struct{ since time.Time }

// longestWait is how long a program may wait for its provider by itself. Then the loop sleeps, which costs nothing.
const longestWait = 2 * time.Minute

// ends reports whether the program has waited too long by now.
func (p *patience) ends(waiting bool, now time.Time) bool {
	if !waiting {
		p.since = time.Time{}
		return false
	}
	if p.since.IsZero() {
		p.since = now
	}
	return now.Sub(p.since) >= longestWait
}

// busy reports whether a tool runs, as far as that is known. A program that reports a tool only at its end is not
// busy while it waits for its model.
func (c *call) busy() bool {
	if c.adapter.Late && c.meter != nil {
		return c.meter.total.Open == 0
	}
	return c.stream.Busy()
}

func (c *call) finish() error {
	if err := c.read(); err != nil {
		return fmt.Errorf("reading what the agent said: %w", err)
	}
	c.stream.Close()
	if c.meter != nil {
		return c.meter.read()
	}
	return nil
}

// read reads what the program has printed since the last look.
func (c *call) read() error { return workspace.ReadFrom(c.file, c.at, c.most()-c.at, c) }

// most is how much of the output is followed.
func (c *call) most() int64 { return cmp.Or(c.limit, streamLimit) }

// Write follows the next bytes of the output.
func (c *call) Write(b []byte) (int, error) {
	c.at += int64(len(b))
	c.quiet.heard = time.Now()
	events := c.stream.Feed(b)
	if c.take != nil {
		c.take(events)
	}
	for _, e := range events {
		if e.Kind == adapter.ToolCall {
			c.tool = e.Tool
		}
	}
	if c.tell != nil {
		c.tell(c.spent(), c.tool)
	}
	return len(b), nil
}
