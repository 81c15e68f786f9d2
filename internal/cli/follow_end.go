package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"pawl/activities/workspace"
	"pawl/internal/cli/render"
	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	hostworker "pawl/internal/worker"
)

// Outcome is what `pawl run --json` prints: how the loop ended, or what it waits for.
type Outcome struct {
	Loop   string       `json:"loop"`
	Run    string       `json:"run"`
	Status loop.Status  `json:"status"`
	Gate   *loop.Gate   `json:"gate"`
	Result *loop.Result `json:"result"`
	UI     string       `json:"ui,omitempty"`
}

func (f *follower) outcome(status loop.Status, r *loop.Result, g *loop.Gate) Outcome {
	run := ""
	if f.runToken != nil {
		run = f.runToken.GetRunID()
	}
	return Outcome{Loop: f.id, Run: run, Status: status, Gate: g, Result: r, UI: f.lasting()}
}

// lasting returns the loop's address in the Temporal UI, "" if the UI ends with this process.
func (f *follower) lasting() string {
	if f.s.engine != nil && f.s.engine.Owner() {
		return ""
	}
	return f.s.link(f.id)
}

// finish shows the last events and the report. Then it stays while other loops run in this worker.
func (f *follower) finish(ctx context.Context, e client.Ending) error {
	f.catchUp(ctx)
	f.screen.Still()
	f.showWarnings()
	if err := f.report(ctx, e); err != nil {
		return err
	}
	f.stay(ctx)
	return ended(e.Status, e.Code)
}

// catchUp reads what happened since the last news, from the ledger if the loop does not answer any more.
func (f *follower) catchUp(ctx context.Context) {
	if u, _ := f.s.News(ctx, f.id, f.seq); u != nil && u.Err == nil {
		_ = f.knows(u.State.Kind) // an unknown kind is no reason to show nothing
		f.show(u.Events)
		f.state = u.State
		return
	}
	if state, err := f.s.Recorded(ctx, f.id); err == nil && state.Seq > f.state.Seq {
		f.state = state
	}
}

func (f *follower) report(ctx context.Context, e client.Ending) error {
	if proposal := e.Result.Proposal; proposal != nil { // people may have said something about it since
		if p, ok, hasEnded, err := f.s.Proposed(ctx, f.id); err == nil && ok && hasEnded && p.Hash == proposal.Hash {
			e.Result.Proposal = &p
		}
	}
	if f.json {
		r := &e.Result
		if e.Lost != "" {
			r = nil
		}
		return f.printJSON(f.outcome(e.Status, r, nil))
	}
	if e.Lost != "" {
		f.say("the loop %s is over: %s (%s)", f.id, e.Lost, e.Code)
		return nil
	}
	if e.Status == loop.Failed && e.Result.Baseline == nil && e.Result.Iterations == 0 { // it never began
		f.explain(fault.New(e.Code, "%s", e.Result.Reason).Advise(e.Result.Recovery))
		return nil
	}
	style := f.style()
	if plots := f.screen.Style().Plots(f.course, f.further); len(plots) > 0 && f.kind.Reference {
		f.screen.Print("\n" + strings.Join(plots, "\n\n") + "\n\n")
	}
	return f.print(style.Report(f.kind, e.Status, e.Result, f.delivery) + "\n\n" + style.Ended(e.Status, e.Result, f.places(ctx, e.Result)))
}

func (f *follower) places(ctx context.Context, r loop.Result) render.Places {
	p := render.Places{Loop: f.id, Repo: f.state.Repo, Branch: r.Branch, Base: f.state.Footing(), UI: f.lasting()}
	if record, ok := f.s.Record(f.id); ok {
		p.Ledger, p.Logs, p.Store = record.Ledger, hostrecord.Steps(f.s.Home, record.Ref), record.Store
		p.Lacks, p.Remote = f.lacking(ctx, record), record.Remote
	}
	return p
}

// lacking returns why the repository lacks the loop's branch as it is now: a push after a refused one may have succeeded.
func (f *follower) lacking(ctx context.Context, r hostrecord.Record) string {
	if r.Branch == "" || r.Remote && f.unpushed == "" {
		return ""
	}
	s, err := client.OpenStore(ctx, r)
	if err != nil {
		return f.unpushed
	}
	ours, err := s.Ref(ctx, r.Branch)
	if err != nil || ours == "" {
		return f.unpushed
	}
	repo, err := workspace.RepositoryOf(r)
	if err != nil {
		return f.unpushed
	}
	defer repo.Close()
	refs, err := userrepo.Refs(ctx, s, repo, r.Branch)
	name := git.BranchName(r.Branch)
	theirs := refs[r.Branch]
	switch {
	case err != nil:
		return f.unpushed
	case theirs == ours:
		return ""
	case theirs == "":
		return "there is no branch " + name + render.Around(", and a push was refused: ", f.unpushed, "")
	}
	if behind, err := s.Contains(ctx, ours, theirs); err == nil && behind {
		return cmp.Or(f.unpushed, "the branch "+name+" is behind the loop's")
	}
	if r.Remote {
		return "somebody has moved the branch " + name + " there"
	}
	return fmt.Sprintf("somebody has moved the branch %s there: rename it (git -C %s branch -m %s %[3]s-moved)", name, shell.Quote(r.Repo), shell.Quote(name))
}

// stayEvery is how often a process that stays checks whether it still has to.
const stayEvery = 2 * time.Second

// stay keeps this process alive while other loops run in its worker that were begun since it started. Loops that wait for
// a person do not count. Older loops go on with the next worker: they must not hold this command.
func (f *follower) stay(ctx context.Context) {
	lastNames := ""
	for f.s.worker.polls.Load() {
		others := f.s.busy(ctx, f.id)
		if len(others) == 0 {
			return
		}
		if names := strings.Join(others, ", "); names != lastNames {
			lastNames = names
			f.say("%s in this process: %s. This process stays until then. Ctrl-C leaves, and `pawl up` resumes them", stillRunning(len(others)), names)
		}
		select {
		case <-f.deps.Signals:
			f.s.worker.stop(leaveTimeout)
			return
		case <-ctx.Done():
			return
		case <-time.After(stayEvery):
		}
	}
}

func stillRunning(n int) string {
	if n == 1 {
		return "one more loop still runs"
	}
	return fmt.Sprintf("%d more loops still run", n)
}

// busy returns the other loops of this host that run and wait for nobody.
func (s *session) busy(ctx context.Context, id string) []string {
	active, err := hostworker.ActiveLoops(ctx, s.Home, s.SDK, s.temporal.Namespace)
	if err != nil {
		s.logger.Warn("the loops of this host can't be listed", "error", err)
		return nil
	}
	records, err := hostrecord.List(s.Home)
	if err != nil {
		s.logger.Warn("the loops of this host can't be listed", "error", err)
		return nil
	}
	return slices.DeleteFunc(active, func(candidate string) bool {
		if candidate == id || older(records, candidate, s.worker.began) {
			return true
		}
		g, err := s.Gate(ctx, candidate)
		return err == nil && g != nil
	})
}

// older reports whether a loop was opened here before a time, and not since.
func older(records []hostrecord.Record, id string, began time.Time) bool {
	return !slices.ContainsFunc(records, func(r hostrecord.Record) bool { return r.Loop == id && r.OpenedAt.After(began) })
}

// lines returns a channel with the lines of a reader. The channel closes at the reader's end.
func (a *app) lines(reader io.Reader) chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		for scan := bufio.NewScanner(reader); scan.Scan(); {
			a.screen.Typed()
			out <- scan.Text()
		}
	}()
	return out
}
