package charter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // so that every host knows the same time zones

	"github.com/robfig/cron/v3"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/steward/delivery"
	"pawl/internal/steward/task"
)

// The words that are values in a charter.
const (
	Skip   = "skip"   // a slot is skipped if the task of the last slot is not over
	Buffer = "buffer" // the task of the slot waits until that one is over
	Allow  = "allow"  // the task of the slot does not wait for that one

	GitHub       = "github"
	Alertmanager = "alertmanager"
	Standard     = "standard" // Standard Webhooks
	JSON         = "json"
	Health       = "health" // a command or an address that every validation tries
)

// Words are the values that a key can have; "[]" stands for the items of a list. Leasts are the smallest numbers.
var (
	Words = map[string][]string{
		"kind":                {kind.Steward.Name},
		"mode":                {spec.ModeAnswer, spec.ModePlan, spec.ModeMission},
		"tiers[].tier":        {string(task.T0), string(task.T1), string(task.T2), string(task.T3)},
		"schedules[].overlap": {Skip, Buffer, Allow},
		"triggers[].from":     {GitHub, Alertmanager, Standard, JSON, Health},
	}
	Leasts = map[string]int{
		"limits.actions": 1, "limits.noProgress": 1, "limits.sameResult": 1, "limits.sameError": 1, "limits.retries": 0, "limits.parallel": 1, "limits.queue": 1, "tiers[].files": 1,
	}
)

// The keys of a loop's spec that its steward sets: Starters in a whole spec, Partial in a fragment.
var (
	Starters = []string{"name", "repo", "session"}
	Partial  = []string{"name", "kind", "repo", "session"}
)

// ValidateInput returns everything that is wrong with c as the input of a workflow, as spec.Problems; nil if nothing is. It
// is what Parse and FromMap find, and every worker must find the same repository.
func (c Charter) ValidateInput() error {
	check := spec.Checker{Problems: c.check()}
	check.Anywhere(c.Repo)
	return check.Problems.Err()
}

// Planner returns the agent that makes plans; ok is false if every task has to bring its own plan.
func (c Charter) Planner() (a spec.Agent, ok bool) {
	a = c.Agent.For(spec.RolePlanner)
	return a, a.Use != spec.UseCommand || !a.Command.IsZero()
}

// check returns everything that is wrong with c, in the order of the contract's table.
func (c Charter) check() spec.Problems {
	var k spec.Checker
	const missing = "is missing"
	switch err := spec.ValidID(c.Name); {
	case c.Name == "":
		k.Add("name", missing, "the steward's ID, such as shop")
	case err != nil:
		k.Add("name", err.Error(), "a steward's ID such as shop")
	}
	k.Repo(c.Repo)
	k.Globs("governance", c.Governance)
	for i, r := range c.Tiers {
		c.rule(&k, fmt.Sprintf("tiers[%d]", i), r)
	}
	for i, mark := range c.Production {
		key := fmt.Sprintf("production[%d]", i)
		if k.Present(key, mark, "a glob of files, or a word"); strings.ContainsAny(mark, "/*?[{") {
			k.Glob(key, mark)
		}
		k.Line(key, mark, "a glob of files, or a word")
	}
	for i, command := range c.Allow {
		key := fmt.Sprintf("allow[%d]", i)
		k.Present(key, command, `the words that a command begins with, such as "go test"`)
		k.Command(key, command)
	}
	if c.Defaults != nil {
		k.Fragment("defaults", c.Defaults, Partial...)
	}
	c.planner(&k)
	if cost := c.Limits.CostUSD; cost != nil && cost.Sign() <= 0 {
		k.Add("limits.costUSD", "is "+cost.String(), "more than 0, or leave it out for no limit")
	}
	if interval := c.ValidateEvery; interval > 0 && interval < spec.Duration(shortest) { // Tables refuses 0
		k.Add("validateEvery", "is "+interval.String(), spec.Duration(shortest).String()+" or more")
	}
	named := map[string]bool{}
	for i, s := range c.Schedules {
		key := fmt.Sprintf("schedules[%d]", i)
		name(&k, key+".name", s.Name, named)
		s.check(&k, key)
	}
	named = map[string]bool{}
	for i, t := range c.Triggers {
		key := fmt.Sprintf("triggers[%d]", i)
		name(&k, key+".name", t.Name, named)
		k.OneOf(key+".from", t.From, Words["triggers[].from"])
		t.check(&k, key)
		filled := t.Task
		if filled.Body == "" && filled.Spec == nil && len(filled.Plan) == 0 {
			filled.Body = "what came in"
		}
		template(&k, key+".task", filled)
		if err := delivery.Check(t.Task); err != nil {
			k.Add(key+".task", err.Error(), "templates over what came in: docs/guides/triggers.md has the names")
		}
	}
	c.Remote.check(&k)
	k.Notify(c.Notify)
	k.Tables(c, Keys(), Words, Leasts, nil)
	return k.Problems
}

