package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/cli/render"
	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/loop/api"
)

// applyOptions say which proposal is applied and how.
type applyOptions struct {
	hash string
	how  string
	by   string
	out  string // the file for a patch, "" for stdout
}

func (a *app) applyCommand() *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use: "apply [ID]", Short: "Apply an approved proposal to the branch that the loop started from", Args: atMost(1),
		Long: `Apply an approved proposal to the branch that the loop started from: exactly what was
approved, or nothing. The branch must still be where the proposal starts. If it has moved, a
new proposal replaces the old one and needs a new approval. If the branch is checked out, its
working tree is updated too and must be clean.

--how patch writes the proposal as a patch, to --out or to stdout, and touches no branch.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.runApply(ctx, args, o) }),
	}
	cmd.Flags().StringVar(&o.hash, "hash", "", "the hash that was approved (default: the proposal's)")
	cmd.Flags().StringVar(&o.how, "how", api.FastForward, "ff, merge, squash or patch")
	cmd.Flags().StringVar(&o.by, "by", config.User(), "who does this, for the record")
	cmd.Flags().StringVar(&o.out, "out", "", "the file to write a patch to (default: stdout)")
	return cmd
}

func (a *app) runApply(ctx context.Context, args []string, o applyOptions) error {
	if !slices.Contains(api.Ways, o.how) {
		return usage("--how is one of " + strings.Join(api.Ways, ", "))
	}
	if o.out != "" && o.how != api.Patch {
		return usage("--out is for --how patch")
	}
	apply := a.naming(applies, func(ctx context.Context, args []string) error {
		input := api.Apply{Loop: args[0], Hash: o.hash, How: o.how, By: o.by}
		return a.visit(ctx, func(s *session) error { return a.applyProposal(ctx, s, input, o.out) })
	})
	return apply(ctx, args)
}

func (a *app) applyProposal(ctx context.Context, s *session, input api.Apply, out string) error {
	applied, err := s.Apply(ctx, input)
	if err != nil {
		return client.Loop.About(input.Loop, err)
	}
	return a.reportApplied(applied, out)
}

func (a *app) reportApplied(done api.Applied, out string) error {
	if done.PushRefused != "" {
		a.say("the loop's record could not be pushed: %s", render.Clean(done.PushRefused))
	}
	if m := done.Moved; m != nil {
		cause := fmt.Sprintf("%s has moved since the proposal was made", done.Branch)
		if r := done.Rewritten; r != nil {
			cause = fmt.Sprintf("%s was rewritten: it no longer has %s, on which the proposal was made", done.Branch, r.Base[:10])
			a.say("%s", render.Clean(r.String()))
		}
		return fault.New(fault.BaseMoved, "%s, so nothing was applied. A new proposal on top of it was made: %s", cause, render.Proposal(*m)).
			Advise(fmt.Sprintf("Review it (`pawl diff %s`), approve it (`pawl approve %s --hash %s`) and apply it. It was not measured on the new base.", done.Loop, done.Loop, m.Hash[:16]))
	}
	if done.Patch != "" && (!a.json || out != "") {
		if err := a.copyPatch(done, out); err != nil || !a.json {
			return err
		}
		done.Patch = out
	}
	if a.json {
		return a.printJSON(done)
	}
	verb := "applied to"
	if done.Already {
		verb = "is already in"
	}
	return a.print(fmt.Sprintf("%s: proposal %s %s %s (%s)", done.Loop, done.Hash[:16], verb, render.Clean(done.Branch), done.Commit[:10]))
}

// copyPatch copies the patch to the file out, or to stdout.
func (a *app) copyPatch(done api.Applied, out string) error {
	source, err := os.Open(done.Patch)
	if err != nil {
		return fault.New(fault.PreconditionFailed, "the patch is on the loop's host: %s", done.Patch)
	}
	defer source.Close()
	if out == "" || out == "-" {
		_, err = io.Copy(a.out, source)
		return err
	}
	target, err := os.Create(out)
	if err != nil {
		return usage(err.Error())
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
