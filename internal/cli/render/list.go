package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pawl/internal/client/launch"
	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// List renders loops as a table, with how long each has run and what it has cost, as far as this host's ledger says.
func (s Style) List(rows []launch.Row, now time.Time) string {
	var cells [][]string
	for _, r := range rows {
		doing := r.Phase
		switch {
		case r.Trouble != "":
			doing = "in trouble"
		case r.Gate != "":
			doing = "waits: " + r.Gate + above(0, " and ", r.Gates-1, " more")
		case loop.Status(r.Status) == loop.Sleeping:
			doing += ", its agent's provider refuses work"
		case loop.Status(r.Status).Ended() && r.Proposal != "":
			doing = "proposal " + r.Proposal
		case r.Reason != "":
			reason, _, _ := strings.Cut(r.Reason, "\n")
			doing = Clean(loop.Clip(reason, 60))
		case loop.Status(r.Status).Ended():
			doing = ""
		}
		best := known("", r.Best, "")
		started, took := "", ""
		if r.StartedAt != nil {
			started = ago(now.Sub(*r.StartedAt))
			if r.EndedAt != nil || !loop.Status(r.Status).Ended() {
				took = Duration(cmp.Or(r.EndedAt, &now).Sub(*r.StartedAt))
			}
		}
		cost, tokens := "", ""
		if u := r.Usage; u != nil && u.CostUSD.Sign() > 0 {
			cost = "$" + u.CostUSD.String()
		}
		if u := r.Usage; u != nil && u.InputTokens+u.OutputTokens > 0 {
			tokens = loop.Count(u.InputTokens + u.OutputTokens).String()
		}
		iteration := itoa(r.Iteration)
		if r.Steward() { // a steward has no usage
			iteration = ""
		}
		cells = append(cells, []string{Clean(r.Loop), r.Status, doing, iteration, best, cost, tokens, took, started, purpose(r)})
	}
	head := []string{"LOOP", "STATUS", "DOING", "ITERATION", "BEST", "COST", "TOKENS", "TIME", "STARTED", "GOAL"}
	for _, name := range []string{"DOING", "ITERATION", "BEST", "COST", "TOKENS", "TIME"} { // an empty column is left out
		index := slices.Index(head, name)
		if slices.ContainsFunc(cells, func(row []string) bool { return row[index] != "" }) {
			continue
		}
		head = slices.Delete(head, index, index+1)
		for i := range cells {
			cells[i] = slices.Delete(cells[i], index, index+1)
		}
	}
	text := s.table(head, cells, "TOKENS", "COST", "TIME", "ITERATION", "BEST", "STARTED", "GOAL")
	for _, r := range rows {
		if r.Trouble != "" {
			text += "\n" + s.Trouble(r.Loop, r.Trouble)
		}
		if len(r.Mended) > 0 {
			text += "\n" + s.mendedLast(r.Loop, r.Mended)
		}
	}
	return text
}

// purpose returns what a row is there for: the goal of a loop, or the tasks of a steward and its mode.
func purpose(r launch.Row) string {
	t := r.Tasks
	if t == nil {
		return Clean(r.Goal)
	}
	if t.All == 0 {
		return "no tasks yet" + otherMode(r.Mode)
	}
	return fmt.Sprintf("%d of %s done", t.Done, plural(t.All, "task")) + above(0, ", ", t.Cancelled, " cancelled") + otherMode(r.Mode)
}

// otherMode returns the mode of a steward that does not execute tasks.
func otherMode(mode string) string {
	if mode == "" || mode == spec.ModeMission {
		return ""
	}
	return ", mode " + mode
}

// ago returns how long ago something was, as a list says it: in the largest unit only.
func ago(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return itoa(int(d/time.Minute)) + " min ago"
	case d < day:
		return itoa(int(d/time.Hour)) + " h ago"
	case d < 2*day:
		return "1 day ago"
	}
	return itoa(int(d/day)) + " days ago"
}

// Ago returns how long before now something was, "" if that is not known.
func Ago(when, now time.Time) string {
	if when.IsZero() {
		return ""
	}
	return ago(now.Sub(when))
}

// Trouble renders what keeps a loop from continuing.
func (s Style) Trouble(loop, text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return s.paint(red, "trouble") + "  " + Clean(loop) + ": " + Clean(first)
}

// Mended renders what was damaged in a loop and is mended, one line each, "" for nothing.
func (s Style) Mended(texts []string) string {
	return strings.Join(list.Map(texts, func(line string) string { return s.paint(yellow, "mended") + "  " + Clean(line) }), "\n")
}

// mendedLast renders the last mending, and how many came before.
func (s Style) mendedLast(loop string, texts []string) string {
	earlier := above(0, " (and ", len(texts)-1, " before: pawl show "+shell.Quote(loop)+")")
	return s.paint(yellow, "mended") + "  " + Clean(loop) + ": " + Clean(texts[len(texts)-1]) + earlier
}
