package render

import "pawl/internal/loop"

// exploring returns from which earlier commit the loop continues, and what it can return to, if it explores a branch.
func exploring(st loop.State) []string {
	b := st.Exploring()
	if b == nil {
		return nil
	}
	line := "branch " + itoa(b.N) + ", which continues from iteration " + itoa(b.From)
	if n, ok := st.Backtrack.Node(b.From); ok {
		line += " (" + number(n.Metric) + "): " + Clean(loop.Clip(n.Description, 100))
	}
	return []string{line, "its best is " + number(st.Best) + "; it replaces the head only where it is better than " + number(b.Best)}
}

// branch describes an event of a branch.
func branch(e loop.Event) (text, color string) {
	b := e.Branch
	if b == nil {
		return "", ""
	}
	name := "branch " + itoa(b.N)
	switch e.Type {
	case loop.BranchBegun:
		return name + " continues from iteration " + itoa(b.From) + note(e.Reason), yellow
	case loop.BranchKept:
		return name + " replaces the head" + note(e.Reason), green
	case loop.BranchGivenUp:
		return name + " is given up, the loop returns to " + Short(b.Head) + note(e.Reason), ""
	}
	text = name + " was compared with the head that it left" + note(e.Reason)
	if j := e.Judgement; j != nil && j.Samples != nil {
		text += ", " + number(&j.Samples.Mean) + " against " + number(&j.Samples.Reference) + " by " + plural(j.Samples.Samples, "pair")
	}
	return text, ""
}
