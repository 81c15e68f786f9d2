package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/loop"
)

// summaryLines is how many lines of summaryWidth columns the summary of a contract has at most, besides notes and what
// the sandbox lacks.
const (
	summaryLines = 20
	summaryWidth = 80
)

// ContractSummary renders a contract on one screen: what a person decides about. whole says how to see the rest, "" if
// the question below says that. Values that are too long are cut, and end in "…". What the sandbox lacks is never cut.
func (s Style) ContractSummary(c Contract, whole string) string {
	title := s.Hang(s.Bold("Contract of "+Clean(c.Loop))+s.Dim(Around("  (", whole, ")")), 2)
	rows := s.summaryRows(c)
	fit(rows, s.summaryLimit(rows)-1)

	f := s.fields(10)
	for _, row := range rows {
		f.add(row.name, row.lines...)
	}
	return title + "\n" + f.String()
}

// summaryLimit returns how many lines a summary of some rows has at most. A narrow terminal gets more lines, and those
// that are never cut do not count there.
func (s Style) summaryLimit(rows []summaryRow) int {
	limit := s.ofWidth(summaryLines)
	if limit == summaryLines {
		return limit
	}
	for _, row := range rows {
		if row.text == "" {
			limit += row.height()
		}
	}
	return limit
}

// ofWidth returns how many lines of this width hold as much as some lines of the summary's width.
func (s Style) ofWidth(lines int) int {
	if s.Width < 1 || s.Width >= summaryWidth {
		return lines
	}
	return lines * summaryWidth / s.Width
}

// summaryRow is a field of a summary, broken into lines.
type summaryRow struct {
	name  string
	lines []string
	text  string // what lines show, if they may be cut
	tail  string // the end of text, which stays
	width int
}

// height returns how many lines of the screen a row takes.
func (r summaryRow) height() int { return height(r.lines, r.width) }

// height returns how many lines of the screen some lines take: the terminal wraps an address that is too long for one.
func height(lines []string, width int) int {
	total := 0
	for _, line := range lines {
		total += max(1, (columns(strip(line))+width-1)/width)
	}
	return total
}

// fit shortens rows until they have at most limit lines: the longest one first, the lowest one of several.
func fit(rows []summaryRow, limit int) {
	for {
		total, longest := 0, -1
		for i, row := range rows {
			height := row.height()
			total += height
			if row.text == "" || height < 2 {
				continue
			}
			if longest < 0 || height >= rows[longest].height() {
				longest = i
			}
		}
		if total <= limit || longest < 0 {
			return
		}
		rows[longest].shorten(rows[longest].height() - 1)
	}
}

// shorten makes a row n lines long, if it is longer. What is cut ends in "…".
func (r *summaryRow) shorten(n int) {
	if r.height() <= n {
		return
	}
	tail := wrap(strings.TrimLeft(r.tail, " ;—"), r.width)
	if r.tail == "" {
		tail = nil
	}
	kept := wrapProse(r.text, r.width, r.width)
	for len(kept) > 0 && height(kept, r.width) > n-len(tail) {
		kept = kept[:len(kept)-1]
	}
	if len(kept) > 0 && columns(kept[len(kept)-1]) > r.width { // an address stays whole
		kept[len(kept)-1] += " …"
		r.lines = append(kept, tail...)
		return
	}
	if len(tail) < n {
		r.lines = append(cutLines(wrap(r.text, r.width), n-len(tail), r.width), tail...)
		return
	}
	room := r.width - columns(r.tail) - 2
	text := clip(r.text, max(10, room))
	if text != r.text {
		text = strings.TrimRight(text, " …") + " …"
	}
	r.lines = []string{clip(text+r.tail, r.width)}
}

// cutLines returns the first n of some lines. The last one says that there are more.
func cutLines(lines []string, n, width int) []string {
	kept := slices.Clone(lines[:min(n, len(lines))])
	last := kept[len(kept)-1]
	if columns(last) > width-2 {
		last = strings.TrimRight(strings.TrimSuffix(clip(last, width-2), "…"), " ")
	}
	kept[len(kept)-1] = last + " …"
	return kept
}

// longestRow is how many lines of the summary's width a value has at most, even if there is room for more.
const longestRow = 3

