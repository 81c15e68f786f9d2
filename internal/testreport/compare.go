package testreport

import "slices"

// Change is what became of the tests between two runs, by ID. A failing test that the bounds of a
// report left out is in no list.
type Change struct {
	Failing []string `json:"failing,omitempty"` // now
	New     []string `json:"new,omitempty"`     // fails now and did not before
	Fixed   []string `json:"fixed,omitempty"`   // failed before and passes now
	Still   []string `json:"still,omitempty"`   // fails now as before
	Gone    []string `json:"gone,omitempty"`    // failed before and did not run now, which is no fix
	// Worse says that more tests fail than before, or that something is broken that was not: then
	// fewer tests run, and a lower count of failures says nothing.
	Worse bool `json:"worse,omitempty"`
	// Count is how long the lists are before they are capped (Short).
	Count Counts `json:"count"`
}

// Counts are the lengths of a Change's lists.
type Counts struct {
	New   int `json:"new"`
	Fixed int `json:"fixed"`
	Still int `json:"still"`
	Gone  int `json:"gone"`
}

// Short returns the change with at most n names in each list, for what enters history.
func (c Change) Short(n int) Change {
	for _, list := range []*[]string{&c.Failing, &c.New, &c.Fixed, &c.Still, &c.Gone} {
		*list = (*list)[:min(len(*list), n)]
	}
	return c
}

// Short returns the report with at most n failing tests and little of what they say, for what
// enters history; Failed is still how many there are.
func (r Report) Short(n int) Report {
	const message, tail = 200, 500
	short := make([]Test, min(len(r.Failing), n))
	for i := range short {
		short[i] = r.Failing[i]
		short[i].Message = clip(short[i].Message, message)
	}
	r.Failing, r.Tail = short, clip(r.Tail, tail)
	return r
}

// Compare says what became of the tests from one run to the next. Of the later report it needs
// what Read returned; the earlier one may come from JSON. Where the runner does not name the
// tests that pass, a test that is not among the failing counts as fixed, unless something could
// not be built or loaded.
func Compare(before, after Report) Change {
	c := Change{Failing: after.IDs(), Worse: after.Failed > before.Failed || after.Broken && !before.Broken}
	failed := map[string]bool{}
	for _, t := range before.Failing {
		failed[t.ID()] = true
	}
	for _, id := range c.Failing {
		if failed[id] {
			c.Still = append(c.Still, id)
		} else {
			c.New = append(c.New, id)
		}
	}
	for _, t := range before.Failing {
		switch id := t.ID(); {
		case slices.Contains(c.Still, id):
		case after.Failed > len(after.Failing): // it may fail beyond the list
		case after.ran(t):
			c.Fixed = append(c.Fixed, id)
		default:
			c.Gone = append(c.Gone, id)
		}
	}
	c.Count = Counts{len(c.New), len(c.Fixed), len(c.Still), len(c.Gone)}
	return c
}

// ran reports whether t passed in this run, given that it is not among the failing.
func (r Report) ran(t Test) bool {
	if _, passed := r.passed[hashOf(t.Package, t.Name)]; passed {
		return true
	}
	if t.Name == "" && !r.Broken && !r.Partial && r.Format != "" {
		return true // what kept a whole package from running is gone
	}
	if _, passed := r.passed[hashOf(t.Package, "")]; passed && !r.named {
		return true // its package passed as a whole
	}
	return !r.named && !r.Broken && !r.Partial && r.Format != ""
}
