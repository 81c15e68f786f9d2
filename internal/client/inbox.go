package client

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"pawl/internal/client/launch"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/steward"
)

// Waiting is something that waits for a person.
type Waiting struct {
	Loop    string      `json:"loop,omitempty"`    // the loop whose gate it is, "" for a gate of the steward itself
	Steward string      `json:"steward,omitempty"` // the steward whose gate it is, or for which the loop works
	Task    string      `json:"task,omitempty"`    // the task of the steward
	Gate    loop.Gate   `json:"gate"`
	Ways    []rules.Way `json:"ways"`   // how it can be answered
	Source  string      `json:"source"` // temporal or ledger

	Budget loop.Budget `json:"-"` // of the loop
}

// atOnce is how many loops and stewards are asked at the same time.
const atOnce = 16

// Inbox returns everything that waits for a person, over all loops and stewards of the namespace, the oldest first.
// It asks each of them, and reads the ledgers of this host for those that do not answer. unknown are those without an
// answer and without a ledger, by their names. Its What says which of their files are damaged, and is "" if this host
// has none of their files. The gate of a child belongs to the child, with the steward and task that the child works
// for.
func (c *Client) Inbox(ctx context.Context) (waiting []Waiting, unknown []Trouble, err error) {
	rows, err := c.Listed(ctx)
	if err != nil {
		return nil, nil, err
	}
	rows = slices.DeleteFunc(rows, func(r launch.Row) bool { return loop.Status(r.Status).Ended() })
	var mu sync.Mutex
	several(atOnce, len(rows), func(i int) {
		id := rows[i].Loop
		found, err := c.waiting(ctx, rows[i])
		damage := ""
		if err != nil {
			damage = c.damage(ctx, id)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			unknown = append(unknown, Trouble{Loop: id, What: damage})
		}
		waiting = append(waiting, found...)
	})
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	slices.SortFunc(unknown, func(a, b Trouble) int { return strings.Compare(a.Loop, b.Loop) })
	return inOrder(waiting), unknown, nil
}

// waiting returns the gates of a loop or steward. For a steward, each of its loops has an entry without a gate, too.
func (c *Client) waiting(ctx context.Context, r launch.Row) (waiting []Waiting, err error) {
	if r.Steward() {
		s, err := c.Stewarding(ctx, r.Loop)
		if err != nil || s.State.Status.Ended() {
			return nil, err
		}
		if !s.Ledger {
			if s.State, err = c.Complete(ctx, r.Loop, s.State); err != nil {
				return nil, err
			}
		}
		for _, g := range s.State.Open() {
			waiting = append(waiting, Waiting{Steward: r.Loop, Task: g.Task, Gate: g, Ways: steward.Ways(r.Loop, g), Source: s.name()})
		}
		for _, t := range s.State.Tasks {
			for _, child := range t.Loops {
				waiting = append(waiting, Waiting{Loop: child, Steward: r.Loop, Task: t.ID})
			}
		}
		return waiting, nil
	}
	s, err := c.Snapshot(ctx, r.Loop)
	if g := s.State.Gate; err == nil && g != nil && !s.State.Status.Ended() && !pausedBySteward(s.State) {
		budget := s.State.Ticking(c.Now()).Budget
		waiting = []Waiting{{Loop: r.Loop, Gate: *g, Ways: rules.Ways(r.Loop, *g, budget), Source: s.name(), Budget: budget}}
	}
	return waiting, err
}

// pausedBySteward reports whether a loop waits only for its steward, which will let it continue.
func pausedBySteward(s loop.State) bool {
	return s.Steward != "" && s.Gate.Kind == loop.GatePause && s.PausedBy == loop.StewardName(s.Steward)
}

// name returns the source as JSON names it.
func (s Source) name() string {
	if s.Ledger {
		return "ledger"
	}
	return "temporal"
}

// inOrder adds to each loop's gate the steward for which the loop works, and sorts the oldest first.
func inOrder(items []Waiting) []Waiting {
	works := map[string]Waiting{}
	for _, w := range items {
		if w.Gate.ID == "" {
			works[w.Loop] = w
		}
	}
	items = slices.DeleteFunc(items, func(w Waiting) bool { return w.Gate.ID == "" })
	for i, w := range items {
		if stewardGate, child := works[w.Loop]; child && w.Loop != "" {
			items[i].Steward, items[i].Task = stewardGate.Steward, stewardGate.Task
		}
	}
	slices.SortStableFunc(items, func(a, b Waiting) int {
		return cmp.Or(a.Gate.OpenedAt.Compare(b.Gate.OpenedAt), strings.Compare(a.Steward+a.Loop+a.Gate.ID, b.Steward+b.Loop+b.Gate.ID))
	})
	return items
}
