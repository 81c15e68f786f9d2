package loop

import (
	"slices"

	"pawl/internal/lib/list"
	"pawl/internal/metric"
)

// Backtrack is the memory of a loop that may continue from an earlier commit than its head (limits.backtrack): the
// tree of its kept changes, and the branch that it explores.
type Backtrack struct {
	Kept     []Node  `json:"kept,omitempty"`   // the last KeepCommits, including those that are not in the head
	Branch   *Branch `json:"branch,omitempty"` // nil while the loop continues from its head
	Begun    int     `json:"begun,omitempty"`  // how many branches so far
	Compared int     `json:"compared,omitempty"`
	// Since is the number of discards in a row when the last branch ended. Only later discards make a plateau.
	Since int `json:"since,omitempty"`
}

// Node is a kept change, in the tree of kept changes.
type Node struct {
	Iteration   int    `json:"iteration"`
	On          int    `json:"on,omitempty"` // the iteration of the kept change before it; 0 is the baseline
	Commit      string `json:"commit"`
	Tree        string `json:"tree,omitempty"`
	Description string `json:"description"`
	Suspicious  bool   `json:"suspicious,omitempty"`
	Flaky       bool   `json:"flaky,omitempty"`
	Vanished    string `json:"vanished,omitempty"`
	// Metric is the mean of fresh samples if the metric varies, and nil if verify is another command now.
	Metric *metric.Decimal `json:"metric,omitempty"`
	Count  int             `json:"count"`          // how many kept changes there are from the baseline up to this one
	Left   int             `json:"left,omitempty"` // how often the loop left it, because it found nothing more from it
}

// Branch is a line of changes that continues from an earlier commit than the loop's head. Either it becomes the head,
// or the loop returns to its earlier head.
type Branch struct {
	N    int `json:"n"`    // its number in the loop, from 1
	From int `json:"from"` // the kept change from which it continues
	// Compared is the last kept change of the branch whose fresh pairs of samples did not show it to be better than
	// the head.
	Compared int `json:"compared,omitempty"`

	// The values to which the loop returns.
	Head          string          `json:"head"`
	Best          *metric.Decimal `json:"best"`
	BestIteration int             `json:"bestIteration,omitempty"`
	KeptCount     int             `json:"keptCount"`
	Discards      int             `json:"discards"` // in a row, when the branch began
	Begun         int             `json:"begun"`    // the last iteration before it
}

// Exploring returns the branch that the loop explores, nil if it continues from its head.
func (s State) Exploring() *Branch {
	if s.Backtrack == nil {
		return nil
	}
	return s.Backtrack.Branch
}

// HeadBest returns the metric of the loop's head. While the loop explores a branch, that is the earlier head. It is
// nil before the baseline is measured.
func (s State) HeadBest() *metric.Decimal {
	if b := s.Exploring(); b != nil {
		return b.Best
	}
	return s.Best
}

// Reached returns what the loop has reached: HeadBest, but the baseline while nothing is kept. Further samples of the
// unchanged code are the reference for changes, and no gain.
func (s State) Reached() *metric.Decimal {
	if s.KeptCount == 0 && s.Exploring() == nil && s.Baseline != nil {
		return s.Baseline
	}
	return s.HeadBest()
}

// Shown returns the metric of the head for people. A change that was just kept has the one by which it was chosen until
// fresh samples have its own; decisions wait for those.
func (s State) Shown() *metric.Decimal {
	if s.Selected != nil && s.Exploring() == nil {
		return s.Selected
	}
	return s.Reached()
}

// Forked returns the branch that would continue from a kept change. It does not begin the branch.
func (s State) Forked(node Node) Branch {
	return Branch{
		N: s.Backtrack.Begun + 1, From: node.Iteration, Head: s.Head, Best: s.Best, BestIteration: s.BestIteration,
		KeptCount: s.KeptCount, Discards: s.DiscardsInARow, Begun: s.Iteration,
	}
}

// Judgements returns how many verdicts there were on changes and on branches.
func (s State) Judgements() int {
	n := s.KeptCount + s.Discarded
	if s.Backtrack != nil {
		n += s.Backtrack.Compared
	}
	return n
}

// Node returns the kept change of an iteration, and whether it is remembered.
func (b Backtrack) Node(iteration int) (Node, bool) {
	return list.First(b.Kept, func(n Node) bool { return n.Iteration == iteration })
}

