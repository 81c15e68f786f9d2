package render

import (
	"cmp"

	"pawl/internal/loop"
)

// candidates returns a line for each candidate that no iteration has taken. hasEnded says that none will take them.
func candidates(list []loop.Candidate, hasEnded bool) (lines []string) {
	for _, c := range list {
		origin := madeOf(c)
		if hasEnded && !c.Made {
			origin = "was not made"
		}
		lines = append(lines, itoa(c.N)+": "+origin+note(loop.Clip(cmp.Or(c.Description, c.Idea), 100)))
	}
	return lines
}

// madeOf returns how far a candidate is.
func madeOf(c loop.Candidate) string {
	switch {
	case !c.Made:
		return "its agent is at work"
	case c.Failed != "":
		return "its agent failed"
	case c.Lies:
		return "made, to be looked at before it is committed"
	case c.Triable():
		return "made, to be judged"
	case c.Trial == nil:
		return "nothing was changed"
	}
	return tried(*c.Trial)
}

// tried returns the result of a trial.
func tried(t loop.Trial) string {
	text := "would be discarded"
	if t.Passed {
		text = "would be kept"
	}
	return text + Around(" (", Clean(t.Reason), ")") + known(", ", t.Metric, "")
}

// candidate describes an event of a candidate, and says whether it is of note.
func candidate(e loop.Event) (text string, ofNote bool) {
	c := e.Candidate
	if c == nil {
		return "", false
	}
	name := "candidate " + itoa(c.N)
	switch e.Type {
	case loop.CandidateBegun:
		return name + " of " + itoa(c.Of) + " is being made" + note(Clean(c.Idea)), false
	case loop.CandidateMade:
		return name + " " + madeOf(*c) + note(Clean(c.Description)), true
	case loop.CandidateJudged:
		text = name + " was judged"
		if c.Trial != nil {
			text = name + " " + tried(*c.Trial)
		}
		return text + note(Clean(c.Description)), true
	case loop.CandidateDropped:
		return name + " is not made" + note(e.Reason), true
	case loop.CandidateTaken:
		return "takes " + name + note(Clean(c.Description)), false
	}
	return name + " conflicts with what was kept since: both change " + Clean(e.Reason), true
}
