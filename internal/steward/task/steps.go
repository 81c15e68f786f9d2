package task

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

// Limits of a plan's steps.
const (
	MaxSteps    = 50
	maxFragment = 16 << 10 // bytes of a spec's fragment; its keys are checked when the whole spec is made
)

// onlyStep is the ID of the only step of a task that is one loop.
const onlyStep = "work"

var stepID = lazyregexp.New(`^[a-z0-9-]{1,40}$`)

// Steps returns the task's own steps: those of its plan, or one for its spec; nil if a planner has to make them.
func (t Task) Steps() []Step {
	if len(t.Plan) > 0 || t.Spec == nil {
		return InOrder(t.Plan)
	}
	s := Step{ID: onlyStep, Kind: kind.Loops()[0], Spec: t.Spec}
	var head struct {
		Kind string `json:"kind"`
	}
	if json.Unmarshal(t.Spec, &head) == nil && head.Kind != "" {
		s.Kind = head.Kind
	}
	return []Step{s}
}

// InOrder returns the steps with the order in `after`. If none has an `after`, each comes after the one before it.
func InOrder(steps []Step) []Step {
	if slices.ContainsFunc(steps, func(s Step) bool { return len(s.After) > 0 }) {
		return steps
	}
	steps = slices.Clone(steps)
	for i := 1; i < len(steps); i++ {
		steps[i].After = []string{steps[i-1].ID}
	}
	return steps
}

// Order returns the steps in an order in which each can be done, close to the plan's own order. circle has the IDs of
// steps that wait for each other, nil for none.
func Order(steps []Step) (order []Step, circle []string) {
	done := map[string]bool{}
	left := slices.Clone(steps)
	for len(left) > 0 {
		next := slices.IndexFunc(left, func(s Step) bool {
			return !slices.ContainsFunc(s.After, func(id string) bool { return !done[id] })
		})
		if next < 0 {
			return order, list.Map(left, func(s Step) string { return s.ID })
		}
		order = append(order, left[next])
		done[left[next].ID] = true
		left = slices.Delete(left, next, next+1)
	}
	return order, nil
}

// Last returns the steps after which no other comes. A valid plan has one, whose head is the task's only proposal.
func Last(steps []Step) (last []string) {
	for _, s := range steps {
		if !slices.ContainsFunc(steps, func(later Step) bool { return slices.Contains(later.After, s.ID) }) {
			last = append(last, s.ID)
		}
	}
	return last
}

func checkSteps(c *spec.Checker, key string, steps []Step) {
	switch {
	case len(steps) == 0:
		c.Add(key, map[bool]string{true: "is missing", false: "has no steps"}[steps == nil], "at least one, such as [{id: build, kind: "+kind.Loops()[0]+"}]")
		return
	case len(steps) > MaxSteps:
		c.Add(key, fmt.Sprintf("has %d steps", len(steps)), fmt.Sprintf("at most %d; submit several tasks instead", MaxSteps))
		return
	}
	indexes := map[string]int{}
	for i, s := range steps {
		if _, duplicate := indexes[s.ID]; duplicate {
			c.Add(fmt.Sprintf("%s[%d].id", key, i), "is "+spec.Show(s.ID)+", as that of an earlier step", "an ID of its own")
			continue
		}
		indexes[s.ID] = i
	}
	problems := len(c.Problems)
	for i, s := range steps {
		stepKey := fmt.Sprintf("%s[%d]", key, i)
		if !stepID().MatchString(s.ID) {
			c.Add(stepKey+".id", "is "+spec.Show(s.ID), "1 to 40 of a to z, 0 to 9 and the hyphen")
		}
		c.OneOf(stepKey+".kind", s.Kind, kind.Loops())
		checkLine(c, stepKey+".milestone", s.Milestone)
		checkSize(c, stepKey+".spec", len(s.Spec), maxFragment)
		for j, id := range s.After {
			if _, ok := indexes[id]; !ok {
				c.Add(fmt.Sprintf("%s.after[%d]", stepKey, j), "is "+spec.Show(id)+", and no step has that ID", "the ID of another step")
			}
		}
	}
	if len(c.Problems) > problems {
		return // the checks below need distinct IDs
	}
	if _, circle := Order(steps); circle != nil {
		c.Add(key, "the steps wait for each other: "+strings.Join(circle, ", "), "an order in which they can be done")
		return
	}
	if last := Last(steps); len(last) > 1 {
		c.Add(key, "end in "+fmt.Sprint(len(last))+" places: "+strings.Join(last, ", "), "one last step that comes after them, since a task ends with one proposal")
	}
}

// checkLine checks that a text has one line and is not too long.
func checkLine(c *spec.Checker, key, text string) {
	checkSize(c, key, len(text), maxLine)
	c.Line(key, text, "a text of one line")
}

func checkSize(c *spec.Checker, key string, size, limit int) {
	if size > limit {
		c.Add(key, fmt.Sprintf("is %d bytes long", size), fmt.Sprintf("at most %d", limit))
	}
}