func (c Charter) rule(k *spec.Checker, key string, r Rule) {
	k.OneOf(key+".tier", string(r.Tier), Words["tiers[].tier"])
	if len(r.Paths) == 0 && len(r.Words) == 0 && r.Files == nil && r.CostUSD == nil {
		k.Add(key, "names nothing that a task could match", "one or more of paths, words, files, costUSD")
	}
	k.Globs(key+".paths", r.Paths)
	for i, word := range r.Words {
		k.Present(fmt.Sprintf("%s.words[%d]", key, i), word, "a word of a task's title or body")
	}
	if r.Files != nil {
		k.Least(key+".files", *r.Files, Leasts["tiers[].files"])
	}
	if r.CostUSD != nil && r.CostUSD.Sign() <= 0 {
		k.Add(key+".costUSD", "is "+r.CostUSD.String(), "more than 0")
	}
}

// planner checks the agent of the planner's role, if there is one, and that no other role has an agent.
func (c Charter) planner(k *spec.Checker) {
	for _, role := range slices.Sorted(maps.Keys(c.Agent.Roles)) {
		if role != spec.RolePlanner {
			k.Add(spec.Join("agent.roles", role), "is not a role of a steward", "planner; the agents of its loops belong in defaults.agent")
		}
	}
	if c.Agent.Ideas != nil || c.Agent.Roles[spec.RolePlanner].Ideas != nil {
		k.Add("agent.ideas", "has no effect on a steward", "defaults.agent.ideas, for its loops")
	}
	if len(c.Agent.Fallback) > 0 || len(c.Agent.Roles[spec.RolePlanner].Fallback) > 0 {
		k.Add("agent.fallback", "has no effect on a steward", "defaults.agent.fallback, for its loops")
	}
	if c.Agent.Vendor != "" || c.Agent.Roles[spec.RolePlanner].Vendor != "" {
		k.Add("agent.vendor", "has no effect on a steward", "defaults.agent.vendor, for its loops")
	}
	key := "agent"
	_, found := c.Agent.Roles[spec.RolePlanner]
	if found {
		key = "agent.roles.planner"
	}
	if a, ok := c.Planner(); ok || found || a.Model != "" || len(a.Args) > 0 || len(a.Env) > 0 { // something is set for it
		k.Agent(key, a, c.Limits.CostUSD != nil)
	}
}

// name adds a problem if a name is not valid, or if another one in the list has it.
func name(k *spec.Checker, key, value string, named map[string]bool) {
	const want = "a name such as nightly"
	switch {
	case value == "":
		k.Add(key, "is missing", want)
	case !inAddress().MatchString(value):
		k.Add(key, "is "+spec.Show(value), want+": letters, digits, - and _, at most 60")
	case named[value]:
		k.Add(key, "is "+spec.Show(value)+", which is taken", "a name of its own")
	}
	named[value] = true
}

// inAddress matches a name that can become a part of an address and of an ID in Temporal.
var inAddress = lazyregexp.New(`^[A-Za-z0-9_-]{1,60}$`)

func (s Schedule) check(k *spec.Checker, key string) {
	switch {
	case s.Cron == "" && s.Every == 0:
		k.Add(key, "says neither cron nor every", "one of the two")
	case s.Cron != "" && s.Every != 0:
		k.Add(key, "says both cron and every", "one of the two")
	case s.Cron != "":
		if problem := badCron(s.Cron); problem != "" {
			k.Add(key+".cron", problem, `minute, hour, day of month, month and day of week, such as "0 2 * * 1-5", or @hourly, @daily, @weekly, @monthly, @yearly`)
		}
	case s.Every < spec.Duration(shortest):
		k.Add(key+".every", "is "+s.Every.String(), spec.Duration(shortest).String()+" or more")
	}
	if _, err := time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == "Local" {
		k.Add(key+".timeZone", "is "+spec.Show(s.TimeZone), "the name of a time zone, such as Europe/Berlin")
	}
	if s.Overlap != "" {
		k.OneOf(key+".overlap", s.Overlap, Words["schedules[].overlap"])
	}
	if s.CatchUp != 0 && s.CatchUp < spec.Duration(shortestCatchUp) {
		k.Add(key+".catchUp", "is "+s.CatchUp.String(), spec.Duration(shortestCatchUp).String()+" or more")
	}
	template(k, key+".task", s.Task)
}

