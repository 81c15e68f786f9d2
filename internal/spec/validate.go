package spec

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
	"pawl/internal/metric"
	"pawl/internal/metric/stats"
	"pawl/internal/spec/agents"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
)

// Words are the values that a key can have, if the contract lists them; "[]" stands for the items of a list. Leasts
// are the smallest numbers that a key can have, and mosts the largest.
var (
	Words = map[string][]string{
		"kind":                kind.Loops(),
		"newFiles":            {Deny, Ask, Allow},
		"verify.direction":    {metric.Higher, metric.Lower},
		"verify.evidence":     {Auto, Single, Sequential},
		"verify.suspicious":   {Auto, Ask, Mark},
		"metrics[].direction": {metric.Higher, metric.Lower},
		"limits.onExhausted":  {Halt, Ask},
		"limits.atomic":       {Note, Rework},
		"limits.onSealed":     {Rework, Block},
		"agent.meter":         {Auto, Off},
		"sandbox.use":         {Auto, Off, Required},
		"sandbox.network":     {Filtered, None, Open},
		"approvals.plan":      {Required, Auto},
		"approvals.diff":      {Required, Auto},
		"approvals.onDenied":  {Deny, Ask},
		"mode":                {ModeAnswer, ModePlan, ModeMission},
		"breakpoints[]":       phases(),
	}
	Leasts = map[string]int{
		"limits.iterations": 1, "limits.toolCalls": 1, "limits.tokens": 1, "limits.reworks": 0, "limits.fixAttempts": 0, "limits.discards": 1, "limits.shiftAfter": 1, "limits.steps": 1, "limits.parallel": 1, "guard.retries": 0,
		"limits.processes": leastProcesses, "verify.calibration": stats.LeastCalibration, "verify.maxSamples": stats.LeastSamples,
	}
	mosts = map[string]int{
		"limits.parallel": mostParallel, "guard.retries": mostRetries, "verify.calibration": stats.MostCalibration, "verify.maxSamples": stats.MostSamples,
	}
)

// Nothing runs with less than this.
const (
	leastMemory    = 32 << 20
	leastProcesses = 16
	leastDesk      = 1 << 20
)

// mostRetries is how often a guard that failed may be run again: more would keep what fails most of the time.
const mostRetries = 3

// MissingKey is the problem with a required key that is not given.
const MissingKey = "is missing"

