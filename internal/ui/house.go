package ui

import (
	"cmp"
	"strings"

	"pawl/internal/kind"
	"pawl/internal/shell"
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

// Finding is one thing that was checked, and its status: ok, note or failed.
type Finding struct {
	Name, Status, What, Fix string
}

// Findings renders the findings. Below each problem is what to do.
func (s Style) Findings(all []Finding) string {
	width := 0
	for _, f := range all {
		width = max(width, columns(f.Name))
	}
	marks := map[string]string{"ok": s.paint(green, "ok  "), "note": s.paint(yellow, "note"), "failed": s.paint(red, "FAIL")}
	var b strings.Builder
	for _, f := range all {
		b.WriteString(marks[f.Status] + "  " + pad(f.Name, width) + "  " + Clean(f.What) + "\n")
		if f.Fix != "" {
			b.WriteString(strings.Repeat(" ", width+8) + s.Dim("→ "+Clean(f.Fix)) + "\n")
		}
	}
	return b.String()
}

// Serving is the addresses of the engine and its UI, and the worker.
type Serving struct {
	Address, UI, Namespace, Worker, Engine, Log string
	CLI                                         string // the Temporal CLI with its options, "" if it needs none
}

// Serving renders them.
func (s Style) Serving(v Serving) string {
	f := s.fields(11)
	whose := ""
	switch v.Engine {
	case "ours":
		whose = " (embedded, in this process)"
	case "another's":
		whose = " (embedded, in another pawl)"
	}
	f.add("Temporal", v.Address+whose+", namespace "+v.Namespace)
	f.add("Temporal UI", v.UI)
	if v.CLI != "" {
		f.add("CLI", v.CLI+" …")
	}
	f.add("worker", v.Worker)
	f.add("log", v.Log)
	return f.String()
}

// Started is a loop that was started and left to a worker.
type Started struct {
	Loop, Run, Temporal, UI string
	Asks                    bool // its contract waits for approval
}

// Started renders it, with the next commands.
func (s Style) Started(v Started) string {
	id := Clean(shell.Quote(v.Loop))
	follow := []string{"pawl show " + id, "pawl log -f " + id}
	if v.Asks {
		follow = append(follow, "pawl approve "+id+"  once its contract is drawn")
	}
	return s.started("loop", v, "follow", follow)
}

// StewardStarted is Started for a steward.
func (s Style) StewardStarted(v Started) string {
	id := Clean(shell.Quote(v.Loop))
	return s.started("steward", v, "next", []string{"pawl steward submit " + id + " FILE", "pawl steward show " + id, "pawl inbox"})
}

func (s Style) started(word string, v Started, label string, lines []string) string {
	f := s.fields(11)
	f.add(word, Clean(v.Loop))
	f.add("run", v.Run)
	f.add("Temporal", v.Temporal)
	f.add("Temporal UI", v.UI)
	f.add(label, lines...)
	return f.String()
}
