package render

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/lib/secretscan"
	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
	programs "pawl/internal/spec/agents"
	"pawl/internal/spec/issue"
	"pawl/internal/spec/kind"
)

// Contract is what a person approves before a loop starts, and what they want to know before that.
type Contract struct {
	Loop        string
	Repo        string
	Branch      string
	Kind        kind.Kind
	Contract    loop.Contract
	Spec        spec.Spec
	Baseline    *metric.Decimal
	Age         string     // how long ago `pawl validate` measured the unchanged code, "" if the loop did
	Noise       string     // what the noise of the metric means, "" if it does not vary
	Spread      string     // the same in a few words, "" if it does not vary
	InScope     int        // how many files the scope matches, negative if that is not known
	Plan        *loop.Plan // of a Deliver loop with a planner
	Protections []string
	Environment []string // which of the worker's variables agent and commands get
	Tested      string   // what the guard has tested on the unchanged code, "" if that is not known
	TestsRun    string   // what the test command has tested there, "" if that is not known
	Claims      int      // how many claims about the sandbox were tried, 0 if that is not known
	Lacks       []string // what the sandbox lacks
}

// guardAge is Age if the guard alone ran on the unchanged code.
func (c Contract) guardAge() string {
	if c.Kind.Reference || c.Spec.TestRequired() {
		return ""
	}
	return c.Age
}

// maxSealed is how many sealed files are shown; the others are counted.
const maxSealed = 20

// Contract renders a contract. Commands are shown whole: they run with the reader's rights.
func (s Style) Contract(c Contract) string {
	sp := c.Spec
	f := s.fields(10)
	f.add("goal", written(sp.Goal)...)
	f.add("repository", Clean(cmp.Or(c.Repo, sp.Repo.Path)), Around("branch ", Clean(sp.Repo.Base), " ")+"at "+Short(c.Contract.Base))
	f.add("branch", Clean(branchName(c.Branch))+" (new; yours stay as they are)")
	f.add("scope", Clean(strings.Join(sp.Scope, "  "))+scopeCount(c))
	f.add("sealed", sealed(c.Contract.Sealed)...)
	f.add("policy", policy(sp))
	f.add("setup", written(sp.Setup.Command)...)
	if c.Plan != nil {
		f.add("plan", append(written(c.Plan.Text), s.Dim("SHA-256 "+digest(c.Plan.Hash)+", stays fixed"))...)
	}
	switch {
	case !c.Kind.Tests:
	case sp.TestRequired():
		limits := "within " + sp.Test.Timeout.String() + Around("; ", Clean(c.TestsRun), "") + Around(", measured by pawl validate ", c.Age, "")
		f.add("test", append(written(sp.Test.Command), s.Dim(limits))...)
	default:
		f.add("test", "not required: the tests are skipped")
	}
	if v := sp.Verify; v.Command != "" {
		lines := written(v.Command)
		if v.Pattern != "" {
			lines = append(lines, "the metric is what "+strings.Join(written(v.Pattern), `\n`)+" finds last")
		}
		f.add("verify", append(lines, s.Dim(verified(c.Kind, v)))...)
	}
	f.add("criteria", criteria(s, sp)...)
	if sp.Guard.Command != "" {
		limits := "within " + sp.Guard.Timeout.String() + Around("; ", Clean(c.Tested), "") + Around(", measured by pawl validate ", c.guardAge(), "")
		f.add("guard", append(written(sp.Guard.Command), s.Dim(limits))...)
	}
	f.add("check", written(sp.Check.Command)...)
	f.add("agent", append(agents(sp), s.tools(sp, c.Contract.Tools)...)...)
	f.add("permissions", list.Map(slices.Sorted(maps.Keys(sp.Permissions)), func(role string) string {
		return Clean(role) + ": " + cmp.Or(strings.Join(sp.Permissions[role], ", "), "nothing")
	})...)
	f.add("budgets", budgets(sp.Limits))
	f.add("stops", "after "+stops(c.Kind, sp.Limits))
	f.add("asks", asks(sp)...)
	if c.Kind.Reference {
		f.add("baseline", number(c.Baseline)+Around(", measured by pawl validate ", c.Age, ""))
		f.add("noise", Clean(c.Noise))
		if holdout := sp.Verify.Holdout.Command; holdout != "" {
			f.add("holdout", append(written(holdout), s.Dim("only for the claim; the agent does not know of it"))...)
		}
		f.add("metrics", bounds(sp.Metrics)...)
	}
	f.add("tells", told(sp.Notify)...)
	f.add("started by", s.steward(sp)...)
	f.add("variables", environment(sp, c.Environment)...)
	f.add("granted", granted(sp)...)
	f.add("protection", s.protections(c.Protections)...)
	f.add("hash", c.Contract.Hash)
	return s.Bold("Contract of "+Clean(c.Loop)) + "\n\n" + f.String()
}

