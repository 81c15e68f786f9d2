package client

import (
	"context"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/git/store"
	"pawl/internal/lib/text/markdown"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
)

// review carries a person's answer to the proposal of a loop that has ended. done is false if the loop has not ended
// or has made no proposal: then the answer is a message to a gate.
func (c *Client) review(ctx context.Context, id, answer string, m loop.Message) (sent Sent, done bool, err error) {
	input := api.Review{Loop: id, Hash: m.Hash, Answer: answer, By: m.By, Note: m.Note, Time: c.Now().UTC()}
	var out api.Reviewed
	p, found, hasEnded, err := c.Proposed(ctx, id)
	if err != nil || !hasEnded {
		return Sent{}, err != nil, err
	}
	if input.Hash == "" && answer == loop.MessageReject {
		input.Hash = p.Hash
	}
	sent = Sent{Loop: id, Message: answer, Via: "ledger"}
	if found {
		out, err = c.Proposals.ReviewHere(ctx, input)
	} else {
		sent.Via = "workflow"
		err = c.execute(ctx, "Review", id, map[string]string{"loop": id, "hash": input.Hash, "answer": answer, "by": input.By, "note": input.Note}, &out)
	}
	sent.Already, sent.Proposal = out.Already, &out.Proposal
	return sent, true, plainly(ctx, err)
}

// Proposed returns the proposal of a loop that has ended with one, and whether this host has it. An error means that
// neither its ledger nor an engine says whether it has ended.
func (c *Client) Proposed(ctx context.Context, id string) (p loop.Proposal, found, hasEnded bool, err error) {
	var state loop.State
	r, found := c.Record(id)
	if found {
		state, err = c.Recorded(ctx, id)
	} else if c.SDK != nil && fault.CodeOf(c.Alive(ctx, id)) == fault.GateClosed {
		state, err = c.State(ctx, id)
	}
	if err != nil && (c.SDK == nil || r.Closed && fault.CodeOf(err) == fault.LedgerDamaged) {
		return p, found, false, err
	}
	if err != nil || !state.Status.Ended() || state.Proposal == nil { // if there is an engine, the loop itself answers
		return p, found, false, nil
	}
	return *state.Proposal, found, true, nil
}

// execute runs one of the workflows that work on a loop's proposal, on the host that has it.
func (c *Client) execute(ctx context.Context, kind, id string, in map[string]string, out any) error {
	if c.SDK == nil {
		return c.NoEngine()
	}
	run, err := c.SDK.ExecuteWorkflow(ctx, sdk.StartWorkflowOptions{
		ID: strings.ToLower(kind) + "-" + id, TaskQueue: api.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL, StaticSummary: kind + " the proposal of " + markdown.Text(id),
	}, kind, in)
	if err != nil {
		return err
	}
	return run.Get(ctx, out)
}

// plainly turns an error of an activity or a workflow into the fault that it carries.
func plainly(ctx context.Context, err error) error {
	if f := wire.Decode(err); f != nil {
		return f
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Apply applies an approved proposal to the branch that its loop started from: on this host if the loop is here, else
// by the workflow of that name. Without a hash it applies the loop's current proposal.
func (c *Client) Apply(ctx context.Context, input api.Apply) (done api.Applied, err error) {
	s, err := c.Snapshot(ctx, input.Loop)
	if err != nil {
		return done, err
	}
	switch {
	case input.Hash != "":
	case s.State.Proposal == nil:
		return done, rules.MayApply(nil, "")
	default:
		input.Hash = s.State.Proposal.Hash
	}
	if !s.State.Status.Ended() && s.State.Proposal != nil { // it ends as soon as the proposal is approved
		if err := rules.MayApply(s.State.Proposal, input.Hash); err != nil {
			return done, err
		}
	}
	if _, ok := c.Record(input.Loop); ok {
		input.Time = c.Now().UTC()
		done, err = c.Proposals.ApplyHere(ctx, input)
	} else {
		err = c.execute(ctx, "Apply", input.Loop, map[string]string{"loop": input.Loop, "hash": input.Hash, "how": input.How, "by": input.By}, &done)
	}
	return done, plainly(ctx, err)
}

// AwaitApplied waits for the result of an approval that asks the loop to apply its proposal. It reads the loop's
// events after a sequence number. An error means that nothing was applied, or that nobody answers.
func (c *Client) AwaitApplied(ctx context.Context, id string, seq int64) (done api.Applied, err error) {
	for silent := c.Now(); ; {
		v, err := c.Events(ctx, id, seq)
		if err == nil {
			silent = c.Now()
		}
		for _, e := range v.Events {
			seq = e.Seq
			switch {
			case e.Type == loop.ProposalApplied && e.Proposal != nil:
				return api.Applied{Loop: id, Hash: e.Proposal.Hash, How: e.How, Branch: e.Proposal.Branch, Commit: e.Proposal.Commit, Proposal: e.Proposal}, nil
			case e.Type == loop.ProposalMade && e.Proposal != nil: // made again on top of the moved base
				branch, _, _ := strings.Cut(e.Reason, " ")
				return api.Applied{Loop: id, Branch: branch, Moved: e.Proposal, Rewritten: e.Rewritten}, nil
			case e.Type == loop.Warned && e.ErrorCode != "":
				return done, fault.New(fault.Code(e.ErrorCode), "%s", e.Reason).Advise(e.Recovery)
			case e.Status.Ended():
				return done, fault.New(fault.GateClosed, "the loop %s has ended (%s) and nothing was applied", id, e.Status).
					Advise("See `pawl show " + id + "`; a proposal that is approved can be applied with `pawl apply " + id + "`.")
			}
		}
		if text := c.applyFails(ctx, id); text != "" {
			return done, fault.New(fault.InfrastructureError, "nothing is applied yet: %s", text).
				Advise("The approval holds. Mend this, and the loop goes on by itself; `pawl apply " + id + "` applies it at once.")
		}
		if c.Now().Sub(silent) > replyTimeout {
			return done, fault.New(fault.NoWorker, "the loop %s took the approval, but has not said whether the change is applied", id).
				Advise("See `pawl show " + id + "`.")
		}
		select {
		case <-ctx.Done():
			return done, context.Cause(ctx)
		case <-time.After(retryEvery):
		}
	}
}

// applyTries is how often applying must have failed to be reported: a lock of another git may be gone in a moment.
const applyTries = 3

// applyFails returns why applying a loop's proposal fails and is tried again, "" if it does not.
func (c *Client) applyFails(ctx context.Context, id string) string {
	d, err := c.asked(ctx, id)
	if err != nil {
		return ""
	}
	a := failing(d)
	if a.GetActivityType().GetName() != api.ApplyName || a.GetAttempt() < applyTries {
		return ""
	}
	return a.GetLastFailure().GetMessage()
}

// Store returns the store of a loop on this host.
func (c *Client) Store(ctx context.Context, id string) (*store.Store, error) {
	record, ok := c.Record(id)
	if !ok {
		return nil, c.unknown(Loop, id)
	}
	st, _, err := c.open(ctx, record)
	return st, err
}
