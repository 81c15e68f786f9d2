package ui

import (
	"cmp"
	"strings"

	"pawl/internal/kind"
)

// Drafted is a spec that was written for a repository, and the findings behind it.
type Drafted struct {
	Path                            string
	Kind                            kind.Kind
	Languages                       []string
	Project                         string   // the folder that the spec is for, if there are several
	Others                          []string // the other projects
	Test, Check, Metric, Why, Agent string
	Setup, Direction, Guard         string
	Missing, Hints                  []string // what is not installed, and what else to consider
	Next                            []string
}

// Drafted renders the findings.
func (s Style) Drafted(d Drafted) string {
	f := s.fields(9)
	f.add("languages", cmp.Or(strings.Join(d.Languages, ", "), "none recognised"))
	if d.Project != "" {
		f.add("project", Clean(d.Project), s.Dim(Clean(cmp.Or(strings.Join(d.Others, ", "), "none")+" besides")))
	}
	if d.Kind.Reference {
		f.add("metric", Clean(d.Metric), s.Dim(Clean(d.Why)), s.Dim(d.Direction+" is better"))
	}
	if d.Setup != "" {
		f.add("setup", Clean(d.Setup))
	}
	if d.Test == "" && d.Guard != "" && d.Kind.Reference {
		f.add("tests", "none found")
		f.add("guard", Clean(d.Guard))
	} else if d.Test == "" && d.Kind.Reference {
		f.add("tests", "none found", s.Dim("without a guard, a change that improves the number is kept, even if it breaks something else"))
	} else {
		f.add("tests", cmp.Or(Clean(d.Test), "none found"))
	}
	if d.Check != "" {
		f.add("check", Clean(d.Check))
	}
	if d.Test != "" || d.Check != "" {
		f.add("tried", "not yet: pawl validate says whether they pass on the unchanged code", s.Dim("a loop can do without a check that fails there"))
	}
	f.add("agent", cmp.Or(d.Agent, "none found on the PATH"))
	for _, missing := range d.Missing {
		f.add("missing", Clean(missing))
	}
	for _, hint := range d.Hints {
		f.add("note", Clean(hint))
	}
	f.add("next", append([]string{"read the file, then"}, d.Next...)...)
	return s.Bold("Wrote "+Clean(d.Path)) + "\n\n" + f.String()
}