// The shortest times: of a schedule's interval and a validation's, and Temporal's own of a schedule's catch-up.
const (
	shortest        = time.Second
	shortestCatchUp = 10 * time.Second
)

// badCron returns what is wrong with a cron expression, "" if nothing is. Temporal accepts every expression that it
// accepts. A zone and an interval have keys of their own, and a comment is not allowed.
func badCron(text string) string {
	if strings.ContainsAny(text, "?#=") || strings.HasPrefix(text, "@every") {
		return "is " + spec.Show(text)
	}
	slots, err := cron.ParseStandard(text)
	if err != nil {
		return "is " + spec.Show(text) + ": " + err.Error()
	}
	if s, fields := slots.(*cron.SpecSchedule); fields {
		s.Dom |= 1 << 63 // the library's mark of a `*`: a day has to match both fields, as Temporal has it, not one of them
	}
	if slots.Next(time.Unix(0, 0).UTC()).IsZero() {
		return "is " + spec.Show(text) + ", which never comes"
	}
	return ""
}

// template adds problems with the template of a task. Each use of it has to make a different task.
func template(k *spec.Checker, key string, t task.Task) {
	if t.ID != "" {
		k.Add(key+".id", "is "+spec.Show(t.ID), "nothing: each task that is made from this gets its own ID")
	}
	if t.Source != "" {
		k.Add(key+".source", "is "+spec.Show(t.Source), "nothing: pawl fills it in")
	}
	if t.Dedupe != "" {
		k.Add(key+".dedupe", "is "+spec.Show(t.Dedupe), "nothing: pawl fills it in")
	}
	for _, p := range append(t.Check(key), Specs(key, t)...) {
		k.Add(p.Key, p.What, p.Want)
	}
}

// Specs returns what is wrong with the fragments of specs in a task. key is the task's key in the document, "" for a
// document of its own. Planning checks whether the fragments make whole specs.
func Specs(key string, t task.Task) spec.Problems {
	var k spec.Checker
	if t.Spec != nil {
		k.Fragment(spec.Join(key, "spec"), t.Spec, Starters...)
	}
	for i, step := range t.Plan {
		if step.Spec != nil {
			k.Fragment(spec.Join(key, fmt.Sprintf("plan[%d].spec", i)), step.Spec, Partial...)
		}
	}
	return k.Problems
}

// check adds problems with a trigger. A delivery needs a secret, a health check something to try.
func (t Trigger) check(k *spec.Checker, key string) {
	if t.From == Health {
		switch {
		case t.SecretFile != "":
			k.Add(key+".secretFile", "is given", "nothing: nobody sends anything to a health check")
		case (t.Command == "") == (t.URL == ""):
			k.Add(key, "must have one of command and url, and not both", "a command that exits with 0, or an address that answers with a status below 400, if all is well")
		case t.URL != "" && !spec.Webhook(t.URL):
			k.Add(key+".url", "is "+spec.Show(t.URL), "an address such as https://shop.example/health")
		}
		k.Command(key+".command", t.Command)
		k.Line(key+".url", t.URL, "an address of one line")
		return
	}
	for _, field := range []struct{ name, value string }{{"command", t.Command}, {"url", t.URL}} {
		if field.value != "" {
			k.Add(spec.Join(key, field.name), "is given", "nothing: only a health check (from: "+Health+") has one")
		}
	}
	if slices.Contains(Words["triggers[].from"], t.From) {
		k.Present(key+".secretFile", t.SecretFile, "the file with the secret that signs what comes in")
	}
	k.Line(key+".secretFile", t.SecretFile, "the name of a file")
}

func (r Remote) check(k *spec.Checker) {
	const want = "the address of an API, such as https://api.github.com/repos/OWNER/NAME"
	if r.API == "" {
		if r.TokenFile != "" {
			k.Add("remote.api", "is missing", want)
		}
		return
	}
	if !spec.Webhook(r.API) {
		k.Add("remote.api", "is "+spec.Show(r.API), want)
	}
	k.Line("remote.api", r.API, want)
	k.Line("remote.tokenFile", r.TokenFile, "the name of a file")
}
