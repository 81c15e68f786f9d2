package rules

import (
	"slices"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/metric/stats"
)

// Turn is what a loop does about branches (limits.backtrack), between two iterations.
type Turn struct {
	Do     string    // Stay or one of the others
	From   loop.Node // Fork: the kept change to go on from
	Reason string    // Fork, Return: why
}

// What a turn does.
const (
	Stay    = "stay"    // nothing: the loop goes on from where it is
	Fork    = "fork"    // go on from an earlier kept commit
	Compare = "compare" // measure branch and head in turn
	Replace = "replace" // the branch is the head from now on
	Return  = "return"  // give the branch up
)

// Turn decides what the loop does about branches. On a plateau it continues from the most promising kept change. A
// branch is compared with the head that it left each time that it has kept something and seems to be better; if one
// measurement is enough for a decision, the known metrics decide. A branch that reaches a plateau of its own is given
// up.
func (r Improve) Turn(s loop.State) Turn {
	b := s.Exploring()
	switch {
	case s.Backtrack == nil, s.HaltRequested != "":
		return Turn{Do: Stay}
	case b == nil:
		return r.fork(s)
	}
	tip, _ := s.Backtrack.Node(s.BestIteration)
	if kept := tip.Iteration != b.From; kept && tip.Iteration != b.Compared && tip.Metric != nil && b.Best != nil {
		better, _ := metric.Decide(r.Direction, *b.Best, *tip.Metric, metric.Decimal{})
		switch m, _ := r.Decide(*b.Best, *tip.Metric); {
		case s.Sampler != nil && better:
			return Turn{Do: Compare}
		case s.Sampler == nil && m.Kept:
			return Turn{Do: Replace}
		}
	}
	barren := s.DiscardsInARow
	if tip.Iteration == b.From { // those before it count for no branch
		barren -= b.Discards
	}
	if atRest(s) && barren >= r.ShiftAfter {
		return Turn{Do: Return, Reason: metric.Counted(barren, "discard") + " in a row on the branch"}
	}
	return Turn{Do: Stay}
}

// fork decides whether a loop at its head continues from an earlier commit: on a plateau, if an iteration may follow.
func (r Improve) fork(s loop.State) Turn {
	barren := s.DiscardsInARow - s.Backtrack.Since
	if !atRest(s) || barren < r.ShiftAfter || s.DiscardsInARow >= r.Discards || exhausted(s) != "" {
		return Turn{Do: Stay}
	}
	node := promising(r.Direction, s)
	if node == nil {
		return Turn{Do: Stay}
	}
	return Turn{Do: Fork, From: *node, Reason: metric.Counted(barren, "discard") + " in a row"}
}

// atRest reports whether no candidate is on its way that was made from the head as it is.
func atRest(s loop.State) bool { return len(s.Candidates) == 0 && s.Taken == nil }

// promising returns the kept change to continue from, nil if none is better than its parent. A change's score is its
// gain over its parent, divided by one plus its children: the changes that were kept on top of it, and the times that
// the loop has left it because it found nothing more. Of equal scores the latest wins.
func promising(direction string, s loop.State) (best *loop.Node) {
	weights := Weights(direction, s)
	for i, n := range s.Backtrack.Kept {
		if w := weights[n.Iteration]; w > 0 && (best == nil || w >= weights[best.Iteration]) {
			best = &s.Backtrack.Kept[i]
		}
	}
	return best
}

// Weights returns the score of each kept change, by its iteration. The head has none, and neither has a change that is
// not known to be better than its parent.
func Weights(direction string, s loop.State) map[int]float64 {
	var metrics []metric.Decimal
	if s.Baseline != nil {
		metrics = append(metrics, *s.Baseline)
	}
	children := map[int]int{}
	for _, n := range s.Backtrack.Kept {
		children[n.On]++
		if n.Metric != nil {
			metrics = append(metrics, *n.Metric)
		}
	}
	scale, weights := stats.ScaleOf(direction, metrics...), map[int]float64{}
	for _, n := range s.Backtrack.Kept {
		reference := s.Baseline
		if n.On != 0 {
			parent, _ := s.Backtrack.Node(n.On)
			reference = parent.Metric
		}
		if n.Metric == nil || reference == nil || n.Iteration == s.BestIteration {
			continue
		}
		if gain := scale.Gain(*reference, *n.Metric); gain > 0 {
			weights[n.Iteration] = gain / float64(1+children[n.Iteration]+n.Left)
		}
	}
	return weights
}

// KeptElsewhere returns the kept change that has this tree, nil if none has: making it again leads nowhere new.
func KeptElsewhere(s loop.State, tree string) *loop.Node {
	if s.Backtrack == nil || tree == "" {
		return nil
	}
	if i := slices.IndexFunc(s.Backtrack.Kept, func(n loop.Node) bool { return n.Tree == tree }); i >= 0 {
		return &s.Backtrack.Kept[i]
	}
	return nil
}
