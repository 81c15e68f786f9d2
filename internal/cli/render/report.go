package render

import (
	"strconv"
	"strings"

	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec/kind"
)

// Report renders the final report of a loop: the results of its tests, or the course of its metric.
func (s Style) Report(k kind.Kind, status loop.Status, r loop.Result, d Delivery) string {
	if k.Tests {
		return s.delivered(status, r, d)
	}
	return s.measured(status, r)
}

// measured renders the final report in the form of the source (P9), which says "1 iterations". A failed loop is not called complete.
func (s Style) measured(status loop.Status, r loop.Result) string {
	var b strings.Builder
	word := string(status)
	if status == loop.Completed {
		word = "complete"
	}
	delta, percent := "–", ""
	if r.Delta != nil && r.Baseline != nil {
		delta, percent = signed(*r.Delta), share(*r.Delta, *r.Baseline)
	}
	if r.Claim != nil && measuredAnew(*r.Claim) {
		b.WriteString(s.Bold("Claim: ") + strings.Join(claimed(*r.Claim), "\n  ") + "\n")
	}
	b.WriteString("Loop " + word + ": " + itoa(r.Iterations) + " iterations, " + itoa(r.KeptCount) + " kept, best metric: " +
		number(r.Best) + " (baseline: " + number(r.Baseline) + ", delta: " + delta + ")" + Around(", ", percent, "") + "\n")
	b.WriteString("Kept changes:")
	if len(r.Kept) == 0 {
		b.WriteString(" none")
	}
	b.WriteString("\n")
	if earlier := r.KeptCount - len(r.Kept); earlier > 0 && len(r.Kept) > 0 {
		b.WriteString("  (and " + itoa(earlier) + " before these)\n")
	}
	for _, k := range r.Kept {
		b.WriteString("  " + s.paint(green, Short(k.Commit)) + "  " + Clean(k.Description) + s.paint(yellow, marked(k)) + "\n")
	}
	for _, a := range r.SetAside {
		b.WriteString(s.paint(yellow, "Suspicious: ") + Clean(rules.SetAside(a)) + "\n")
	}
	b.WriteString("Discarded: " + itoa(r.Discarded) + " iterations")
	if left := candidates(r.Candidates, true); len(left) > 0 {
		b.WriteString("\nCandidates that no iteration has taken, and that are given up:\n  " + strings.Join(left, "\n  "))
	}
	b.WriteString(Around("\nRecommendation: ", r.Recommendation, meaning[r.Recommendation]))
	b.WriteString(Around("\nGuard: ", Clean(r.Tested.String()), ""))
	b.WriteString(s.paint(yellow, Around("\nVanished: ", Clean(loop.Vanished(r.Kept)), "")))
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		lines[i] = s.Hang(line, 4)
	}
	return strings.Join(lines, "\n")
}

// meaning says what follows from a recommendation.
var meaning = map[string]string{
	metric.Continue:    " (more iterations may gain more)",
	metric.Diminishing: " (more iterations would gain little)",
}

// marked returns the marks of a kept change: it improves too much in one step, or its guard passed only when run again.
func marked(k loop.Kept) string {
	switch {
	case k.Suspicious && k.Flaky:
		return " (suspicious, flaky guard)"
	case k.Suspicious:
		return " (suspicious)"
	case k.Flaky:
		return " (flaky guard)"
	}
	return ""
}

// claimed returns how much better the head is than the baseline, both measured after the end of the loop.
func claimed(c loop.Claim) (lines []string) {
	text := c.String()
	switch {
	case c.Pairs > 0:
	case c.Estimate == 0:
		return []string{"nothing was kept"}
	default:
		text += " (the baseline measured the same three times, so each change was measured once)"
	}
	lines = append(lines, text)
	if c.FalseKeeps > 0 {
		lines = append(lines, "kept by luck: "+strconv.FormatFloat(c.FalseKeeps, 'g', 2, 64)+" changes or fewer, if the machine is steady")
	}
	if c.Holdout != nil {
		lines = append(lines, "by the holdout: "+c.Holdout.String())
	}
	return lines
}