// steward returns what a steward says about itself and its task in the session of a loop that it starts.
func (s Style) steward(sp spec.Spec) []string {
	if sp.Session[spec.SessionSteward] == "" {
		return nil
	}
	return []string{
		Clean(rules.Approver(sp)),
		Around("its proposal begins at ", Short(Clean(sp.Session[spec.SessionBase])), ""),
		Around("its work is applied to ", Clean(sp.Session[spec.SessionOnto]), ""),
		s.Dim("as its session says; nobody has checked it"),
	}
}

// stops returns the limits, besides the budgets, that end a loop of the kind.
func stops(k kind.Kind, l spec.Limits) string {
	words := map[string]string{
		"limits.discards":     plural(l.Discards, "discard") + " in a row",
		"limits.fixAttempts":  plural(l.FixAttempts, "fix attempt") + " in an iteration",
		"limits.iterations":   plural(l.Iterations, "iteration") + " without success",
		"limits.phaseTimeout": "a phase over " + l.PhaseTimeout.String(),
	}
	return strings.Join(list.Map(k.Stops, func(key string) string { return words[key] }), ", or ")
}

// asks returns at what the loop waits for a person, besides what every loop asks about.
func asks(sp spec.Spec) (lines []string) {
	if len(sp.Breakpoints) > 0 {
		lines = append(lines, "at each "+strings.Join(sp.Breakpoints, ", ")+", before it begins")
	}
	if sp.Limits.OnExhausted == spec.Ask {
		lines = append(lines, "for a higher limit when a budget is used up")
	}
	if sp.AsksOfTools() {
		lines = append(lines, "when an agent was denied a tool")
	}
	return lines
}

// criteria returns what the reviewer ticks off, if there is a reviewer.
func criteria(s Style, sp spec.Spec) (lines []string) {
	if _, reviewer := sp.Agent.Roles[kind.Reviewer]; !reviewer {
		return nil
	}
	for i, text := range issue.Parse([]byte(sp.Goal)).Criteria {
		lines = append(lines, itoa(i+1)+". "+Clean(text))
	}
	if len(lines) == 0 {
		return nil
	}
	return append(lines, s.Dim("the reviewer ticks them off, with evidence"))
}

// verified returns how the result of verify is judged.
func verified(k kind.Kind, v spec.Verify) string {
	if !k.Reference {
		return "has to exit 0 within " + v.Timeout.String() + known(" and to print ", v.Target, " or better ("+v.Direction+")")
	}
	text := "within " + v.Timeout.String() + "; " + v.Direction + " is better"
	switch v.Judging() {
	case spec.Single:
		text += ", judged by one measurement"
	case spec.Sequential:
		text += ", judged by several evaluations"
	}
	if !v.MinDelta.IsZero() {
		text += ", by at least " + v.MinDelta.String()
	}
	return text + known(", until ", v.Target, "")
}

// bounds returns the further metrics that are read.
func bounds(metrics []metric.Bound) (lines []string) {
	for _, m := range metrics {
		relative := ""
		if m.AtWorst != nil && m.AtWorst.Percent {
			relative = " worse than at the baseline"
		}
		bound := cmp.Or(known(", at worst ", m.AtWorst, relative), ", recorded only")
		lines = append(lines, Clean(m.Name)+" ("+cmp.Or(m.Direction, metric.Higher)+" is better)"+bound)
	}
	return lines
}

// Protections renders what the agent can't do, and what is not protected.
func (s Style) Protections(lines []string) string {
	f := s.fields(12)
	f.add("protection", s.protections(lines)...)
	return f.String()
}

