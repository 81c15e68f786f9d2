package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"

	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/ledger"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec/kind"
	"pawl/internal/steward"
	"pawl/internal/steward/charter"
)

// StewardOptions returns the options with which every steward is started, whoever starts it.
func StewardOptions(c charter.Charter, person string) sdk.StartWorkflowOptions {
	o := startOptions(launch.OfSteward(c, person))
	o.WorkflowTaskTimeout = launch.StewardTaskTimeout
	return o
}

// StartSteward starts a steward's workflow, anew or from a ledger. person is who starts it, for the record.
func (c *Client) StartSteward(ctx context.Context, ch charter.Charter, person, ledger string) (sdk.WorkflowRun, error) {
	running := fault.New(fault.LoopAlreadyRunning, "a steward or loop %s is running already", ch.Name).
		Advise(fmt.Sprintf("Look at it with `pawl steward show %[1]s`, or end it with `pawl steward stop %[1]s`.", ch.Name))
	return c.start(ctx, StewardOptions(ch, person), kind.Steward, ch, ledger, running)
}

// haltReason returns why a steward ends that gets a message, "" if the message does not end it.
func haltReason(name string, m steward.Message) string {
	if name != loop.MessageHalt || m.Task != nil {
		return ""
	}
	return rules.HaltReason(name, loop.Message{By: m.By, Note: m.Note})
}

// SendTask carries a message to a steward, as Send does to a loop. An answer is bound to its task's only open gate.
func (c *Client) SendTask(ctx context.Context, name, messageName string, m steward.Message) (Sent, error) {
	return carry(ctx, c, name, messageName, message[steward.Message]{
		Family: Steward,
		halts:  haltReason(messageName, m),
		loops: func() []string {
			s, err := c.RecordedSteward(ctx, name)
			if err != nil {
				return nil
			}
			return s.LoopsAtWork()
		},
		bound: func(open []loop.Gate) steward.Message { return boundTask(messageName, m, open) },
		asked: func() ([]loop.Gate, error) {
			v, err := ask[launch.GatesView](ctx, c, name, "gates")
			return v.Gates, err
		},
		recorded: func() ([]loop.Gate, func(steward.Message) error, error) {
			book, head, err := c.book(ctx, name)
			if err != nil {
				return nil, nil, err
			}
			s, err := book.State(ctx, head)
			if err != nil {
				return nil, nil, err
			}
			if s.Status.Ended() {
				return nil, nil, Steward.over(name, string(s.Status))
			}
			charter, err := book.Charter(ctx, head)
			return s.Gates, func(m steward.Message) error {
				_, err := steward.Answer(s, charter, messageName, m)
				return err
			}, err
		},
	})
}

// boundTask returns a message that answers a gate, bound to the only open gate of its task. An answer with a hash names
// what it is for, and the steward knows by that whether it was given before.
func boundTask(name string, m steward.Message, open []loop.Gate) steward.Message {
	var task string
	if m.Gate != "" || m.Hash != "" || !steward.AnswersGates(name) || json.Unmarshal(m.Task, &task) != nil {
		return m
	}
	open = slices.DeleteFunc(slices.Clone(open), func(g loop.Gate) bool { return g.Task != task })
	if len(open) == 1 {
		m.Gate = open[0].ID
	}
	return m
}

// Task asks a steward for one task, nil if it has none with that ID. The steward's state lacks tasks if there are
// many. An error means that no worker answered.
func (c *Client) Task(ctx context.Context, name, id string) (*steward.Task, error) {
	t, err := ask[*steward.Task](ctx, c, name, "task", id)
	if _, ok := errors.AsType[*serviceerror.QueryFailed](err); ok {
		return nil, nil
	}
	return t, err
}

// StewardState asks a steward for its state. An error means that no worker answered.
func (c *Client) StewardState(ctx context.Context, name string) (steward.State, error) {
	return ask[steward.State](ctx, c, name, "state")
}

