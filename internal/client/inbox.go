package client

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"pawl/internal/govern"
	"pawl/internal/launch"
	"pawl/internal/loop"
	"pawl/internal/steward"
)

// Waiting is something that waits for a person.
type Waiting struct {
	Loop    string       `json:"loop,omitempty"`    // whose gate it is; "" for a gate of the steward itself
	Steward string       `json:"steward,omitempty"` // whose gate it is, or that the loop works for
	Task    string       `json:"task,omitempty"`    // of the steward
	Gate    loop.Gate    `json:"gate"`
	Ways    []govern.Way `json:"ways"`   // how it can be answered
	Source  string       `json:"source"` // temporal or ledger

	Budget loop.Budget `json:"-"` // of the loop
}

// atOnce is how many are asked at a time.
const atOnce = 16

// Inbox returns everything that waits for a person, over all loops and stewards of the namespace, the
// oldest first: as they say themselves, as the ledgers of this host say where nobody answers. unknown
// are those of which neither is known, by their names; What says which of their files are damaged and is
// "" where this host has none. A child's gate is the child's, with the steward and task that it belongs to.
func (c *Client) Inbox(ctx context.Context) (waiting []Waiting, unknown []Trouble, err error) {
	list := c.Kept
	if c.SDK != nil {
		list = c.Listed
	}
	rows, err := list(ctx)
	if err != nil {
		return nil, nil, err
	}
	rows = slices.DeleteFunc(rows, func(r launch.Row) bool { return loop.Status(r.Status).Ended() })
	var mu sync.Mutex
	var asking errgroup.Group
	asking.SetLimit(atOnce)
	for _, r := range rows {
		asking.Go(func() error {
			found, err := c.waiting(ctx, r)
			damage := ""
			if err != nil {
				damage = c.damage(ctx, r.Loop)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				unknown = append(unknown, Trouble{r.Loop, damage})
			}
			waiting = append(waiting, found...)
			return nil
		})
	}
	_ = asking.Wait()
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	slices.SortFunc(unknown, func(a, b Trouble) int { return strings.Compare(a.Loop, b.Loop) })
	return inOrder(waiting), unknown, nil
}

// waiting returns the gates of one loop or steward. A steward also tells which loops work for it: those
// come as entries without a gate.
func (c *Client) waiting(ctx context.Context, r launch.Row) (all []Waiting, err error) {
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
			all = append(all, Waiting{Steward: r.Loop, Task: g.Task, Gate: g, Ways: steward.Ways(r.Loop, g), Source: s.name()})
		}
		for _, t := range s.State.Tasks {
			for _, child := range t.Loops {
				all = append(all, Waiting{Loop: child, Steward: r.Loop, Task: t.ID})
			}
		}
		return all, nil
	}
	s, err := c.Snapshot(ctx, r.Loop)
	if g := s.State.Gate; err == nil && g != nil && !s.State.Status.Ended() && !pausedBySteward(s.State) {
		all = []Waiting{{Loop: r.Loop, Gate: *g, Ways: govern.Ways(r.Loop, *g, s.State.Budget), Source: s.name(), Budget: s.State.Budget}}
	}
	return all, err
}

// pausedBySteward reports whether a loop waits for its steward alone, which lets it go on when it is time.
func pausedBySteward(s loop.State) bool {
	return s.Steward != "" && s.Gate.Kind == loop.GatePause && s.PausedBy == loop.StewardName(s.Steward)
}

// name is the source in data.
func (s Source) name() string {
	if s.Ledger {
		return "ledger"
	}
	return "temporal"
}

// inOrder says of each loop's gate for whom the loop works, and puts the oldest first.
func inOrder(all []Waiting) []Waiting {
	works := map[string]Waiting{}
	for _, w := range all {
		if w.Gate.ID == "" {
			works[w.Loop] = w
		}
	}
	all = slices.DeleteFunc(all, func(w Waiting) bool { return w.Gate.ID == "" })
	for i, w := range all {
		if by, child := works[w.Loop]; child && w.Loop != "" {
			all[i].Steward, all[i].Task = by.Steward, by.Task
		}
	}
	slices.SortStableFunc(all, func(a, b Waiting) int {
		return cmp.Or(a.Gate.OpenedAt.Compare(b.Gate.OpenedAt), strings.Compare(a.Steward+a.Loop+a.Gate.ID, b.Steward+b.Loop+b.Gate.ID))
	})
	return all
}
