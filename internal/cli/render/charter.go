package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/steward/charter"
)

// Charter is what a person wants to know about a steward before starting it.
type Charter struct {
	Charter charter.Charter
	Repo    string
	Base    string // the commit from which its work starts now
	// Lacking are, by kind of loop, the keys that its defaults leave to the plan of a task.
	Lacking     map[string][]string
	Protections []string
	Claims      int      // how many claims about the sandbox were tried, 0 if that is not known
	Lacks       []string // what the sandbox lacks
	// Environment says which of the worker's variables planner and loops get.
	Environment []string
}

// CharterSummary renders a charter without what is the same for every steward, and with the sandbox on one line if it
// lacks nothing. whole says how to see the rest.
func (s Style) CharterSummary(v Charter, whole string) string {
	return s.charter(v, true, s.Dim(Around("  (", whole, ")")))
}

// Charter renders a charter: what the steward watches, when it asks, what its loops get, and its limits.
func (s Style) Charter(v Charter) string { return s.charter(v, false, "") }

func (s Style) charter(v Charter, brief bool, aside string) string {
	c := v.Charter
	f := s.fields(10)
	f.add("repository", Clean(v.Repo), Around("branch ", Clean(c.Repo.Base), " ")+"at "+Short(v.Base))
	planner, asked := c.Planner()
	if asked {
		f.add("planner", program(planner)...)
	} else {
		f.add("planner", "none: each task brings its plan")
	}
	f.add("governance", Clean(strings.Join(c.Governance, "  ")))
	f.add("production", Clean(strings.Join(c.Production, "  ")))
	f.add("tiers", list.Map(c.Tiers, func(r charter.Rule) string { return Clean(string(r.Tier) + ": " + rule(r)) })...)
	f.add("commands", Clean(strings.Join(c.Allow, ", ")))
	s.loops(f, v)
	l := c.Limits
	f.add("stops", fmt.Sprintf("a task stops and asks you after more than %s, %d without progress, the same result %s, the same error %s, or %s without a milestone",
		plural(l.Actions, "action"), l.NoProgress, plural(l.SameResult, "time"), plural(l.SameError, "time"), l.Executing))
	bounds := fmt.Sprintf("%s at once, %s in the queue, a step that fails is repeated %s", plural(l.Parallel, "loop"), plural(l.Queue, "task"), plural(l.Retries, "time"))
	f.add("bounds", bounds+known(", $", l.CostUSD, " for a task"), fmt.Sprintf("reminds you of a question after %s and after %s, then every %s; checks its record every %s", l.Waiting/8, l.Waiting, l.Waiting, c.ValidateEvery))
	f.add("schedules", list.Map(c.Schedules, func(sc charter.Schedule) string {
		return Clean(sc.Name + ": " + slots(sc))
	})...)
	f.add("triggers", list.Map(c.Triggers, func(t charter.Trigger) string {
		return Clean(t.Name + ": from " + t.From)
	})...)
	f.add("remote", Clean(c.Remote.API))
	f.add("tells", told(c.Notify)...)
	fragment := c.Fragment()
	named := v.Environment
	if brief {
		named = nil
	}
	f.add("variables", append(environment(fragment, named), given("planner: ", planner.Env, fragment.Agent.Env)...)...)
	writable := list.Map(fragment.Sandbox.Allow, func(path string) string {
		return "agent and commands may write " + Clean(path) + ", as far as the loop's contract says"
	})
	f.add("granted", append(writable, granted(fragment)...)...)
	if brief {
		f.add("sandbox", s.sandboxed(v.Claims, v.Lacks, v.Protections)...)
	} else {
		f.add("protection", s.protections(v.Protections)...)
	}
	return s.Bold("Charter of "+Clean(c.Name)) + aside + "\n\n" + f.String()
}

// loops adds what the charter gives its loops.
func (s Style) loops(f *fields, v Charter) {
	d := v.Charter.Fragment()
	f.add("scope", Clean(strings.Join(d.Scope, "  ")))
	f.add("setup", written(d.Setup.Command)...)
	f.add("test", written(d.Test.Command)...)
	f.add("verify", written(d.Verify.Command)...)
	f.add("guard", written(d.Guard.Command)...)
	f.add("check", written(d.Check.Command)...)
	f.add("agent", agents(d)...)
	f.add("loops", list.Map(slices.Sorted(maps.Keys(v.Lacking)), func(kind string) string {
		if keys := v.Lacking[kind]; len(keys) > 0 {
			return Clean(kind + ": a plan has to set " + strings.Join(keys, ", "))
		}
		return Clean(kind + ": defaults has everything it needs")
	})...)
}

func rule(r charter.Rule) string {
	files := ""
	if r.Files != nil {
		files = plural(*r.Files, "file") + " or more"
	}
	return joined("; ", titled("paths ", r.Paths, "  "), titled("words ", r.Words, ", "), files, known("$", r.CostUSD, " or more"))
}

func slots(sc charter.Schedule) string {
	return cmp.Or(sc.Cron, "every "+sc.Every.String()) + Around(" ", sc.TimeZone, "")
}
