package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"pawl/internal/client"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec/kind"
)

// logOptions say what of a loop's history is shown.
type logOptions struct {
	follow     bool
	all        bool // every event
	verify     bool // prove that the ledger is whole
	transcript bool // the agents of one iteration
	iteration  int
}

func (a *app) logCommand() *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use: "log [ID]", Short: "Show what happened in a loop, from its ledger", Args: atMost(1),
		Long: `Show what happened in a loop or with a steward. The events come from the ledger, the newest
ones from the loop or steward itself. With --json every event is one line of JSON.

--verify proves that the ledger is whole, or says where it is not. It checks the hashes of
every entry, the results, records, code heads and the contract, and that each state follows
from the one before by its events. It also checks that workflow and repository have the
same ledger. The exit code is 1 if the ledger is not whole.

--transcript N shows what the agents of iteration N said and did, all their calls in order: the
beginning of the prompt, words, tools with their arguments, results, the cost. Credentials are left
out, and long calls are shortened. If a transcript is not the one that was recorded, the command says
so and the exit code is 1. Iteration 0 has the calls before the first iteration (a planner).`,
	}
	cmd.RunE = a.visitingLoop(looksAtAny, func(ctx context.Context, s *session, args []string) error {
		o.transcript = cmd.Flags().Changed("transcript")
		return a.runLog(ctx, s, args[0], o)
	})
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "keep following until the loop ends")
	cmd.Flags().BoolVar(&o.verify, "verify", false, "prove that the ledger is whole, or say where it is not")
	cmd.Flags().BoolVar(&o.all, "all", false, "show every event, not only the important ones")
	cmd.Flags().IntVar(&o.iteration, "transcript", 0, "show what the agents of this iteration said and did")
	for _, flag := range []string{"follow", "all", "transcript"} {
		cmd.MarkFlagsMutuallyExclusive("verify", flag)
	}
	cmd.MarkFlagsMutuallyExclusive("transcript", "follow")
	cmd.MarkFlagsMutuallyExclusive("transcript", "all")
	return cmd
}

func (a *app) runLog(ctx context.Context, s *session, id string, o logOptions) error {
	switch {
	case o.verify:
		return a.verifyLedger(ctx, s, id)
	case o.transcript:
		return a.showTranscript(ctx, s, id, o.iteration)
	}

	if refs := s.Later(id); len(refs) > 0 {
		a.say("%[1]s was started again from an earlier ledger, which follows. The ledger of a later run has the name %[2]s: `pawl log %[2]s`", id, refs[0])
	}
	if err := a.showEvents(ctx, s, id, o); err != nil || a.json {
		return err
	}
	// Only the loop's host knows what was mended after the last entry.
	if mended := a.style().Mended(s.Untold(id)); mended != "" {
		return a.print(mended)
	}
	return nil
}

// showEvents writes the events of the ledger, and then those that only the loop itself has.
func (a *app) showEvents(ctx context.Context, s *session, id string, o logOptions) error {
	k, source, status, err := s.found(ctx, id)
	if err != nil {
		return err
	}
	l := logger{app: a, kind: k, all: o.all}
	if events, err := s.History(ctx, id); err == nil {
		if err := l.write(events); err != nil {
			return err
		}
	} else if source.Ledger {
		return err
	}
	if source.Ledger {
		a.fromLedger(source, status)
		if o.follow && !status.Ended() {
			return s.NoEngine()
		}
		return nil
	}
	return a.logLive(ctx, s, id, &l, o.follow)
}

// found returns what the log needs to know about a loop or steward.
func (s *session) found(ctx context.Context, id string) (kind.Kind, client.Source, loop.Status, error) {
	if s.FamilyOf(ctx, id) == client.Steward {
		r, err := s.Stewarding(ctx, id)
		return kind.Steward, r.Source, r.State.Status, err
	}
	r, err := s.Snapshot(ctx, id)
	if err != nil {
		return kind.Kind{}, r.Source, "", err
	}
	k, err := kind.Of(r.State.Kind)
	return k, r.Source, r.State.Status, err
}

// logLive writes the events that the loop itself returns, once or until it ends.
func (a *app) logLive(ctx context.Context, s *session, id string, l *logger, follow bool) error {
	for quiet := 0; ; quiet++ {
		v, err := s.Events(ctx, id, l.seq)
		if ctx.Err() != nil {
			return nil // Ctrl-C is how following ends
		}
		if err != nil && !follow {
			return s.Unreachable(ctx, err)
		}
		if n := len(v.Events); n > 0 {
			quiet = 0
			if missing := v.Events[0].Seq - l.seq - 1; missing > 0 {
				a.say("earlier events are only in the ledger on the loop's host: %s", metric.Counted(int(missing), "event"))
			}
		}
		if err := l.write(v.Events); err != nil {
			return err
		}
		// A loop that somebody terminated has no last event.
		if !follow || l.over || (quiet%25 == 24 && s.Over(ctx, id)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
	}
}

// logger writes events once, in their order.
type logger struct {
	app  *app
	kind kind.Kind
	all  bool
	seq  int64 // the number of the last event written
	over bool
}

func (l *logger) write(events []loop.Event) error {
	style := l.app.style()
	for _, e := range events {
		if e.Seq <= l.seq {
			continue
		}
		l.seq, l.over = e.Seq, e.Status.Ended()
		if l.app.json {
			encoder := json.NewEncoder(l.app.out)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(e); err != nil {
				return err
			}
			continue
		}
		if line, ofNote := style.Event(l.kind, e); ofNote || l.all {
			if err := l.app.print(line); err != nil {
				return err
			}
		}
	}
	return nil
}