func (s Style) summaryRows(c Contract) (rows []summaryRow) {
	width := s.Width - 15 // of a value, which stands behind the names
	addWith := func(name, text, tail string) {
		if text == "" {
			return
		}
		row := summaryRow{name: name, lines: wrapProse(text+tail, width, width), text: text, tail: tail, width: width}
		row.shorten(s.ofWidth(longestRow))
		rows = append(rows, row)
	}
	add := func(name, text string) { addWith(name, text, "") }
	addWhole := func(name string, texts ...string) {
		var lines []string
		for _, text := range texts {
			if text != "" {
				lines = append(lines, wrapProse(text, width, width)...)
			}
		}
		if len(lines) > 0 {
			rows = append(rows, summaryRow{name: name, lines: lines, width: width})
		}
	}

	sp := c.Spec
	add("goal", Clean(running(strings.TrimLeft(sp.Goal, "# "))))
	add("repository", joined(", ", Clean(cmp.Or(c.Repo, sp.Repo.Path)), Around("branch ", Clean(sp.Repo.Base), " ")+"at "+Short(c.Contract.Base))+
		Around("; the work is on ", Clean(branchName(c.Branch)), ""))
	addWith("scope", Clean(strings.Join(sp.Scope, "  ")), scopeCount(c))
	if c.Plan != nil {
		add("plan", Clean(running(c.Plan.Text))+" (SHA-256 "+Short(digest(c.Plan.Hash))+")")
	}
	add("setup", onLine(sp.Setup.Command))
	if c.Kind.Tests {
		test, tested := "not required: the tests are skipped", ""
		if sp.TestRequired() {
			test, tested = onLine(sp.Test.Command), Around(" — ", joined(", ", Clean(c.TestsRun), Around("measured by pawl validate ", c.Age, "")), "")
		}
		addWith("test", test, tested)
	}
	if sp.Verify.Command != "" {
		addWith("verify", onLine(sp.Verify.Command), " — "+verified(c.Kind, sp.Verify))
	}
	if criteria := criteria(s, sp); len(criteria) > 0 {
		add("criteria", itoa(len(criteria)-1)+", which the reviewer ticks off with evidence")
	}
	addWith("guard", onLine(sp.Guard.Command), Around(" — ", joined(", ", Clean(c.Tested), Around("measured by pawl validate ", c.guardAge(), "")), ""))
	add("check", onLine(sp.Check.Command))
	add("sealed", sealedCount(c.Contract.Sealed))
	addWith("agent", strings.Join(agents(sp), "; "), Around("; tools: ", Clean(strings.Join(c.Contract.Tools, " ")), ""))
	add("budgets", joined("; ", budgets(sp.Limits), Around("stops after ", stops(c.Kind, sp.Limits), "")))
	add("asks", strings.Join(asks(sp), "; "))
	if c.Kind.Reference {
		addWith("baseline", joined(" ", number(c.Baseline), Clean(c.Spread)), Around(", measured by pawl validate ", c.Age, ""))
		add("holdout", onLine(sp.Verify.Holdout.Command))
		add("metrics", strings.Join(bounds(sp.Metrics), "; "))
	}
	add("tells", strings.Join(told(sp.Notify), "; "))
	add("started by", strings.Join(s.steward(sp), "; "))
	addWhole("granted", slices.Concat(environment(sp, nil), granted(sp), []string{titled("may write ", sp.Sandbox.Allow, "  ")})...)
	rows = append(rows, s.sandboxRow(c, width))
	addWhole("hash", c.Contract.Hash)
	return rows
}

// running returns prose of several lines on one.
func running(text string) string { return strings.Join(strings.Fields(text), " ") }

// onLine returns a text of several lines on one, with its breaks written out.
func onLine(text string) string { return strings.Join(written(text), `\n`) }

// scopeCount returns how many files may change, and whether new ones may be added.
func scopeCount(c Contract) string {
	count := ""
	switch {
	case c.InScope == 0:
		count = " (no file yet)"
	case c.InScope > 0:
		count = " (" + plural(c.InScope, "file") + ")"
	}
	return count + ", new files: " + c.Spec.NewFiles
}

// sealedCount returns what judges the work and can't change: a few files by their names, everything else as a number.
func sealedCount(seals []loop.Seal) string {
	if len(seals) == 0 {
		return "nothing"
	}
	var files []string
	outside := 0
	for _, seal := range seals {
		switch seal.Names {
		case "":
			files = append(files, seal.Path)
		case loop.SealOutside:
			outside++
		}
	}
	named := Clean(strings.Join(files, "  "))
	if len(files) > fewSealed {
		named = plural(len(files), "file")
	}
	names := ""
	if n := len(seals) - len(files) - outside; n > 0 {
		names = plural(n, "name") + " of files that would change how commands run"
	}
	beyond := ""
	if outside > 0 {
		beyond = plural(outside, "file") + " outside of the repository"
	}
	return joined(", ", named, names, beyond)
}

// fewSealed is how many sealed files a summary names.
const fewSealed = 3

// sandboxRow is sandboxed as a row of a summary.
func (s Style) sandboxRow(c Contract, width int) summaryRow {
	row := summaryRow{name: "sandbox", width: width}
	for _, line := range s.sandboxed(c.Claims, c.Lacks, c.Protections) {
		row.lines = append(row.lines, wrapProse(line, width, width)...)
	}
	return row
}

// sandboxed says that the sandbox is full, or what it lacks. If that is not known, it repeats what the host said.
func (s Style) sandboxed(claims int, lacks, protections []string) []string {
	switch {
	case len(lacks) > 0:
		return list.Map(lacks, func(lack string) string { return s.paint(red, onLine(lack)) })
	case claims > 0:
		return []string{fmt.Sprintf("full (%d of %d claims hold, each tried on this machine)", claims, claims)}
	default:
		return s.protections(protections)
	}
}

// Notes renders what a person should know before approving a contract.
func (s Style) Notes(notes []string) string {
	var b strings.Builder
	for _, note := range notes {
		style := s
		style.Wrap = true
		b.WriteString(style.Hang(s.paint(yellow, "note: ")+Clean(note), len("note: ")) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
