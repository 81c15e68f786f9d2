package testreport

import (
	"slices"

	"pawl/internal/lib/list"
)

// Change is what happened to the tests between two runs, by ID. The lists leave out failing tests beyond the limits
// of a report.
type Change struct {
	Failing []string `json:"failing,omitempty"` // fails now
	New     []string `json:"new,omitempty"`     // fails now and did not before
	Fixed   []string `json:"fixed,omitempty"`   // failed before and passes now
	Still   []string `json:"still,omitempty"`   // fails now as before
	// Worse says that more tests fail than before, or that something is broken that was not. If something is broken,
	// fewer tests run, so a lower count of failures means nothing.
	Worse bool `json:"worse,omitempty"`
}

// Short returns the change with at most n names in each list, for history.
func (c Change) Short(n int) Change {
	for _, list := range []*[]string{&c.Failing, &c.New, &c.Fixed, &c.Still} {
		*list = (*list)[:min(len(*list), n)]
	}
	return c
}

// Compare returns what happened to the tests from one run to the next. The later report must be a result of Read; the
// earlier one may come from JSON. If the runner does not name passing tests, a test that is not among the failing
// ones counts as fixed, unless something could not be built or loaded or a part of the output was left out.
func Compare(previous, next Report) Change {
	c := Change{Failing: next.IDs(), Worse: next.Failed > previous.Failed || next.Broken && !previous.Broken}
	failed := list.Set(previous.IDs())
	for _, id := range c.Failing {
		if failed[id] {
			c.Still = append(c.Still, id)
		} else {
			c.New = append(c.New, id)
		}
	}
	for _, t := range previous.Failing {
		switch id := t.ID(); {
		case slices.Contains(c.Still, id):
		case next.Failed > len(next.Failing): // the test may fail, but be beyond the list
		case next.ran(t): // what did not run is not fixed
			c.Fixed = append(c.Fixed, id)
		}
	}
	return c
}

// Gone returns the IDs of tests that passed before and that the later run does not name: deleted, renamed, skipped.
// Both reports must be results of Read. A name of which only noise differs, such as a time, is the same. It returns
// none if the runs can't be compared, as tests or their names are missing.
func Gone(previous, next Report) (missing []string) {
	switch {
	case previous.Format != next.Format, previous.naming != next.naming:
		return nil
	case previous.Partial, next.Partial, next.Broken, len(next.names) < len(next.passed), next.Failed > len(next.Failing):
		return nil
	}
	failing := list.Set(next.IDs())
	for _, t := range previous.names {
		_, passes := next.passed[hashOf(t.Package, t.Name)]
		unit := t.Name == "" && previous.naming // the tests of this package have names
		if !passes && !unit && !failing[t.ID()] {
			missing = append(missing, t.ID())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	come := map[string]bool{}
	for _, t := range next.names {
		if _, passed := previous.passed[hashOf(t.Package, t.Name)]; !passed {
			come[normal(t.ID())] = true
		}
	}
	return slices.DeleteFunc(missing, func(id string) bool { return come[normal(id)] })
}

// ran reports whether t passed in this run, if it is not among the failing tests.
func (r Report) ran(t Test) bool {
	_, itself := r.passed[hashOf(t.Package, t.Name)]
	_, pkg := r.passed[hashOf(t.Package, "")]
	whole := r.Format != "" && !r.Broken && !r.Partial
	// A package that could not run before now can. If passing tests have no names, the others have passed.
	return itself || t.Name == "" && whole || !r.naming && (pkg || whole)
}
