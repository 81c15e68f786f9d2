package cli

import (
	"context"
	"fmt"

	"pawl/internal/cli/render"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/userrepo"
	"pawl/internal/lib/shell"
	"pawl/internal/spec"
)

// specMessage is the message of the commit that adds a spec.
const specMessage = "A loop of pawl"

// uncommittedSpec returns what is not committed, if the spec file is part of it and keeps the loop from starting.
func uncommittedSpec(ctx context.Context, file string, sp spec.Spec) (u userrepo.Uncommitted, found bool) {
	if sp.Repo.Remote() {
		return u, false
	}
	u = userrepo.FindUncommitted(ctx, sp.Repo.Path, sp.Repo.Base)
	return u, u.Has(file)
}

// commitCommand returns the command with which a person commits the spec, and nothing else.
func commitCommand(file string) string {
	return shell.Join("git", "add", file) + " && " + shell.Join("git", "commit", "-m", specMessage, "--", file)
}

// commitAdvice says how a spec is committed. It never says to stash, which would take the spec away.
func commitAdvice(file string, u userrepo.Uncommitted) string {
	advice := "Commit the spec: " + commitCommand(file)
	if !u.Only(file) {
		advice += ". Then commit the other files, or put them aside"
	}
	return advice
}

// commitsSpec makes sure that the spec is committed, if it is all that keeps the tree from being clean: it offers that at
// a terminal, and otherwise says how.
func (a *app) commitsSpec(ctx context.Context, o runOptions, sp spec.Spec) error {
	u, found := uncommittedSpec(ctx, o.file, sp)
	if !found {
		return nil
	}
	dirty := fault.New(fault.PreconditionFailed, "the working tree is not clean: %s", git.QuoteSome(u.Paths)).Advise(commitAdvice(o.file, u))
	if !u.Only(o.file) || o.yes || !a.terminal() {
		return dirty
	}
	if !o.commits {
		agreed, err := a.consents(ctx, fmt.Sprintf("%s is not committed, and a loop starts from a commit. Commit it, and nothing else? [y/N] ", render.Clean(o.file)))
		if err != nil {
			return err
		}
		if !agreed {
			return dirty
		}
	}
	if err := u.CommitFile(ctx, o.file, specMessage); err != nil {
		return fault.New(fault.PreconditionFailed, "%s", err).Advise(commitAdvice(o.file, u))
	}
	a.say("committed %s", render.Clean(o.file))
	return nil
}

// consents asks a question until it is answered by yes, no or Enter, which is a no. The end of the input is one, too.
func (a *app) consents(ctx context.Context, question string) (bool, error) {
	for {
		typed, err := a.asks(ctx, question)
		switch typed = answered(typed); {
		case ctx.Err() != nil:
			return false, err
		case err == nil && yes(typed):
			return true, nil
		case err != nil || typed == "" || no(typed):
			return false, nil
		}
		a.say("%q is no answer to this", render.Clean(typed))
	}
}
