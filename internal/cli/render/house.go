package render

import (
	"cmp"
	"strings"

	"pawl/internal/cli/scaffold"
	"pawl/internal/lib/shell"
)

// Drafted is a spec that was written for a repository, and the findings behind it: what `pawl init --json` prints.
type Drafted struct {
	Path   string              `json:"path"`
	Kind   string              `json:"kind"`
	Repo   string              `json:"repo"`
	Found  scaffold.Repository `json:"found"`
	Agent  string              `json:"agent,omitempty"` // the one that the spec names, if it is on the PATH
	Agents []string            `json:"agents"`          // all on the PATH
	Next   []string            `json:"next"`
	// Problems keep a loop of the spec from starting, as it is now.
	Problems []Obstacle `json:"problems,omitempty"`
}

// Obstacle is one thing that keeps a loop from starting. Check is the part of the spec that it is about.
type Obstacle struct {
	Check string `json:"check"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`
}

// Drafted renders the findings. measures says that loops of the kind have a metric.
func (s Style) Drafted(v Drafted, measures bool) string {
	f, d, metric := s.fields(9), v.Found, v.Found.Metric
	f.add("languages", cmp.Or(strings.Join(d.Languages, ", "), "none recognised"))
	if d.Project != "" {
		f.add("project", Clean(d.Project), s.Dim(Clean(cmp.Or(strings.Join(d.Others, ", "), "none")+" besides")))
	}
	if measures {
		f.add("metric", cmp.Or(Clean(metric.Command), "none found"), s.Dim(Clean(metric.Why)), s.Dim(Around("", metric.Direction, " is better")))
	}
	f.add("setup", Clean(d.Setup))
	if d.Test == "" && metric.Guard != "" && measures {
		f.add("tests", "none found")
		f.add("guard", Clean(metric.Guard))
	} else if d.Test == "" && measures {
		f.add("tests", "none found", s.Dim("without a guard, a change that improves the number is kept, even if it breaks something else"))
	} else {
		f.add("tests", cmp.Or(Clean(d.Test), "none found"))
	}
	f.add("check", Clean(d.Check))
	if d.Test != "" || d.Check != "" {
		without := ""
		if d.Check != "" {
			without = s.Dim("a loop can do without a check that fails there")
		}
		f.add("tried", "not yet: pawl validate says whether they pass on the unchanged code", without)
	}
	f.add("agent", cmp.Or(v.Agent, "none found on the PATH"))
	for _, missing := range d.Missing {
		f.add("missing", Clean(missing))
	}
	for _, p := range v.Problems {
		f.add("problem", Clean(p.What), s.Dim(Clean(p.Do)))
	}
	first := "read the file, then"
	if metric.Command == "" && measures {
		first = "fill in verify.command and verify.direction, then"
	}
	f.add("next", first)
	f.commands("", v.Next...)
	return s.Bold("Wrote "+Clean(v.Path)) + "\n\n" + f.String()
}

// Proposed renders what a spec that is not written yet says, as far as a person did not just type it. The contract, which
// is shown before anything starts, says the rest. measures says that loops of the kind have a metric.
func (s Style) Proposed(v Drafted, measures bool) string {
	f, found, metric := s.fields(9), v.Found, v.Found.Metric
	width := max(20, s.Width-14)
	cut := func(text string, lines int) []string {
		all := wrap(Clean(text), width)
		if len(all) > lines {
			return cutLines(all, lines, width)
		}
		return all
	}
	short := func(text string) []string { return cut(text, longestRow) }
	f.add("scope", short(strings.Join(found.Scope, ", ")+Around("; never ", strings.Join(found.Protect, ", "), ""))...)
	guard := found.Check
	if measures {
		f.add("metric", append(cut(metric.Command, 1), Clean(Around("", metric.Why, "; ")+metric.Direction+" is better"))...)
		guard = cmp.Or(found.Test, metric.Guard)
	} else {
		f.add("tests", short(found.Test)...)
	}
	f.add("guard", short(cmp.Or(guard, "none: a change that improves the number is kept, even if it breaks something else"))...)
	f.add("agent", v.Agent)
	for _, missing := range found.Missing {
		f.add("missing", Clean(missing))
	}
	return s.Bold("A loop for "+Clean(v.Repo)) + "\n" + f.String()
}

// Finding is one thing that was checked, and its status: ok, note or failed. Fix says what to do if it is not ok.
type Finding struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	What   string `json:"what"`
	Fix    string `json:"fix,omitempty"`
}

// Findings renders the findings. Below each problem is what to do.
func (s Style) Findings(findings []Finding) string {
	width := 0
	for _, f := range findings {
		width = max(width, columns(f.Name))
	}
	marks := map[string]string{"ok": s.paint(green, "ok  "), "note": s.paint(yellow, "note"), "failed": s.paint(red, "FAIL")}
	var b strings.Builder
	for _, f := range findings {
		head := marks[f.Status] + "  " + pad(f.Name, width) + "  "
		blank := strings.Repeat(" ", width+8)
		for _, line := range s.broken(Clean(f.What), width+8) {
			b.WriteString(head + line + "\n")
			head = blank
		}
		if f.Fix == "" {
			continue
		}
		for _, line := range s.broken("→ "+Clean(f.Fix), width+8) {
			b.WriteString(blank + s.Dim(line) + "\n")
		}
	}
	return b.String()
}

// Serving is the addresses of the engine and its UI, and the worker: what `pawl up --json` prints once it serves.
type Serving struct {
	Address   string `json:"address"`
	UI        string `json:"ui,omitempty"`
	Namespace string `json:"namespace"`
	Worker    string `json:"worker"`
	Engine    string `json:"engine"` // ours, another's or external
	Log       string `json:"log"`
	// CLI is the beginning of commands of the Temporal CLI, if the engine requires a token.
	CLI string `json:"cli,omitempty"`
}

// Serving renders them.
func (s Style) Serving(v Serving) string {
	f := s.fields(11)
	owner := map[string]string{"ours": " (embedded, in this process)", "another's": " (embedded, in another pawl)"}[v.Engine]
	f.add("Temporal", v.Address+owner+", namespace "+v.Namespace)
	f.add("Temporal UI", v.UI)
	f.add("CLI", Around("", v.CLI, " …"))
	f.add("worker", v.Worker)
	f.add("log", v.Log)
	return f.String()
}

// Started is a loop or a steward that was started and left to a worker: what `pawl start --json` prints.
type Started struct {
	Loop      string `json:"loop"`
	Run       string `json:"run"`
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	Worker    bool   `json:"worker"` // a worker takes loops now; otherwise the loop waits for one
	UI        string `json:"ui,omitempty"`
}

// Started renders it, with the next commands. needsApproval says that its contract waits for approval.
func (s Style) Started(v Started, needsApproval bool) string {
	id := Clean(shell.Quote(v.Loop))
	show := "pawl show " + id
	if needsApproval {
		show += "  its contract, and the command that approves it"
	}
	follow := []string{show, "pawl log -f " + id}
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
	f.add("Temporal", v.Address+", namespace "+v.Namespace)
	f.add("Temporal UI", v.UI)
	f.add(label, lines...)
	return f.String()
}