// Line returns the kept changes from the baseline to one of them, as far as they are remembered.
func (b Backtrack) Line(iteration int) (line []Node) {
	for {
		n, ok := b.Node(iteration)
		if !ok {
			slices.Reverse(line)
			return line
		}
		line = append(line, n)
		iteration = n.On
	}
}

// Without returns the kept changes of the head that a branch leaves and that the branch does not have.
func (b Backtrack) Without(branch Branch) (missing []Node) {
	have := b.Line(branch.From)
	return list.Filter(b.Line(branch.BestIteration), func(n Node) bool {
		return !slices.ContainsFunc(have, func(node Node) bool { return node.Iteration == n.Iteration })
	})
}

// backtrack changes the memory of a loop that has one. Older states keep theirs.
func (s *State) backtrack(do func(*Backtrack)) {
	if s.Backtrack == nil {
		return
	}
	next := *s.Backtrack
	next.Kept = slices.Clone(next.Kept)
	if next.Branch != nil {
		next.Branch = new(*next.Branch)
	}
	do(&next)
	s.Backtrack = &next
}

// node changes what is remembered about the kept change at the head.
func (s *State) node(do func(*Node)) {
	s.backtrack(func(b *Backtrack) {
		if i := slices.IndexFunc(b.Kept, func(n Node) bool { return n.Iteration == s.BestIteration }); i >= 0 {
			do(&b.Kept[i])
		}
	})
}

// keptOn remembers a kept change and the kept change before it.
func (s *State) keptOn(base int, e Event) {
	s.backtrack(func(b *Backtrack) {
		b.Since = 0
		b.Kept = list.Last(append(b.Kept, Node{
			Iteration: e.Record.N, On: base, Commit: e.Record.Commit, Tree: e.Record.Tree, Description: Clip(e.Record.Description, 200),
			Metric: e.Metric, Count: s.KeptCount, Suspicious: e.Record.Suspicious, Flaky: len(e.Record.Flaky) > 0,
			Vanished: e.Record.Vanished,
		}), KeepCommits)
	})
}

// measured records the metric of the head.
func (s *State) measured(best metric.Decimal) { s.node(func(n *Node) { n.Metric = &best }) }

// measuredAnew removes the metrics of all kept changes except the head's: another command measures now.
func (s *State) measuredAnew() {
	s.backtrack(func(b *Backtrack) {
		for i := range b.Kept {
			b.Kept[i].Metric = nil
		}
	})
	if s.Best != nil {
		s.measured(*s.Best)
	}
}

// goOn makes the loop continue from a kept change. Of the kept changes only those on its line still count.
func (s *State) goOn(head string, base, count int, best *metric.Decimal) {
	s.node(func(n *Node) { n.Left++ })
	s.Head, s.LastChange, s.Alike = head, nil, ""
	s.Best, s.BestIteration = best, base
	s.KeptCount, s.Discarded = count, s.Discarded+s.KeptCount-count
	s.Kept = append([]Kept{}, list.Map(s.Backtrack.Line(base), func(n Node) Kept {
		return Kept{Iteration: n.Iteration, Commit: n.Commit, Description: n.Description, Suspicious: n.Suspicious, Flaky: n.Flaky, Vanished: n.Vanished}
	})...)
}

// branch makes the loop continue from an earlier commit.
func (s *State) branch(e Event) {
	node, ok := s.Backtrack.Node(e.Branch.From)
	if !ok {
		return
	}
	s.goOn(e.Head, node.Iteration, node.Count, node.Metric)
	s.backtrack(func(b *Backtrack) {
		b.Branch, b.Begun = new(*e.Branch), e.Branch.N
	})
}

// giveUpBranch makes the loop return to its earlier head. Changes that the branch kept no longer count, and its
// iterations count as discards.
func (s *State) giveUpBranch(e Event) {
	left := s.Exploring()
	if left == nil {
		return
	}
	s.goOn(e.Head, left.BestIteration, left.KeptCount, left.Best)
	s.DiscardsInARow = left.Discards + s.Iteration - left.Begun
	s.backtrack(func(b *Backtrack) { b.Branch, b.Since = nil, s.DiscardsInARow })
}