// again returns how the head was judged from scratch, "" if that was not necessary.
func again(v *loop.Scratch) string {
	if v == nil {
		return ""
	}
	const where = "again in a fresh clone: "
	switch {
	case !v.Judged:
		return where + "not judged: " + Clean(v.Reason)
	case v.Unproven:
		return where + "unproven: " + Clean(v.Reason)
	case !v.Passed:
		return where + "failed: " + Clean(v.Reason)
	}
	return where + "passes" + known(", ", v.Metric, "")
}

// measuredAnew reports whether a claim says more than baseline and best do.
func measuredAnew(c loop.Claim) bool { return c.Pairs > 0 || c.Holdout != nil }

// Places says where to find the results of a loop, and what to do with them.
type Places struct {
	Loop   string
	Repo   string // the user's repository
	Remote bool   // Repo is a URL: there is no folder in which to run git
	Branch string
	Base   string // commit
	Ledger string // ref in the user's repository
	Logs   string // folder
	UI     string // address of the loop in the Temporal UI

	Lacks string // why the repository lacks the branch as the loop has it, "" where it has it
	Store string // pawl's own repository, which always has the branch
}

// Ended renders how a loop ended, and where its work is.
func (s Style) Ended(status loop.Status, r loop.Result, p Places) string {
	f := s.fields(11)
	f.add("ended", string(status)+note(r.Reason)+Around(" (", r.ErrorCode, ")"), r.Recovery)
	if v := r.Scratch; v != nil && (!v.Judged || v.Unproven) {
		f.add("checked", again(v))
	}
	f.add("spent", spent(r.Usage))
	f.add("branch", Around("", Clean(branchName(p.Branch)), " in "+Clean(p.Repo)))
	gitCommand := "git -C " + shell.Quote(p.Repo) + " "
	give, manner := "to fetch it", gitCommand+"fetch "+shell.Quote(p.Store)+" "
	if p.Remote || p.Lacks != "" {
		gitCommand = "git -C " + shell.Quote(p.Store) + " "
	}
	if p.Remote {
		give, manner = "to push it", gitCommand+"push "+shell.Quote(p.Repo)+" "
	}
	if p.Lacks != "" {
		branch := "refs/heads/" + branchName(p.Branch)
		f.add("not there", Clean(p.Lacks), give+", once nothing is in the way:")
		f.commands("", manner+shell.Quote(branch+":"+branch)+" "+shell.Quote(p.Ledger+":"+p.Ledger))
	}
	if p.Ledger != "" && p.Repo != "" {
		f.commands("results", gitCommand+"show "+shell.Quote(p.Ledger+":loop-results.tsv"))
	}
	f.add("logs", Clean(p.Logs))
	f.add("Temporal UI", p.UI)
	applied := r.Proposal != nil && r.Proposal.State == rules.Applied
	if p.Branch != "" && p.Base != "" && r.KeptCount > 0 && !applied && (!p.Remote || p.Store != "") {
		span := Short(p.Base) + ".." + branchName(p.Branch)
		f.commands("next", gitCommand+"log --oneline "+shell.Quote(span), gitCommand+"diff "+shell.Quote(span))
	}
	if r.Proposal != nil {
		f.add("proposal", Proposal(*r.Proposal))
		f.commands("", f.beside(proposalNext(p.Loop, *r.Proposal))...)
	}
	f.commands("history", "pawl log "+shell.Quote(p.Loop))
	return f.String()
}

// Proposal returns a proposal in one line.
func Proposal(p loop.Proposal) string {
	text := digest(p.Hash) + ", " + p.State
	switch {
	case p.State == "applied":
		text += " to " + Clean(p.Branch) + " as " + Short(p.Commit)
	case p.By != "":
		text += " by " + Clean(p.By)
	}
	return text + ": " + plural(p.Files, "file") + ", +" + itoa(p.Insertions) + " -" + itoa(p.Deletions)
}

// proposalNext returns the commands for the next steps with a proposal.
func proposalNext(id string, p loop.Proposal) []string {
	id = shell.Quote(id)
	switch p.State {
	case "open":
		return []string{"pawl diff " + id, "pawl approve " + id + " --hash " + digest(p.Hash), "pawl apply " + id}
	case "approved":
		return []string{"pawl diff " + id, "pawl apply " + id}
	}
	return []string{"pawl diff " + id}
}