// Stewarding returns a steward's state: from the steward itself, else from the ledger of this host.
func (c *Client) Stewarding(ctx context.Context, name string) (Snapshot[steward.State], error) {
	return find(ctx, c, name, subject[steward.State]{
		Family: Steward, asked: c.StewardState, recorded: c.RecordedSteward,
		late: func(reported, recorded steward.State) bool { return false },
		unreported: func(s steward.State, end *unreportedEnd) steward.State {
			if end != nil && !s.Status.Ended() {
				s.Status, s.Reason = end.Status, end.Reason
			}
			return s
		},
	})
}

// Complete returns a steward's state with all its tasks and gates. The query shows only the first hundred.
func (c *Client) Complete(ctx context.Context, name string, s steward.State) (steward.State, error) {
	var err error
	if s.GatesCount > len(s.Gates) {
		s.Gates, err = pages(func(offset int) ([]loop.Gate, int, error) {
			v, err := ask[launch.GatesView](ctx, c, name, "gates", offset)
			return v.Gates, v.Next, err
		})
	}
	if err == nil && s.TasksCount > len(s.Tasks) { // some may be over and forgotten
		s.Tasks, err = pages(func(offset int) ([]steward.Task, int, error) {
			v, err := ask[launch.TasksView](ctx, c, name, "tasks", offset)
			return v.Tasks, v.Next, err
		})
	}
	return s, err
}

// pages collects a list that comes in parts. Each part says where the next one begins, 0 at the end.
func pages[T any](part func(offset int) ([]T, int, error)) (items []T, err error) {
	for offset := 0; ; {
		page, next, err := part(offset)
		if err != nil {
			return nil, err
		}
		if items = append(items, page...); next == 0 {
			return items, nil
		}
		offset = next
	}
}

// RecordedSteward returns a steward's state from the ledger on this host, or ALO_LOOP_NOT_FOUND if there is none.
func (c *Client) RecordedSteward(ctx context.Context, name string) (steward.State, error) {
	book, head, err := c.book(ctx, name)
	if err != nil {
		return steward.State{}, err
	}
	return book.State(ctx, head)
}

// LeftBehind returns how many tasks are open in the last ledger of a steward on this host that nobody has ended, and
// the commit of that ledger. Such a steward was terminated, has failed or was reset. If there is none, it returns 0.
func (c *Client) LeftBehind(ctx context.Context, name string) (tasks int, commit string) {
	s, err := c.RecordedSteward(ctx, name)
	if err != nil || s.Status.Ended() {
		return 0, ""
	}
	open := list.Filter(s.Tasks, func(t steward.Task) bool { return t.Outcome == "" })
	return len(open), s.Ledger
}

// book returns the ledger of a steward on this host, with its head.
func (c *Client) book(ctx context.Context, name string) (*ledger.Steward, string, error) {
	st, head, err := c.begun(ctx, Steward, name)
	return ledger.OpenSteward(st), head, err
}

// Plan returns the PLAN.md of a steward's task with that hash, "" if this host does not have it.
func (c *Client) Plan(ctx context.Context, name, id, hash string) string {
	book, head, err := c.book(ctx, name)
	if err != nil {
		return ""
	}
	text, err := book.Plan(ctx, head, id)
	if err != nil || ledger.HashOf(text) != hash {
		return ""
	}
	return string(text)
}

// TaskBody returns the body of a steward's task as it was submitted, "" if there is none or this host does not have it.
func (c *Client) TaskBody(ctx context.Context, name, id string) string {
	book, head, err := c.book(ctx, name)
	if err != nil {
		return ""
	}
	t, err := book.Task(ctx, head, id)
	if err != nil {
		return ""
	}
	return t.Body
}

// FamilyOf returns the family of the workflow with that ID, from Temporal, else from the ledger on this host. It
// returns Loop if neither knows the ID; the loop is then not found.
func (c *Client) FamilyOf(ctx context.Context, id string) Family {
	if c.SDK != nil {
		if d, err := c.asked(ctx, id); err == nil {
			if k, ok := kind.OfWorkflow(d.GetWorkflowExecutionInfo().GetType().GetName()); ok {
				return Of(k)
			}
			return Loop
		}
	}
	return c.recordedFamily(id)
}

// recordedFamily is FamilyOf from this host's records alone.
func (c *Client) recordedFamily(id string) Family {
	if r, ok := c.Record(id); ok && r.Steward() {
		return Steward
	}
	return Loop
}
