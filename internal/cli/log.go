package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"pawl/internal/kind"
	"pawl/internal/loop"
)

func (a *app) logCommand() *cobra.Command {
	var follow, all, verify bool
	cmd := &cobra.Command{
		Use: "log ID", Short: "Show what happened in a loop, from its ledger", Args: oneLoop,
		Long: `Show what happened in a loop: all of it from the ledger, and the newest from the loop
itself. With --json every event is one line of JSON.

--verify proves the ledger whole, or says where it is not: every entry's hashes, that each
state is what the events make of the one before, results, records, code heads and contract,
and that workflow and repository know no other ledger. Exit code 1 where it is not whole.`,
		RunE: a.brief(func(ctx context.Context, args []string) error {
			if verify {
				return a.verify(ctx, args[0])
			}
			return a.log(ctx, args[0], follow, all)
		}),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the loop ends")
	cmd.Flags().BoolVar(&verify, "verify", false, "prove the ledger whole, or say where it is not")
	cmd.Flags().BoolVar(&all, "all", false, "every event, not only those of note")
	cmd.MarkFlagsMutuallyExclusive("verify", "follow")
	cmd.MarkFlagsMutuallyExclusive("verify", "all")
	return cmd
}

func (a *app) log(ctx context.Context, id string, follow, all bool) error {
	s, err := a.visit(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	r, err := s.read(ctx, id)
	if err != nil {
		return err
	}
	k, err := kind.Of(r.state.Kind)
	if err != nil {
		return err
	}
	l := logger{app: a, kind: k, all: all, json: a.json}
	if events, err := s.history(ctx, id); err == nil {
		err = l.write(events)
		if err != nil {
			return err
		}
	} else if r.ledger {
		return err
	}
	if r.ledger {
		a.fromLedger(r)
		if follow && !r.state.Status.Ended() {
			return noEngine()
		}
		return nil
	}
	return a.logLive(ctx, s, id, &l, follow)
}

// logLive writes what the loop itself has to say, once or until it ends.
func (a *app) logLive(ctx context.Context, s *session, id string, l *logger, follow bool) error {
	for quiet := 0; ; quiet++ {
		v, err := s.events(ctx, id, l.seq)
		if ctx.Err() != nil {
			return nil // Ctrl-C is how following ends
		}
		if err != nil && !follow {
			return s.unreachable(ctx, err)
		}
		if n := len(v.Events); n > 0 {
			quiet = 0
			if missing := v.Events[0].Seq - l.seq - 1; missing > 0 {
				a.say("%d events before these are in the ledger on the loop's host only", missing)
			}
		}
		if err := l.write(v.Events); err != nil {
			return err
		}
		// A loop that somebody terminated has no last event.
		if !follow || l.over || (quiet%25 == 24 && s.alive(ctx, id) != nil) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
	}
}

// history returns all events that this host's ledger has of a loop.
func (s *session) history(ctx context.Context, id string) ([]loop.Event, error) {
	l, head, err := s.openLedger(ctx, id)
	if err != nil {
		return nil, err
	}
	return l.Events(ctx, head)
}

// logger writes events once, in their order.
type logger struct {
	app  *app
	kind kind.Kind
	all  bool
	json bool
	seq  int64 // of the last one written
	over bool
}

func (l *logger) write(events []loop.Event) error {
	style := l.app.style()
	for _, e := range events {
		if e.Seq <= l.seq {
			continue
		}
		l.seq, l.over = e.Seq, e.Status.Ended()
		if l.json {
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