// phases returns the phases that can have a breakpoint in some kind of loop (L4).
func phases() (names []string) {
	for _, k := range kind.All {
		if k.Loop {
			names = append(names, k.Phases()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ValidateInput returns everything that is wrong with s as the input of a workflow, as Problems; nil if nothing is. It is
// what Parse and FromMap find, and the path must be absolute (see Anywhere).
func (s Spec) ValidateInput() error {
	c := Checker{s.check()}
	c.Anywhere(s.Repo)
	return c.Problems.Err()
}

// check returns everything that is wrong with s, in the order of the contract's table.
func (s Spec) check() Problems {
	var c Checker
	add := c.Add
	if s.Name != "" {
		if err := ValidID(s.Name); err != nil {
			add("name", err.Error(), "a loop ID such as faster-parser")
		}
	}
	k, _ := kind.Of(s.Kind) // an unknown kind requires nothing more
	c.Present("goal", s.Goal, "what the agent is told to achieve")
	c.Repo(s.Repo)

	if len(s.Scope) == 0 {
		add("scope", MissingKey, `the globs of the files that may change, such as ["src/**"]`)
	}
	c.Globs("scope", s.Scope)
	protected := list.Set(list.Map(s.Protect, Tidy))
	for i, glob := range s.Scope {
		if protected[Tidy(glob)] {
			add(fmt.Sprintf("scope[%d]", i), "is in protect too, and protect wins: no file that it matches may change", "the glob in only one of the two")
		}
	}
	c.Globs("protect", s.Protect)
	c.Globs("judge.keep", s.Judge.Keep)
	c.Globs("guard.report", s.Guard.Report)
	c.Globs("test.report", s.Test.Report)

	if _, err := regexp.Compile(s.Verify.Pattern); err != nil {
		add("verify.pattern", "is not a regular expression: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "), `Go's syntax, such as 'total: ([0-9.]+)'`)
	}
	if s.Verify.MinDelta.Sign() < 0 {
		add("verify.minDelta", "is "+s.Verify.MinDelta.String(), "0 or more, whichever the direction")
	}
	s.metrics(&c)
	for _, need := range k.Needed(s.TestRequired()) {
		c.Present(need.Key, valueOf(s, need.Key).String(), need.Want)
	}
	if _, ok := s.Policies[s.Guard.Policy]; !ok && s.Guard.Policy != PolicyDefault {
		add("guard.policy", "is "+Show(s.Guard.Policy), "the name of one of policies: "+strings.Join(s.policyNames(), ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Policies)) {
		key := Join("policies", name)
		if strings.TrimSpace(name) == "" || unprintable(name) != "" {
			add(key, "is not a name", "a name such as strict")
		}
		s.Policies[name].check(key, add)
	}

	s.agents(add)
	for _, role := range slices.Sorted(maps.Keys(s.Permissions)) {
		key := Join("permissions", role)
		if !slices.Contains(Roles(), role) {
			add(key, "is not a role", closest(role, "one of "+strings.Join(Roles(), ", "), Roles()))
		}
		for i, permission := range s.Permissions[role] {
			if !slices.Contains(permissionNames, permission) {
				add(fmt.Sprintf("%s[%d]", key, i), "is "+Show(permission), strings.Join(permissionNames, " or "))
			}
		}
	}

	for i, place := range s.Sandbox.Allow {
		if home, ok := strings.CutPrefix(place, "~/"); !path.IsAbs(place) && !ok || path.Clean("/"+home) == "/" || unprintable(place) != "" {
			add(fmt.Sprintf("sandbox.allow[%d]", i), "is "+Show(place), "the absolute path of a file or folder, or one that starts with ~/")
		}
	}
	if len(s.Sandbox.Hosts) > 0 && (s.Sandbox.Network == None || s.Sandbox.Network == Open) {
		add("sandbox.hosts", "has no effect, since sandbox.network is "+s.Sandbox.Network, "sandbox.network: "+Filtered+", or no hosts")
	}
	starts := func(k Keyed) bool { return k.Use == UseCommand || k.Use == agents.ACP }
	if len(s.Sandbox.Agents) > 0 && !slices.ContainsFunc(s.Agent.All(), starts) {
		add("sandbox.agents", "has no effect, since no agent of the loop is a command", "agent.command with a command that starts them, or no agents here")
	}
	for i, name := range s.Sandbox.Agents {
		if p, ok := agents.Lookup(name); !ok || !p.Signs() {
			add(fmt.Sprintf("sandbox.agents[%d]", i), "is "+Show(name), closest(name, "one of "+strings.Join(agents.Signing(), ", "), agents.Signing()))
		}
	}
	for i, entry := range s.Sandbox.Hosts {
		if h, err := ParseHost(entry); err != nil {
			add(fmt.Sprintf("sandbox.hosts[%d]", i), "is "+Show(entry)+", which "+err.Error(), hostExample)
		} else if h.Own() {
			add(fmt.Sprintf("sandbox.hosts[%d]", i), "is "+Show(entry)+", but the proxy never connects to this host", "another host; servers that a command starts itself are at localhost anyway")
		}
	}

	if s.Limits.CostUSD != nil && s.Limits.CostUSD.Sign() <= 0 {
		add("limits.costUSD", "is "+s.Limits.CostUSD.String(), "more than 0, or leave it out for no limit")
	}
	if s.Limits.Tokens != nil && *s.Limits.Tokens <= 0 {
		add("limits.tokens", fmt.Sprintf("is %d", *s.Limits.Tokens), "more than 0, or leave it out for no limit")
	}
	if s.Limits.Memory != nil && *s.Limits.Memory < leastMemory {
		add("limits.memory", "is "+s.Limits.Memory.String(), Size(leastMemory).String()+" or more: an agent or a compiler does not start with less")
	}
	if s.Limits.DeskBytes != nil && *s.Limits.DeskBytes < leastDesk {
		add("limits.deskBytes", "is "+s.Limits.DeskBytes.String(), Size(leastDesk).String()+" or more: a tree has to fit in it")
	}
	for key, given := range map[string]bool{"limits.memory": s.Limits.Memory != nil, "limits.processes": s.Limits.Processes != nil} {
		if given && s.Sandbox.Use == Off {
			add(key, "has no effect, since sandbox.use is off", "sandbox.use: auto or required")
		}
	}
	if s.Limits.Steps == 1 && k.Tasks[phase.Ideate].Text != "" && s.Agent.OffersIdeas() {
		add("limits.steps", "is 1, but the ideator's call would leave none for the writer", "2 or more, or agent.ideas: false")
	}
	s.parallel(&c, k)

	s.asksOfTools(add)
	if len(s.Approvals.Tools) == 0 {
		add("approvals.tools", MissingKey, `the tools that the agent may use, ["*"] for all`)
	}
	for i, tool := range s.Approvals.Tools {
		if strings.TrimSpace(tool) == "" || unprintable(tool) != "" {
			add(fmt.Sprintf("approvals.tools[%d]", i), "is "+Show(tool), "a class of tools ("+agents.ClassNames()+"), or the name of a tool")
		} else if _, _, err := agents.ReadEntry(tool); err != nil {
			add(fmt.Sprintf("approvals.tools[%d]", i), "is "+Show(tool)+", which "+err.Error(), "the words that they begin with, such as shell(go test *)")
		}
	}
	for i, phase := range s.Breakpoints {
		if known := k.Phases(); known != nil && !slices.Contains(known, phase) {
			add(fmt.Sprintf("breakpoints[%d]", i), "is "+Show(phase), "a phase of "+s.Kind+": "+strings.Join(known, ", "))
		}
	}
	c.Notify(s.Notify)
	c.Tables(s, keys(), Words, Leasts, mosts)
	return c.Problems
}

// Tables checks what the type of each of a struct's keys and the tables say about its value. It puts all problems into
// the order of the keys.
func (c *Checker) Tables(target any, keys []string, words map[string][]string, leasts, mosts map[string]int) {
	for _, key := range keys {
		v := reflect.Indirect(valueOf(target, key))
		if !v.IsValid() { // not given, and nil is its default
			continue
		}
		words, listed := words[key]
		minimum, bounded := leasts[key]
		maximum, limited := mosts[key]
		switch {
		case v.Type() == durationType:
			c.Positive(key, Duration(v.Int()))
		case listed:
			c.OneOf(key, v.String(), words)
		case bounded && v.Int() < int64(minimum):
			c.Least(key, int(v.Int()), minimum)
		case limited && v.Int() > int64(maximum):
			c.Add(key, fmt.Sprintf("is %d", v.Int()), fmt.Sprintf("at most %d", maximum))
		case v.Kind() == reflect.String && strings.HasSuffix(key, ".command"):
			c.Command(key, v.String())
		}
	}
	c.Problems.sort(keys)
}

// asksOfTools checks that a person can be asked about tools that an agent was not allowed to use.
func (s Spec) asksOfTools(add func(key, text, want string)) {
	const key = "approvals.onDenied"
	if !s.AsksOfTools() {
		return
	}
	if n := s.AtOnce(); n > 1 {
		add(key, fmt.Sprintf("is ask, but %d candidates are made at the same time (limits.parallel), and nobody can be asked about a single one", n), "deny, or limits.parallel: 1")
	}
	for _, role := range writers {
		for _, a := range s.Agent.Chain(role) {
			if p, ok := a.Row(); ok && !p.Tools.Tells {
				add(key, "is ask, but the agent of the "+role+" does not report which tools it was not allowed to use (agent.use: "+a.Use+")", "deny, or an agent that does: "+Or(agents.Telling()))
			}
		}
	}
}

// agents checks the agent of the loop and that of each role.
func (s Spec) agents(add func(key, text, want string)) {
	check := func(role string) {
		for _, a := range s.Agent.keyed(role) {
			a.check(a.Key, s.Approvals.Tools, s.Limits.CostUSD != nil, add)
		}
	}
	check("")
	s.otherVendor(add)
	for _, role := range slices.Sorted(maps.Keys(s.Agent.Roles)) {
		key := Join("agent.roles", role)
		if !slices.Contains(Roles(), role) {
			add(key, "is not a role", closest(role, "one of "+strings.Join(Roles(), ", "), Roles()))
			continue
		}
		if s.Agent.Roles[role].Ideas != nil && role != RoleIdeator {
			add(key+".ideas", "has no effect on this role", "agent.ideas, or agent.roles.ideator.ideas")
		}
		check(role)
	}
}

// Kept returns a problem if the budget of tokens can't be kept: for each agent its own output or the meter has to
// report the use while it works, so that pawl can stop it. Whether the meter can count is only known on the host of
// the agent. Kept is separate from Validate because loops that began before this rule must continue.
func (s Spec) Kept() error {
	var c Checker
	if s.Limits.Tokens == nil {
		return nil
	}
	for _, a := range s.Agent.All() {
		p, ok := a.Row()
		if !ok || !p.Use || p.Tokens {
			continue
		}
		instead := "limits.toolCalls or limits.activeTime, or another agent"
		if p.Metering.Meterable() {
			if s.Agent.Metered() {
				continue
			}
			instead = "agent.meter: " + Auto + ", " + instead
		}
		c.Add("limits.tokens", "can't be kept, since "+p.Name+" does not say what it uses while it works", instead)
	}
	return c.Problems.Err()
}

// check adds a problem if the agent can't be called, can't be limited to the tools, or can't keep capped costs.
func (a Agent) check(key string, tools []string, capped bool, add func(key, text, want string)) {
	text := func(key, value string) {
		if strings.ContainsRune(value, 0) {
			add(key, "contains a NUL byte", "text")
		}
	}
	p, built := a.Row()
	if !built || !p.Use {
		add(key+".use", "is "+Show(a.Use), closest(a.Use, "one of "+strings.Join(agents.Uses(), ", "), agents.Uses()))
		return
	}
	const example = `the program that edits the files, such as ["./agent.sh"]`
	switch {
	case a.Command.IsZero():
		if a.Use == UseCommand {
			add(key+".command", "is missing", example)
		} else if a.Use == agents.ACP {
			add(key+".command", "is missing", `the agent that speaks the protocol, such as ["gemini", "--acp"]`)
		}
	case a.Command.Shell != "" && strings.TrimSpace(a.Command.Shell) == "":
		add(key+".command", "is blank", example)
	case strings.TrimSpace(a.Command.Args()[0]) == "":
		add(key+".command", "is missing", example)
	case a.Use == agents.ACP && a.Command.Shell != "":
		add(key+".command", "is one string for the shell", `a list, such as ["gemini", "--acp"]`)
	case a.Use != UseCommand && a.Command.Shell != "":
		add(key+".command", "is one string for the shell", "a list: the program "+a.Use+" and its first arguments")
	}
	text(key+".command", strings.Join(a.Command.Args(), " "))
	if text := unprintable(a.Model); text != "" {
		add(key+".model", text, "the name of a model")
	}
	if text := unprintable(a.Vendor); text != "" {
		add(key+".vendor", text, "the name of a vendor, such as anthropic")
	}
	for i, arg := range a.Args {
		text(fmt.Sprintf("%s.args[%d]", key, i), arg)
	}
	if text, want := p.Keeps(tools); text != "" {
		add("approvals.tools", text, want)
	}
	if _, hasOther := agents.Servers(a.Args); hasOther && a.Use == agents.Claude && slices.Contains(tools, string(agents.MCP)) {
		add("approvals.tools", "is mcp, but claude approves MCP servers only by name, and their names are in a file", "mcp__SERVER for each server, or the JSON itself after --mcp-config in "+key+".args")
	}
	if capped && !p.Cost && !(p.Metering.Meterable() && a.Metered()) { // the meter can cap costs if it knows the price
		instead := "limits.toolCalls, or another agent"
		if p.Tokens {
			instead = "limits.tokens or " + instead
		}
		if p.Metering.Meterable() {
			instead = "agent.meter: " + Auto + ", " + instead
		}
		add("limits.costUSD", "can't be kept, since "+a.Use+" does not say what it costs", instead)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		variableKey := Join(key+".env", name)
		switch {
		case !variable().MatchString(name):
			add(variableKey, "is not the name of a variable", "letters, digits and _, not starting with a digit")
		case strings.HasPrefix(name, "PAWL_"):
			add(variableKey, "is set by pawl itself", "another name")
		case strings.ContainsRune(a.Env[name], 0):
			add(variableKey, "contains a NUL byte", "text")
		}
	}
}

var variable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// maxID leaves room for what is added to a loop ID in a file name and a ref.
const maxID = 200

// ValidID returns what is wrong with a loop ID, nil if nothing is. Git's rules for refs do not matter here, because
// what git does not allow is replaced when an ID becomes a ref.
func ValidID(id string) error {
	switch {
	case strings.TrimSpace(id) == "":
		return fmt.Errorf("is empty")
	case len(id) > maxID:
		return fmt.Errorf("is %d bytes long, at most %d are allowed", len(id), maxID)
	case strings.HasPrefix(id, "-"):
		return fmt.Errorf("starts with a hyphen and would be taken for an option")
	case strings.TrimSpace(id) != id:
		return fmt.Errorf("starts or ends with a space")
	}
	if text := unprintable(id); text != "" {
		return fmt.Errorf("%s", text)
	}
	for _, r := range id {
		if r > unicode.MaxASCII { // Temporal's client sends the ID in a header, which allows only ASCII
			return fmt.Errorf("contains the character %c, and Temporal takes only ASCII there", r)
		}
	}
	return nil
}

// unprintable returns what in s can't be shown on one line; "" if nothing.
func unprintable(s string) string {
	if !utf8.ValidString(s) {
		return "is not valid UTF-8"
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return fmt.Sprintf("contains the unprintable character %U", r)
		}
	}
	return ""
}

// badGlob returns what is wrong with a glob, and what would be right.
func badGlob(glob string) (text, want string) {
	const example = `a glob relative to the repository's root, such as "src/**"`
	switch {
	case strings.TrimSpace(glob) == "":
		return "is empty", example
	case strings.ContainsFunc(glob, unicode.IsControl):
		return "contains a control character", example
	case path.IsAbs(glob), len(glob) > 2 && glob[1] == ':' && glob[2] == '\\':
		return "is absolute: " + Show(glob), example
	case slices.Contains(strings.Split(glob, "/"), ".."):
		return "leaves the repository: " + Show(glob), example
	case strings.HasPrefix(glob, "!"):
		return "is " + Show(glob) + ", but globs can't be negated", "a glob of the files that may change; files that must not change go into protect"
	case !doublestar.ValidatePattern(glob):
		return "is not a valid glob: " + Show(glob), "balanced [ ] and { }, no backslash at the end"
	}
	return "", ""
}
