package loop

import (
	"slices"

	"pawl/internal/evidence"
)

// Backtrack is what a loop remembers that may go on from an earlier commit than its head (limits.backtrack): the tree of
// the changes that it has kept, and the branch that it explores.
type Backtrack struct {
	Kept     []Node  `json:"kept,omitempty"`   // the last KeepCommits, also those that the head does not have
	Branch   *Branch `json:"branch,omitempty"` // nil while the loop goes on from its head
	Begun    int     `json:"begun,omitempty"`  // branches so far
	Compared int     `json:"compared,omitempty"`
	// Since is how many discards in a row there were when the last branch ended: a plateau is what came after them.
	Since int `json:"since,omitempty"`
}

// Node is a change that was kept, in the tree of those.
type Node struct {
	Iteration   int    `json:"iteration"`
	On          int    `json:"on,omitempty"` // the kept change that it stands on, by its iteration; 0 is the baseline
	Commit      string `json:"commit"`
	Tree        string `json:"tree,omitempty"`
	Description string `json:"description"`
	// Metric is what fresh samples say where the metric varies; nil where verify is another command by now.
	Metric *evidence.Decimal `json:"metric,omitempty"`
	Count  int               `json:"count"`          // of kept changes from the baseline up to it
	Left   int               `json:"left,omitempty"` // how often the loop went on elsewhere, since nothing more was found from it
}

// Branch is a line of changes that goes on from an earlier commit than the loop's head. It becomes the head, or the loop
// returns to that.
type Branch struct {
	N    int `json:"n"`    // which one of the loop, from 1
	From int `json:"from"` // the kept change that it goes on from
	// Compared is the last kept change of the branch that fresh pairs did not show to be better than the head.
	Compared int `json:"compared,omitempty"`

	// What the loop returns to.
	Head          string            `json:"head"`
	Best          *evidence.Decimal `json:"best"`
	BestIteration int               `json:"bestIteration,omitempty"`
	KeptCount     int               `json:"keptCount"`
	Discards      int               `json:"discards"` // in a row, when the branch was begun
	Begun         int               `json:"begun"`    // the last iteration before it
}

// Exploring returns the branch that the loop explores, nil while it goes on from its head.
func (s State) Exploring() *Branch {
	if s.Backtrack == nil {
		return nil
	}
	return s.Backtrack.Branch
}

// HeadBest returns what the head is worth that the loop stands by, also while it explores a branch; nil before the
// baseline is measured.
func (s State) HeadBest() *evidence.Decimal {
	if b := s.Exploring(); b != nil {
		return b.Best
	}
	return s.Best
}

// Forked returns the branch that would go on from a kept change, before it is begun.
func (s State) Forked(from Node) Branch {
	return Branch{
		N: s.Backtrack.Begun + 1, From: from.Iteration, Head: s.Head, Best: s.Best, BestIteration: s.BestIteration,
		KeptCount: s.KeptCount, Discards: s.DiscardsInARow, Begun: s.Iteration,
	}
}

// Judgements returns how many verdicts there were: on changes, and on branches.
func (s State) Judgements() int {
	n := s.KeptCount + s.Discarded
	if s.Backtrack != nil {
		n += s.Backtrack.Compared
	}
	return n
}

// Node returns a kept change by its iteration, and whether it is remembered.
func (b Backtrack) Node(iteration int) (Node, bool) {
	i := slices.IndexFunc(b.Kept, func(n Node) bool { return n.Iteration == iteration })
	if i < 0 {
		return Node{}, false
	}
	return b.Kept[i], true
}

// Line returns the kept changes from the baseline to one of them, as far as they are remembered.
func (b Backtrack) Line(iteration int) (line []Node) {
	for {
		n, known := b.Node(iteration)
		if !known {
			slices.Reverse(line)
			return line
		}
		line = append(line, n)
		iteration = n.On
	}
}

// Without returns the kept changes of the line that a branch leaves which it does not have.
func (b Backtrack) Without(branch Branch) (missing []Node) {
	have := b.Line(branch.From)
	for _, n := range b.Line(branch.BestIteration) {
		if !slices.ContainsFunc(have, func(of Node) bool { return of.Iteration == n.Iteration }) {
			missing = append(missing, n)
		}
	}
	return missing
}

// backtrack changes what is remembered, of a loop that does. Older states keep theirs.
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

// node changes what is remembered of the kept change that the head is.
func (s *State) node(do func(*Node)) {
	s.backtrack(func(b *Backtrack) {
		if i := slices.IndexFunc(b.Kept, func(n Node) bool { return n.Iteration == s.BestIteration }); i >= 0 {
			do(&b.Kept[i])
		}
	})
}

// keptOn remembers a kept change and the one that it stands on.
func (s *State) keptOn(on int, e Event) {
	s.backtrack(func(b *Backtrack) {
		b.Since = 0
		b.Kept = last(append(b.Kept, Node{
			Iteration: e.Record.N, On: on, Commit: e.Record.Commit, Tree: e.Record.Tree, Description: Clip(e.Record.Description, 200),
			Metric: e.Metric, Count: s.KeptCount,
		}), KeepCommits)
	})
}

// measured remembers what the head is worth by now.
func (s *State) measured(best evidence.Decimal) { s.node(func(n *Node) { n.Metric = &best }) }

// measuredAnew forgets what kept changes are worth by another command than the one that has measured the head.
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

// goOn makes a kept change what the loop goes on from: of those that were kept only its line still counts.
func (s *State) goOn(head string, from, count int, best *evidence.Decimal) {
	s.node(func(n *Node) { n.Left++ })
	s.Head, s.LastChange, s.Alike = head, nil, ""
	s.Best, s.BestIteration = best, from
	s.KeptCount, s.Discarded = count, s.Discarded+s.KeptCount-count
	s.Kept = []Kept{}
	for _, n := range s.Backtrack.Line(from) {
		s.Kept = append(s.Kept, Kept{n.Iteration, n.Commit, n.Description})
	}
}

// branch is that the loop goes on from an earlier commit.
func (s *State) branch(e Event) {
	from, known := s.Backtrack.Node(e.Branch.From)
	if !known {
		return
	}
	s.goOn(e.Head, from.Iteration, from.Count, from.Metric)
	s.backtrack(func(b *Backtrack) {
		b.Branch, b.Begun = new(*e.Branch), e.Branch.N
	})
}

// giveUpBranch is that the loop returns to the head that it had. What the branch kept has come to nothing, and so have its
// iterations.
func (s *State) giveUpBranch(e Event) {
	left := s.Exploring()
	if left == nil {
		return
	}
	s.goOn(e.Head, left.BestIteration, left.KeptCount, left.Best)
	s.DiscardsInARow = left.Discards + s.Iteration - left.Begun
	s.backtrack(func(b *Backtrack) { b.Branch, b.Since = nil, s.DiscardsInARow })
}
