package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pawl/internal/cli/render"
	"pawl/internal/client/launch"
	"pawl/internal/git/userrepo"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
)

// unnamed says which of this folder's loops a command is about that names none: the latest of the first group that has
// any.
type unnamed struct {
	groups []rowGroup
	// final says that the command can't be undone: it is about one of several loops only if a person agrees.
	final bool
	// agrees says that a person is asked in any case, and how.
	question string
}

// rowGroup is a part of this folder's loops, with the words for one of them.
type rowGroup struct {
	words string
	fits  func(launch.Row) bool
}

var (
	anyLoop    = rowGroup{"loop", func(r launch.Row) bool { return !r.Refused && !r.Steward() }}
	anySteward = rowGroup{"steward", func(r launch.Row) bool { return !r.Refused && r.Steward() }}
	notEnded   = rowGroup{"unfinished loop", func(r launch.Row) bool { return anyLoop.fits(r) && !loop.Status(r.Status).Ended() }}
	atGate     = rowGroup{"waiting loop", func(r launch.Row) bool { return notEnded.fits(r) && r.Gate != "" }}
	paused     = rowGroup{"paused loop", func(r launch.Row) bool { return anyLoop.fits(r) && r.Status == string(loop.Paused) }}
	proposing  = rowGroup{"proposing loop", func(r launch.Row) bool { return anyLoop.fits(r) && r.Proposal == rules.Open }}
	approved   = rowGroup{"approved loop", func(r launch.Row) bool { return anyLoop.fits(r) && r.Proposal == rules.Approved }}
	over       = rowGroup{"ended loop", func(r launch.Row) bool { return anyLoop.fits(r) && loop.Status(r.Status).Ended() }}
)

// What commands are about that name no loop.
var (
	looksAtAny     = unnamed{groups: []rowGroup{anyLoop, anySteward}}
	looksAtLoop    = unnamed{groups: []rowGroup{anyLoop}}
	looksAtEnded   = unnamed{groups: []rowGroup{over, anyLoop}}
	follows        = unnamed{groups: []rowGroup{notEnded, anyLoop}}
	approves       = unnamed{groups: []rowGroup{atGate, proposing, anyLoop}}
	applies        = unnamed{groups: []rowGroup{approved, anyLoop}}
	answersGate    = unnamed{groups: []rowGroup{atGate, notEnded}}
	answersForGood = unnamed{groups: []rowGroup{atGate, proposing, notEnded}, final: true}
	goesOn         = unnamed{groups: []rowGroup{paused, notEnded}}
	stillRuns      = unnamed{groups: []rowGroup{notEnded}}
	ends           = unnamed{groups: []rowGroup{notEnded}, final: true, question: "End %s for good?"}
)

// atMost checks the arguments of a command that may name no loop: there are no more than n.
func atMost(n int) cobra.PositionalArgs { return arguments(0, n) }

// naming wraps the function of a command whose first argument is a loop. If there is none, it is this folder's loop.
func (a *app) naming(u unnamed, do func(context.Context, []string) error) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			return do(ctx, args)
		}
		id, err := a.folderLoop(ctx, u)
		if err != nil {
			return err
		}
		return do(ctx, []string{id})
	}
}

// folderLoop returns the loop that a command means which names none, and says which one that is.
func (a *app) folderLoop(ctx context.Context, u unnamed) (id string, err error) {
	project, err := userrepo.ProjectOf(ctx, ".")
	if err != nil {
		return "", usage("this folder is in no repository, so name the loop; `pawl list` shows the IDs")
	}
	var rows []launch.Row
	err = a.visit(ctx, func(s *session) (err error) {
		rows, err = s.Listed(ctx)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("finding this folder's loops: %w", err)
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(r launch.Row) bool { return !project.Has(r.Repo) })
	candidates, words := u.candidates(rows)
	if len(candidates) == 0 {
		wanted := u.groups[0].words
		return "", usage(fmt.Sprintf("this folder's repository has no %s, so name one; `pawl list` shows the IDs", wanted))
	}
	latest := candidates[0]
	a.say("%s", render.Clean(meantLoop(latest.Loop, words, len(candidates))))
	return latest.Loop, a.agreesTo(ctx, u, candidates)
}

// candidates returns the rows of the first group that has any, in their order, and the words for one of them.
func (u unnamed) candidates(rows []launch.Row) (found []launch.Row, words string) {
	for _, group := range u.groups {
		for _, r := range rows {
			if group.fits(r) {
				found = append(found, r)
			}
		}
		if len(found) > 0 {
			return found, group.words
		}
	}
	return nil, ""
}

// meantLoop says which loop a command is about that names none.
func meantLoop(id, words string, n int) string {
	if n == 1 {
		return fmt.Sprintf("%s, this folder's only %s", id, words)
	}
	return fmt.Sprintf("%s, the latest of this folder's %s", id, metric.Counted(n, words))
}

// agreesTo asks a person before a command that can't be undone is sent to a loop that nobody named.
func (a *app) agreesTo(ctx context.Context, u unnamed, candidates []launch.Row) error {
	several := len(candidates) > 1
	mustAsk := u.final && (several || u.question != "")
	switch {
	case !mustAsk:
		return nil
	case a.terminal() && !a.json:
		question := u.question
		if question == "" {
			question = "Do you mean %s?"
		}
		return a.askAbout(ctx, nil, "", nil, fmt.Sprintf(question, render.Clean(candidates[0].Loop)), "nothing was sent")
	case several:
		ids := list.Map(candidates, func(r launch.Row) string { return r.Loop })
		return usage("name the loop: this can't be undone, and there are " + render.Clean(strings.Join(ids, ", ")))
	}
	return nil
}
