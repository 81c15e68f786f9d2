package ui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pawl/internal/charter"
	"pawl/internal/spec"
)

// Charter is what a person wants to know about a steward before starting it.
type Charter struct {
	Charter charter.Charter
	Repo    string
	Base    string // the commit from which its work starts now
	// Lacking are, by kind of loop, the keys that its defaults leave to the plan of a task.
	Lacking     map[string][]string
	Protections []string
	// Environment says which of the worker's variables planner and loops get.
	Environment []string
}

// Charter renders a charter: what the steward watches, when it asks, what its loops get, and its limits.
func (s Style) Charter(v Charter) string {
	c := v.Charter
	f := s.fields(10)
	at := "at " + Short(v.Base)
	if c.Repo.Base != "" {
		at = "branch " + Clean(c.Repo.Base) + " " + at
	}
	f.add("repository", Clean(v.Repo), at)
	planner, asked := c.Planner()
	if asked {
		f.add("planner", program(planner)...)
	} else {
		f.add("planner", "none: each task brings its plan")
	}
	f.add("governance", Clean(strings.Join(c.Governance, "  ")))
	f.add("production", Clean(strings.Join(c.Production, "  ")))
	for i, r := range c.Tiers {
		f.add(label(i, "tiers"), Clean(string(r.Tier)+": "+rule(r)))
	}
	f.add("commands", Clean(strings.Join(c.Allow, ", ")))
	s.loops(f, v)
	l := c.Limits
	f.add("stops", fmt.Sprintf("a task stops and asks you after %s, %d without progress, the same result %s, the same error %s, or %s without a milestone",
		plural(l.Actions, "action"), l.NoProgress, plural(l.SameResult, "time"), plural(l.SameError, "time"), l.Executing))
	bounds := fmt.Sprintf("%s at once, %s in the queue, a step that fails is repeated %s", plural(l.Parallel, "loop"), plural(l.Queue, "task"), plural(l.Retries, "time"))
	if l.CostUSD != nil {
		bounds += ", $" + l.CostUSD.String() + " for a task"
	}
	f.add("bounds", bounds, fmt.Sprintf("reminds you of a question after %s and after %s, then every %s; checks its record every %s", l.Waiting/8, l.Waiting, l.Waiting, c.ValidateEvery))
	for i, sc := range c.Schedules {
		f.add(label(i, "schedules"), Clean(sc.Name+": "+slots(sc)))
	}
	for i, t := range c.Triggers {
		f.add(label(i, "triggers"), Clean(t.Name+": from "+t.From))
	}
	f.add("remote", Clean(c.Remote.API))
	f.add("tells", told(c.Notify)...)
	fragment := c.Fragment()
	f.add("variables", append(environment(fragment, v.Environment), given("planner: ", planner.Env, fragment.Agent.Env)...)...)
	f.add("granted", append(allowed(fragment), granted(fragment)...)...)
	f.add("protection", s.protections(v.Protections)...)
	return s.Bold("Charter of "+Clean(c.Name)) + "\n\n" + f.String()
}

// allowed returns the paths in sandbox.allow of a charter. Each loop's contract says what they mean for it.
func allowed(sp spec.Spec) (lines []string) {
	for _, path := range sp.Sandbox.Allow {
		lines = append(lines, "agent and commands may write "+Clean(path)+", as far as the loop's contract says")
	}
	return lines
}

// label returns the name for the first of several lines, and a blank for the others.
func label(i int, name string) string {
	if i == 0 {
		return name
	}
	return " "
}

// loops adds what the charter gives its loops.
func (s Style) loops(f *fields, v Charter) {
	d := v.Charter.Fragment()
	f.add("scope", Clean(strings.Join(d.Scope, "  ")))
	f.add("setup", command(d.Setup.Command)...)
	f.add("test", command(d.Test.Command)...)
	f.add("verify", command(d.Verify.Command)...)
	f.add("guard", command(d.Guard.Command)...)
	f.add("check", command(d.Check.Command)...)
	f.add("agent", agents(d)...)
	for i, kind := range slices.Sorted(maps.Keys(v.Lacking)) {
		says := "defaults has everything it needs"
		if keys := v.Lacking[kind]; len(keys) > 0 {
			says = "a plan has to set " + strings.Join(keys, ", ")
		}
		f.add(label(i, "loops"), Clean(kind+": "+says))
	}
}

func rule(r charter.Rule) string {
	var parts []string
	if len(r.Paths) > 0 {
		parts = append(parts, "paths "+strings.Join(r.Paths, "  "))
	}
	if len(r.Words) > 0 {
		parts = append(parts, "words "+strings.Join(r.Words, ", "))
	}
	if r.Files != nil {
		parts = append(parts, plural(*r.Files, "file")+" or more")
	}
	if r.CostUSD != nil {
		parts = append(parts, "$"+r.CostUSD.String()+" or more")
	}
	return strings.Join(parts, "; ")
}

func slots(sc charter.Schedule) string {
	when := "every " + sc.Every.String()
	if sc.Cron != "" {
		when = sc.Cron
	}
	if sc.TimeZone != "" {
		when += " " + sc.TimeZone
	}
	return when
}