// protections returns the lines about protections. Lines with capitals say what is not protected, and are red.
func (s Style) protections(lines []string) []string {
	return list.Map(lines, func(line string) string {
		shown := strings.Join(written(line), `\n`)
		if capitals.MatchString(line) {
			return s.paint(red, shown)
		}
		return shown
	})
}

var capitals = regexp.MustCompile(`^[A-Z]{2,} [A-Z]{2,}`)

// argv returns a command list as the shell would write it.
func argv(a spec.Argv) []string { return written(cmp.Or(a.Shell, shell.Join(a.List...))) }

// tools returns the approved tools, and those of them to which nothing restricts the programs.
func (s Style) tools(sp spec.Spec, approved []string) []string {
	lines := []string{s.Dim("tools: " + Clean(strings.Join(approved, " ")))}
	if sp.AsksOfTools() {
		lines = append(lines, s.Dim("you are asked after a call in which another tool was denied"))
	}
	for _, a := range sp.Agent.All() {
		p, _ := programs.Lookup(a.Use)
		for _, line := range p.Unheld(approved) {
			if line = s.Dim(line); !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// agents returns the programs that are called: first the common ones, then those of a single role.
func agents(sp spec.Spec) (lines []string) {
	for _, role := range append([]string{""}, slices.Sorted(maps.Keys(sp.Agent.Roles))...) {
		for i, a := range sp.Agent.Chain(role) {
			roleProgram := program(a)
			if i > 0 {
				roleProgram[0] = "if its provider refuses work: " + roleProgram[0]
			}
			roleProgram[0] = Around("", Clean(role), ": ") + roleProgram[0]
			lines = append(lines, roleProgram...)
		}
	}
	if sp.Reviewer.OtherVendor {
		lines = append(lines, "reviewer: an agent of another vendor than all that have written")
	}
	return lines
}

func program(a spec.Agent) []string {
	name := ""
	if a.Use != spec.UseCommand {
		name = a.Use
	}
	name += Around(" with the model ", Clean(a.Model), "")
	command := a.Command
	if command.Shell == "" {
		command.List = slices.Concat(command.List, a.Args)
	}
	lines := argv(command)
	if command.Shell != "" && len(a.Args) > 0 {
		lines = append(lines, "with "+strings.Join(argv(spec.Argv{List: a.Args}), " "))
	}
	switch {
	case name == "":
		return lines
	case a.Command.IsZero() && len(a.Args) == 0:
		return []string{strings.TrimSpace(name)}
	default:
		return append([]string{strings.TrimSpace(name) + ":"}, lines...)
	}
}

// environment returns the variables that the spec gives to agents, and those of the worker that agents and commands get.
func environment(sp spec.Spec, inherited []string) []string {
	lines := append(slices.Clone(inherited), given("", sp.Agent.Env, nil)...)
	for _, role := range slices.Sorted(maps.Keys(sp.Agent.Roles)) {
		lines = append(lines, given(role+": ", sp.Agent.For(role).Env, sp.Agent.Env)...)
	}
	for _, a := range sp.Agent.All() {
		if strings.HasSuffix(a.Key, "]") { // of a chain
			lines = append(lines, given(a.Key+": ", a.Env, sp.Agent.For(a.Role).Env)...)
		}
	}
	return lines
}

// given returns the variables that a spec gives to agents, without those in said.
func given(role string, env, said map[string]string) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if value, ok := said[name]; !ok || value != env[name] {
			lines = append(lines, strings.Join(written(secretscan.Redact(role+name+"="+env[name])), "\\n"))
		}
	}
	return lines
}

// granted returns what the spec lets agent and commands reach and keep beyond what they need. The protections say
// what sandbox.allow means on a machine.
func granted(sp spec.Spec) (lines []string) {
	lines = append(lines, titled("the agent's command gets your sign-ins of ", sp.Sandbox.Agents, ", "))
	if idle := idle(sp.Sandbox); len(idle) > 0 {
		lines = append(lines, strings.Join(idle, ", ")+": no effect, since sandbox.use is off")
	} else if len(sp.Sandbox.Hosts) > 0 {
		lines = append(lines, "agent and commands may connect to "+Clean(strings.Join(sp.Sandbox.Hosts, "  ")))
	}
	for _, glob := range sp.Judge.Keep {
		lines = append(lines, "files that a judgement leaves in "+Clean(glob)+" stay for the next one, but not between evaluations of a metric that varies")
	}
	return lines
}

// idle are the keys of a sandbox that keep nobody from anything, since there is none.
func idle(s spec.Sandbox) (keys []string) {
	if s.Use != spec.Off {
		return nil
	}
	if len(s.Allow) > 0 {
		keys = append(keys, "sandbox.allow")
	}
	if len(s.Hosts) > 0 {
		keys = append(keys, "sandbox.hosts")
	}
	if s.Network == spec.None {
		keys = append(keys, "sandbox.network")
	}
	return keys
}

// sealCount returns how much is sealed, in a few words.
func sealCount(seals []loop.Seal) string {
	count := func(names string) int {
		return len(list.Filter(seals, func(seal loop.Seal) bool { return seal.Names == names }))
	}
	files, outside := count(""), count(loop.SealOutside)
	names := len(seals) - files - outside
	var parts []string
	if files > 0 || len(seals) == 0 {
		parts = append(parts, plural(files, "sealed file"))
	}
	if names > 0 {
		parts = append(parts, plural(names, "sealed name"))
	}
	if outside > 0 {
		parts = append(parts, plural(outside, "file")+" outside")
	}
	return strings.Join(parts, ", ")
}

// sealed returns what judges the work: files by their names, then the globs, then what is outside the repository.
func sealed(seals []loop.Seal) (lines []string) {
	if len(seals) == 0 {
		return []string{"nothing"}
	}
	var outside, present, absent, lined, except []string
	files := 0
	for _, seal := range seals {
		switch seal.Names {
		case "":
			if files++; files <= maxSealed {
				lines = append(lines, Clean(seal.Path))
			}
		case loop.SealOutside:
			outside = append(outside, Clean(seal.Path)+" (outside of the repository"+Around(", SHA-256 ", digest(seal.Blob), "")+")")
		default:
			if seal.OfFiles() {
				present = append(present, seal.Path)
			}
			if seal.OfNewFiles() {
				absent = append(absent, seal.Path)
			}
			if len(seal.Lines) > 0 {
				lined = append(lined, seal.Path+" ("+strings.Join(seal.Lines, ", ")+")")
			}
			except = seal.Except
		}
	}
	if further := files - maxSealed; further > 0 {
		lines = append(lines, "and "+plural(further, "file")+" more")
	}
	lines = append(lines, titled("files that are there: ", present, "  "), titled("no new files: ", absent, "  "),
		titled("no change of these lines: ", lined, "  "), titled("except what the scope names: ", except, "  "))
	return append(lines, outside...)
}

// policy returns the rules besides scope, new files and sealed files.
func policy(s spec.Spec) string {
	p := s.Rules()
	var parts []string
	for _, r := range spec.Rules {
		if word := r.Says(p); word != "" {
			parts = append(parts, r.Name+": "+word)
		}
		if limit, ok := r.Limit(p); ok {
			noun, rest, _ := strings.Cut(r.Unit, " ")
			parts = append(parts, strings.TrimSpace("up to "+plural(limit, noun)+" "+rest))
		}
	}
	return Clean(cmp.Or(s.Guard.Policy, spec.PolicyDefault)) + " (" + strings.Join(parts, ", ") + ")"
}

func budgets(l spec.Limits) string {
	tokens, agents := "", ""
	if l.Tokens != nil {
		tokens = counted(loop.Count(*l.Tokens), "token")
	}
	if l.Parallel != nil {
		agents = above(1, "", *l.Parallel, " agents at once")
	}
	return joined(", ", plural(l.Iterations, "iteration"), l.ActiveTime.String()+" active", plural(l.ToolCalls, "tool call"), tokens,
		known("$", l.CostUSD, ""), known("", l.WallClock, " in all"), known("", l.Memory, " of memory at a time"),
		known("", l.Processes, " processes and threads at a time"), agents)
}

// told returns the commands by which the loop notifies people. They run with the reader's rights, too.
func told(notify []string) []string { return slices.Concat(list.Map(notify, written)...) }
