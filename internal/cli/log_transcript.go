package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"pawl/internal/cli/render"
	"pawl/internal/fault"
	"pawl/internal/lib/text/visible"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
)

// Transcribed is one call of an agent, as `pawl log --transcript --json` prints it.
type Transcribed struct {
	Iteration int    `json:"iteration"`
	Attempt   int    `json:"attempt"`
	Step      string `json:"step"`
	Role      string `json:"role"`
	File      string `json:"file"`
	SHA256    string `json:"sha256"` // as recorded
	// Trouble says why the text is missing, or is not the one that was recorded; "" if all is well.
	Trouble string `json:"trouble,omitempty"`
	Text    string `json:"text"`
}

// transcript prints what the agents of an iteration said and did, each call in order. It fails if there is no
// transcript. If one is not what was recorded, it prints the others first and then fails.
func (a *app) showTranscript(ctx context.Context, s *session, id string, iteration int) error {
	if err := s.aLoop(ctx, id, "Its loops call the agents: `pawl steward show "+id+" TASK` lists the loops of a task."); err != nil {
		return err
	}
	r, err := s.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	events, err := s.History(ctx, id)
	if err != nil && r.Ledger {
		return err
	}
	if !r.Ledger { // the loop itself has what this host's ledger does not have
		fromSeq := int64(0)
		if n := len(events); n > 0 {
			fromSeq = events[n-1].Seq
		}
		if v, err := s.Events(ctx, id, fromSeq); err == nil {
			events = append(events, v.Events...)
		}
	}
	calls := transcribed(events, iteration)
	if len(calls) == 0 {
		return noTranscript(id, iteration, events)
	}
	trouble := 0
	for i := range calls {
		if calls[i].read(); calls[i].Trouble != "" {
			trouble++
		}
	}
	err = a.output(calls, transcriptText(calls))
	switch {
	case err != nil || trouble == 0:
		return err
	case !slices.ContainsFunc(calls, func(c Transcribed) bool { return c.Text != "" }):
		return fault.New(fault.PreconditionFailed, "no transcript of iteration %d of %s is on this host", iteration, id).
			Advise("The loop ran on " + render.Clean(r.State.Host) + "; `pawl clean` removes transcripts with the logs of steps.")
	}
	return &leaving{code: exitInternal}
}

// transcribed returns the calls of an iteration that have transcripts.
func transcribed(events []loop.Event, iteration int) (calls []Transcribed) {
	for _, e := range callsOf(events, iteration) {
		for _, name := range e.EvidenceIDs {
			if file, digest, ok := api.TranscriptIn(name); ok {
				calls = append(calls, Transcribed{Iteration: iteration, Attempt: e.Attempt, Step: e.Step, Role: e.Role, File: file, SHA256: digest})
			}
		}
	}
	return calls
}

// callsOf returns the steps of an iteration: those within it, and those that made the candidate that it took.
func callsOf(events []loop.Event, iteration int) []loop.Event {
	taken := 0
	for _, e := range events {
		if e.Type == loop.CandidateTaken && e.Iteration == iteration && e.Candidate != nil {
			taken = e.Candidate.N
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(e loop.Event) bool {
		if e.Candidate != nil {
			return e.Type != loop.StepEnded || e.Candidate.N != taken
		}
		return e.Type != loop.StepEnded || e.Iteration != iteration
	})
}

// noTranscript returns an error that says why there is no transcript.
func noTranscript(id string, iteration int, events []loop.Event) error {
	last := 0
	for _, e := range events {
		last = max(last, e.Iteration)
	}
	if iteration > last {
		return fault.New(fault.PreconditionFailed, "%s has no iteration %d", id, iteration).Advise(fmt.Sprintf("The last one is %d.", last))
	}
	reason := "no agent was called in iteration %d of %s"
	if slices.ContainsFunc(callsOf(events, iteration), func(e loop.Event) bool { return e.Role != "" }) {
		reason = "the agent calls of iteration %d of %s have no transcript: no call has ended by itself yet, or an older pawl made the calls"
	}
	return fault.New(fault.PreconditionFailed, reason, iteration, id).Advise("`pawl log " + id + " --all` shows what happened.")
}

// read reads the file and compares it with what was recorded.
func (c *Transcribed) read() {
	b, err := os.ReadFile(c.File)
	sum := sha256.Sum256(b)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.Trouble = "it is not on this host, or it was removed"
	case err != nil:
		c.Trouble = "it can't be read: " + err.Error()
	case fmt.Sprintf("%x", sum) != c.SHA256:
		c.Trouble = fmt.Sprintf("it is NOT the one that was recorded: its SHA-256 is %x, and the record says %s", sum, c.SHA256)
		fallthrough
	default:
		c.Text = string(b)
	}
}

// transcriptText renders the calls for people. Their words are an agent's, and anybody may have written to the files.
func transcriptText(calls []Transcribed) string {
	var b strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&b, "== %s (%s)\n", render.Clean(c.File), render.Clean(c.Role))
		b.WriteString(render.Around("!! ", render.Clean(c.Trouble), "\n"))
		for line := range strings.Lines(c.Text) {
			b.WriteString(visible.Line(strings.TrimSuffix(line, "\n"), nil) + "\n")
		}
	}
	return b.String()
}
