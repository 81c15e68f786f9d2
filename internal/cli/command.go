package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/lib/list"
	"pawl/internal/spec"
)

// command wraps the function of a command. Once it runs, the arguments are understood: its error is no usage error.
func (a *app) command(do func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.ran = true
		if a.asked {
			return a.printVersion()
		}
		if err := blank(cmd, args); err != nil {
			return err
		}
		return a.suggesting(cmd.Context(), args, do(cmd, args))
	}
}

// suggesting returns the error of a command. If nobody knows the loop or steward that its first argument names, the error
// says which one may have been meant.
func (a *app) suggesting(ctx context.Context, args []string, err error) error {
	unknown, ok := errors.AsType[*fault.Error](err)
	if !ok || unknown.Code != fault.LoopNotFound || len(args) == 0 {
		return err
	}
	_ = a.visit(ctx, func(s *session) error {
		rows, err := s.Listed(ctx)
		ids := list.Map(rows, func(r launch.Row) string { return r.Loop })
		if meant := spec.Alike(args[0], ids); err == nil && meant != "" && !slices.Contains(ids, args[0]) {
			unknown = fault.New(unknown.Code, "%s%s", unknown.What, meaning(meant)).Advise(unknown.Do)
		}
		return nil
	})
	return unknown
}

// blank refuses empty arguments, as of a variable that is not set. For a steward, no task would mean all of them.
func blank(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return usage("an argument of " + cmd.CommandPath() + " is empty")
		}
	}
	if f := cmd.Flags().Lookup("task"); f != nil && f.Changed && strings.TrimSpace(f.Value.String()) == "" {
		return usage("--task is empty; leave it out if you mean no task")
	}
	return nil
}

// brief wraps a command that ends at the first signal.
func (a *app) brief(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return a.command(func(cmd *cobra.Command, args []string) error {
		ctx, stop := a.untilSignal(cmd.Context())
		defer stop()
		return do(ctx, args)
	})
}

// visiting wraps a brief command that only reads or answers.
func (a *app) visiting(do func(ctx context.Context, s *session, args []string) error) func(*cobra.Command, []string) error {
	return a.brief(func(ctx context.Context, args []string) error {
		return a.visit(ctx, func(s *session) error { return do(ctx, s, args) })
	})
}

// visitingLoop is visiting for a command about a loop, this folder's if none is named.
func (a *app) visitingLoop(u unnamed, do func(ctx context.Context, s *session, args []string) error) func(*cobra.Command, []string) error {
	return a.brief(a.naming(u, func(ctx context.Context, args []string) error {
		return a.visit(ctx, func(s *session) error { return do(ctx, s, args) })
	}))
}

// untilSignal returns a context that ends at the first signal. stop releases the signals.
func (a *app) untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-a.deps.Signals:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}
