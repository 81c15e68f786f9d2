package render

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec/kind"
)

// State renders the state of a loop of a kind for people. First comes what it waits for and how to answer.
func (s Style) State(k kind.Kind, st loop.State, now time.Time) string {
	var b strings.Builder
	if st.Gate != nil {
		b.WriteString(s.Gate(st.Loop, *st.Gate, st.Budget, now) + "\n\n")
	}
	f := s.fields(12)
	f.add("loop", Clean(st.Loop)+" ("+st.Kind+")")
	title, _, _ := strings.Cut(strings.TrimLeft(st.Goal, "# "), "\n") // of an issue, whose text is long
	f.add("goal", Clean(title))
	because, next := ending(st)
	f.add("status", s.status(st.Status)+because, next)
	if l := st.Sleep; l != nil {
		f.add("asleep", "until "+s.when(l.Until)+" ("+Duration(max(l.Until.Sub(now), 0))+"); "+Clean(l.String()), "continues by itself, or at once: pawl continue "+shell.Quote(st.Loop))
	}
	if !st.Status.Ended() {
		f.add("refused", s.refusing(st, now)...)
		f.add("phase", st.Doing()+above(1, ", attempt ", st.Attempt, ""))
		f.add("requested", requested(st)...)
	}
	for _, figure := range k.Figures {
		f.add(row(figure, st))
	}
	f.add("candidates", candidates(st.Candidates, st.Status.Ended())...)
	if st.Plan != nil {
		f.add("plan", digest(st.Plan.Hash)+", fixed once the contract is approved")
	}
	f.add("exploring", exploring(st)...)
	if shown := st.Shown(); shown != nil {
		best := shown.String()
		if st.Baseline != nil {
			best += " (baseline " + st.Baseline.String() + ", delta " + change(shown.Sub(*st.Baseline), *st.Baseline) + ")"
		}
		f.add("best", best)
	}
	if st.Suspicious+len(st.SetAside) > 0 {
		f.add("suspicious", list.Map(rules.SuspicionPoints(st), Clean)...)
	}
	if st.Claim != nil {
		f.add("claim", claimed(*st.Claim)...)
	}
	f.add("checked", again(st.Scratch))
	f.add("noise", Clean(st.Noise))
	f.add("budget", s.budget(st.Budget)...)
	f.add("spent", spent(st.Usage))
	f.add("branch", Around("", Clean(branchName(st.Branch)), " at "+Short(st.Head)))
	f.add("repository", Clean(st.Repo))
	f.add("changed", first(maxChanged, st.ChangedFiles, st.ChangedFilesCount, "  "))
	if st.Contract != nil {
		approved := digest(st.Contract.Hash)
		if st.Contract.ApprovedAt != nil {
			approved += ", approved by " + Clean(cmp.Or(st.Contract.ApprovedBy, "–")) + " on " + s.when(*st.Contract.ApprovedAt)
			if st.Steward != "" && strings.HasPrefix(st.Contract.ApprovedBy, loop.StewardName(st.Steward)) {
				approved += ", as the loop's session says"
			}
		}
		f.add("contract", approved)
	}
	if p := st.Proposal; p != nil {
		f.add("proposal", Proposal(*p))
		f.commands("", f.beside(proposalNext(st.Loop, *p))...)
	}
	if !st.Status.Ended() { // then its trees are gone
		f.add("desk", Clean(st.Desk))
	}
	f.add("host", st.Host)
	f.add("ledger", Short(st.Ledger))
	f.add("started", s.when(st.StartedAt))
	b.WriteString(f.String())
	if len(st.Iterations) > 0 {
		b.WriteString("\n\n" + s.Bold("Iterations") + more(st.KeptCount+st.Discarded, len(st.Iterations)))
		for _, iter := range st.Iterations {
			b.WriteString("\n" + s.Iteration(k, iter))
		}
	}
	return b.String()
}

// requested returns what people have asked of a loop that has not happened yet.
func requested(st loop.State) (lines []string) {
	paused := st.Gate != nil && (st.Gate.Kind == loop.GatePause || st.Gate.Kind == loop.GateBreakpoint)
	if st.PauseRequested && (!paused || st.PauseAt == loop.PauseIteration) {
		line := "a pause"
		switch {
		case st.PauseAt != loop.PauseNow:
			line += " before the next " + st.PauseAt
		case st.Gate != nil:
			line += " if the loop goes on"
		}
		lines = append(lines, line+Around(", by ", Clean(st.PausedBy), ""))
	}
	if n := len(st.Guidance); n > 0 {
		lines = append(lines, plural(n, "note")+" for the next agent call")
	}
	return lines
}

// refusing returns the agents that are not called first for a while.
func (s Style) refusing(st loop.State, now time.Time) (lines []string) {
	for _, agent := range slices.Sorted(maps.Keys(st.Refusing)) {
		if refusedUntil := st.Refusing[agent]; refusedUntil.After(now) {
			lines = append(lines, Clean(agent)+", which is not called first until "+s.when(refusedUntil))
		}
	}
	return lines
}

func (s Style) status(status loop.Status) string {
	color := map[loop.Status]string{
		loop.Completed: green, loop.Failed: red, loop.Halted: yellow,
		loop.Waiting: yellow, loop.Sleeping: yellow, loop.Paused: yellow, loop.Blocked: red,
	}[status]
	return s.paint(color, string(status))
}

// ending returns why a loop has ended, and what to do if it did not end as it should.
func ending(st loop.State) (because, next string) {
	if !st.Status.Ended() {
		return "", ""
	}
	if because = note(st.Reason); st.ErrorCode != "" {
		because, next = because+" ("+st.ErrorCode+")", Clean(st.Recovery)
	}
	return because, next
}

// budget returns a line for each limited resource.
func (s Style) budget(b loop.Budget) []string {
	var lines []string
	for _, r := range loop.Resources {
		if a, ok := b[r]; ok && a.Limit != nil {
			lines = append(lines, pad(string(r), 11)+amountShort(r, a.Used)+" of "+amountShort(r, *a.Limit))
		}
	}
	return lines
}

func amountShort(r loop.Resource, n metric.Decimal) string {
	switch r {
	case loop.ActiveTime, loop.WallClock:
		return whole(millis(n.Float()))
	case loop.CostUSD:
		return "$" + n.String()
	}
	return n.String()
}

// maxChanged is how many changed files are named.
const maxChanged = 5

func more(total, shown int) string {
	if total <= shown {
		return ""
	}
	return " (the last " + itoa(shown) + " of " + itoa(total) + ")"
}
