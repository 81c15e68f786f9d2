// Package launch holds what Temporal knows about a loop, and how a loop answers queries: the ID under which it starts,
// where it resumes, its memo, its search attributes, and the types of its answers. Pure, so that commands, workers and
// workflows that start loops use the same values. It starts nothing. Start at Of.
package launch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode"

	"pawl/internal/lib/shell"
	"pawl/internal/lib/text/markdown"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/internal/steward/charter"
)

// TaskTimeout is below Temporal's ten seconds, because a worker that dies inside a workflow task costs this time.
const TaskTimeout = 2 * time.Second

// StewardTaskTimeout is longer: with a thousand tasks, a steward's history takes seconds to replay on a busy machine.
const StewardTaskTimeout = 5 * time.Second

// The most that a service accepts of a summary and of details, encoded, in bytes. It refuses a start with more.
const (
	maxSummary = 400
	maxDetails = 20000
)

// Start is what Temporal is told about a workflow when it starts.
type Start struct {
	ID      string
	Summary string // one line
	Details string // Markdown: what was asked for; fixed while the loop runs
	Memo    map[string]any
}

// Of returns how the loop of a spec starts under an ID. branch is the expected branch. If an earlier loop has that
// branch, the new one gets a suffix, and the loop corrects the memo.
func Of(id, branch string, sp spec.Spec) Start {
	goal, _, _ := strings.Cut(strings.TrimSpace(sp.Goal), "\n")
	return Start{
		ID:      id,
		Summary: fitting(maxSummary, 200, func(limit int) string { return markdown.Text(loop.Clip(goal, limit)) }),
		Details: fitting(maxDetails, 400, func(limit int) string { return details(id, sp, limit) }),
		Memo:    map[string]any{MemoGoal: loop.Clip(goal, 500), MemoBranch: branch, MemoStartedBy: sp.Session["user"], MemoRepo: sp.Repo.Address()},
	}
}

// StewardGoal is what lists show for a steward, in place of a loop's goal.
const StewardGoal = "supervises the loops of its project"

// OfSteward returns how the steward of a charter starts. person is who who starts it.
func OfSteward(c charter.Charter, person string) Start {
	return Start{
		ID: c.Name, Summary: StewardGoal,
		Details: fitting(maxDetails, 400, func(limit int) string {
			var w table
			fmt.Fprintf(&w, "Takes tasks, plans them, runs loops for them and asks people.\n\n| | |\n|---|---|\n")
			w.row("repository", c.Repo.Address(), limit)
			w.row("base", c.Repo.Base, limit)
			w.row("governance", strings.Join(c.Governance, ", "), limit)
			w.row("started by", person, limit)
			fmt.Fprintf(&w, "\nSee it with `pawl steward show %[1]s`, submit a task with `pawl steward submit %[1]s FILE`.\n", c.Name)
			return w.String()
		}),
		Memo: map[string]any{MemoGoal: StewardGoal, MemoStartedBy: person, MemoRepo: c.Repo.Address()},
	}
}

// The fields of the memo.
const (
	MemoGoal      = "goal"
	MemoBranch    = "branch"
	MemoStartedBy = "startedBy"
	MemoStatus    = "status" // how a loop or a steward ended that never opened: it has no attributes
	MemoRepo      = "repo"   // as the spec names it; once the loop has opened, its attribute says it
)

// Resume is the second, optional argument of a workflow: where it continues.
type Resume[C any] struct {
	// Ledger is a ledger commit in the store or the repository.
	Ledger string `json:"ledger,omitempty"`
	// Carry is what a run hands to the next one at continue-as-new.
	Carry *C `json:"carry,omitempty"`
}

// From resumes a workflow of any kind from a ledger commit.
func From(ledger string) Resume[struct{}] { return Resume[struct{}]{Ledger: ledger} }

// ID returns the ID under which a loop starts: the ID that was asked for, which must begin with the spec's name, else
// the name, else the repository's folder with suffix. If the name was used before, only the branch and the ledger get a
// suffix, not the ID.
func ID(sp spec.Spec, asked, suffix string) (string, error) {
	switch {
	case asked != "":
		if err := spec.ValidID(asked); err != nil {
			return "", err
		}
		if !strings.HasPrefix(asked, sp.Name) {
			return "", fmt.Errorf("%q does not begin with the spec's name, %s", asked, sp.Name)
		}
		return asked, nil
	case sp.Name != "":
		return sp.Name, nil
	}
	return Folder(sp.Repo, "loop") + "-" + suffix, nil
}

// Folder returns the name of a repository's folder as the beginning of an ID, or fallback if the name can't be one.
func Folder(repo spec.Repo, fallback string) string {
	folder := strings.Map(func(r rune) rune {
		switch {
		case r < ' ' || r == 0x7f:
			return -1
		case r > unicode.MaxASCII:
			return '-'
		}
		return r
	}, strings.TrimSuffix(strings.ToValidUTF8(path.Base(repo.Address()), ""), ".git"))
	folder = strings.TrimLeft(strings.TrimSpace(folder), "-./\\")
	folder = cmp.Or(folder, fallback)
	return strings.TrimSpace(loop.Clip(folder, 60))
}

// fitting returns a text that fits limit when it is encoded: it halves length until the text does.
func fitting(limit, length int, text func(limit int) string) string {
	for ; ; length /= 2 {
		if encoded, err := json.Marshal(text(length)); err == nil && len(encoded) <= limit || length < 2 {
			return text(length)
		}
	}
}

// details returns what was asked for, as Markdown, which needs no worker. The current details show what the loop does.
func details(id string, sp spec.Spec, limit int) string {
	var w table
	fmt.Fprintf(&w, "%s\n\n| | |\n|---|---|\n", markdown.Block(loop.Clip(strings.TrimSpace(sp.Goal), 4*limit)))
	row := func(name, value string) { w.row(name, value, limit) }
	row("kind", sp.Kind)
	row("repository", sp.Repo.Address())
	row("base", sp.Repo.Base)
	row("scope", strings.Join(sp.Scope, ", "))
	row("verify", sp.Verify.Command)
	row("guard", sp.Guard.Command)
	row("agent", called(sp.Agent))
	row("started by", sp.Session["user"])
	if steward := sp.Session[spec.SessionSteward]; steward != "" {
		plan := sp.Session[spec.SessionPlan] // the UI would cut the table off behind a whole hash
		approver := strings.Replace(rules.Approver(sp), plan, plan[:min(len(plan), 16)], 1)
		row("for", "the task "+sp.Session[spec.SessionTask]+" of "+approver+" (as its session says, nobody has checked it)")
	}
	row("from", strings.TrimPrefix(sp.Session["host"]+":"+sp.Session["cwd"], ":"))
	fmt.Fprintf(&w, "\nFollow it with %s and %s.\n", markdown.Code(shell.Join("pawl", "show", id)), markdown.Code(shell.Join("pawl", "log", "-f", id)))
	return w.String()
}

// called returns an agent's program as its spec calls it.
func called(a spec.Agent) string {
	command := cmp.Or(a.Command.Shell, shell.Join(a.Command.List...))
	switch {
	case a.Use == spec.UseCommand:
		return command
	case command == "":
		return a.Use
	}
	return a.Use + ": " + command
}

// table is Markdown with a table of two columns.
type table struct{ strings.Builder }

func (t *table) row(name, value string, limit int) {
	if value != "" {
		fmt.Fprintf(t, "| %s | %s |\n", name, markdown.Text(loop.Clip(value, limit)))
	}
}
