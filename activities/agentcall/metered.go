package agentcall

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"pawl/activities/workspace"
	"pawl/internal/agent/adapter"
	"pawl/internal/exec/egress"
	"pawl/internal/exec/llmproxy"
	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
	"pawl/internal/exec/usage"
	"pawl/internal/fault"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/result"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/agents"
)

// meterFile is the file in a step's folder in which the meter records what the step's calls have used.
const meterFile = "meter.jsonl"

// agentEnvironment returns the environment of an agent's program, before a call changes it.
func agentEnvironment(inherited []string, programs []agents.Program, agent spec.Agent) []string {
	env := slices.Clone(inherited)
	for _, p := range programs {
		env = slices.Concat(env, p.Env, workspace.Present(p.Keys))
	}
	return workspace.Later(append(env, workspace.Granted(agent.Env)...))
}

// toMeter returns the first of these budgets that only the meter can keep for a program, "" for none.
func toMeter(p agents.Program, budget map[loop.Resource]metric.Decimal) loop.Resource {
	_, tokens := budget[loop.Tokens]
	_, dollars := budget[loop.CostUSD]
	switch {
	case !p.Metering.Meterable():
	case tokens && !p.Tokens:
		return loop.Tokens
	case dollars && !p.Cost:
		return loop.CostUSD
	}
	return ""
}

// direction returns how the programs of an agent reach pawl's meter. If they do not, reason is the rest of a
// sentence that begins with the agent's name. The meter of a call has one provider, and so serves one program.
func direction(
	ws *workspace.Workspace, programs []agents.Program, agent spec.Agent, env []string,
) (r agents.Route, reason string) {
	switch {
	case agent.Use == spec.UseCommand || len(programs) != 1:
		return r, "can't use pawl's meter"
	case !agent.Metered():
		return r, "does not use pawl's meter (agent.meter is off)"
	case ws.Sandbox.Use != spec.Off && ws.Sandbox.Network == spec.None:
		return r, "has no network (sandbox.network is none)"
	}
	values, metering := sandbox.Values(env), programs[0].Metering
	if agent.Use == agents.ACP {
		metering = programs[0].MeteringByACP()
	}
	return metering.Direction(values, agent.Args, agent.Model, func(file string) []byte {
		text, err := os.ReadFile(filepath.Join(values["HOME"], file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return []byte{} // the file exists
		}
		return text
	})
}

// Counting returns the lines of the contract that say, for each agent, who counts its usage. It refuses a budget of tokens
// or dollars that nobody would keep; key then names that budget.
func Counting(ws *workspace.Workspace, s spec.Spec) (lines []string, key string, err error) {
	inherited, err := ws.Environment()
	if err != nil {
		return nil, "", err
	}
	budget := rules.Limits(s)
	for _, keyed := range s.Agent.All() {
		r, reason := routeOf(ws, keyed.Agent, s.Sandbox.Agents, inherited)
		p, _ := keyed.Row()
		switch resource := toMeter(p, budget); {
		case resource == "" || err != nil:
		case reason != "":
			key, err = "limits."+string(resource), unkept(p, resource, reason)
		default:
			key, err = "limits."+string(loop.CostUSD), unpriced(ws, keyed.Agent, p, s.Limits.CostUSD != nil)
		}
		a, found := adapter.Lookup(keyed.Use)
		if !found || !a.Streams() {
			continue
		}
		line := a.Name + " speaks to its model through pawl's meter, which counts its tokens, tool calls and cost; "
		switch {
		case len(r.Keys) > 0:
			line += "pawl keeps " + strings.Join(r.Keys, " and ")
		case ws.Sandbox.Use != spec.Off && sandbox.Probe().Files != sandbox.ByNothing:
			line += "pawl keeps the key from its settings"
		default:
			line += "its key is in its own settings, which it can read"
		}
		if reason != "" {
			line = a.Name + "'s usage is what its own stream reports, not what pawl's meter counts: it " + reason
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines, key, err
}

// unpriced refuses a budget of dollars if pawl knows no price of the model, and the program does not report its cost.
func unpriced(ws *workspace.Workspace, agent spec.Agent, p agents.Program, capped bool) error {
	if !capped || p.Cost {
		return nil
	}
	if agent.Model == "" {
		return workspace.Refuse(fault.New(fault.PreconditionFailed, "limits.costUSD can't be kept: %s does not say what it costs, and without agent.model pawl knows no price", p.Name).
			Advise("Name the model in agent.model, or take limits.costUSD out."))
	}
	prices, err := prices(ws.Machine)
	if err != nil {
		return err
	}
	if _, found := prices.Nano(agent.Model, usage.Usage{}); found {
		return nil
	}
	return workspace.Refuse(fault.New(fault.PreconditionFailed, "limits.costUSD can't be kept: pawl knows no price of the model %s, and %s does not say what it costs", metric.Description(agent.Model), p.Name).
		Advise(fmt.Sprintf(`Add {"model": %q, "input": …, "output": …, "cacheRead": …} to %s, in dollars per million tokens, or take limits.costUSD out.`, agent.Model, filepath.Join(ws.Machine.Main.Dir, pricesFile))))
}

// routeOf returns the direction of an agent in a call at this moment.
func routeOf(ws *workspace.Workspace, agent spec.Agent, named, inherited []string) (agents.Route, string) {
	programs := agent.Programs(named)
	return direction(ws, programs, agent, agentEnvironment(inherited, programs, agent))
}

// unkept returns the refusal of Counting for one program and budget.
func unkept(p agents.Program, resource loop.Resource, reason string) error {
	text := map[loop.Resource]string{loop.Tokens: "what it uses while it works", loop.CostUSD: "what it costs"}[resource]
	set := "the key of its provider"
	if names := p.Metering.KeyNames(); len(names) > 0 {
		set = spec.Or(names)
	}
	return workspace.Refuse(fault.New(fault.PreconditionFailed, "limits.%s can't be kept: %s does not say %s, and %s", resource, p.Name, text, reason).
		Advise(fmt.Sprintf("Set %s for the worker, so that pawl's meter counts, or take limits.%s out; limits.toolCalls and limits.activeTime are kept.", set, resource)))
}

// metered makes a command's program use the meter: placeholders replace the keys in its environment, and the meter's
// address that of its provider. The command's arguments already name the meter. dir has files of this call alone.
func metered(ws *workspace.Workspace, p agents.Program, r agents.Route, dir string, c *supervisor.Command, budget map[loop.Resource]metric.Decimal) error {
	prices, err := prices(ws.Machine)
	if err != nil {
		return err
	}
	values := sandbox.Values(c.Env)
	if _, capped := budget[loop.CostUSD]; capped && !p.Cost {
		prices = prices.Capped()
	}
	m := llmproxy.Config{
		Upstream: r.Upstream, Keys: map[string]string{}, Files: map[string]string{}, Prices: prices, File: filepath.Join(filepath.Dir(c.Stdout), meterFile),
		Budget: llmproxy.Budget{Tokens: limitOf(budget, loop.Tokens, 1), Nano: limitOf(budget, loop.CostUSD, 1e9), Tools: limitOf(budget, loop.ToolCalls, 1)},
	}
	m.Proxy, m.Direct = egress.Upstream()
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} {
		if values[name] != "" {
			m.Roots = append(m.Roots, values[name])
		}
	}
	c.Env = slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool { // the program would prefer this variable
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(p.Keys, name)
	})
	placeholder := "pawl-" + uuid.NewString()
	for i, name := range r.Keys {
		if i > 0 {
			placeholder = "pawl-" + uuid.NewString()
		}
		m.Keys[placeholder] = values[name]
		c.Env = append(c.Env, name+"="+placeholder)
	}
	if len(r.Keys) == 0 {
		m.Keys[placeholder] = r.Secret
	}
	replacer := strings.NewReplacer("{base}", "http://"+llmproxy.Address, "{key}", placeholder, "{dir}", dir)
	c.Env = append(c.Env, list.Map(r.Env, replacer.Replace)...)
	for name, text := range r.Files {
		m.Files[filepath.Join(dir, name)] = replacer.Replace(text)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		c.Env = append(c.Env, name+"="+strings.TrimPrefix(values[name]+",127.0.0.1", ","))
	}
	c.Env, c.Meter = workspace.Later(c.Env), &m
	return nil
}

// limitOf returns a budget in a smaller unit; units is how many of them one unit of the budget has.
func limitOf(budget map[loop.Resource]metric.Decimal, r loop.Resource, units float64) llmproxy.Limit {
	left, limited := budget[r]
	return llmproxy.Limit{Set: limited, At: int64(math.Round(min(left.Float()*units, 1e18)))}
}

// pricesFile is the file in $PAWL_HOME with a person's own prices.
const pricesFile = "prices.json"

// prices returns the person's own prices and the list prices.
func prices(m *workspace.Machine) (usage.Prices, error) {
	path := filepath.Join(m.Main.Dir, pricesFile)
	text, err := os.ReadFile(dirfd.At(path))
	if errors.Is(err, fs.ErrNotExist) {
		return usage.Listed(), nil
	}
	var configured usage.Prices
	if err == nil {
		configured, err = usage.ParsePrices(text)
	}
	if err != nil {
		return nil, workspace.Refuse(fault.New(fault.PreconditionFailed, "the prices in %s can't be read: %v", path, err).Advise("Correct the file, or remove it: the list prices count then."))
	}
	return append(configured, usage.Listed()...), nil
}

// counted is what the meter has recorded for a step, in all its attempts, including lost ones.
type counted struct {
	file  string
	at    int64
	total usage.Total
	since time.Time // when the provider began to refuse; zero if it does not
}

// refusal returns the provider's last answer if it refused work, nil if it has worked since.
func (m *counted) refusal() *result.Refusal {
	f := m.total.Failing
	if f == nil || result.ByStatus(f.Status) == "" {
		return nil
	}
	r := &result.Refusal{Class: result.ByStatus(f.Status), Status: f.Status, Said: fmt.Sprintf("%d %s", f.Status, f.Error)}
	if f.Until > 0 {
		r.Until = time.Unix(f.Until, 0).UTC()
	}
	return r
}

// merged returns the refusal in the stream, or the provider's own answer, if the meter has it.
func (m *counted) merged(byAgent *result.Refusal) *result.Refusal {
	r := m.refusal()
	if r == nil || byAgent != nil && byAgent.Class == r.Class && r.Until.IsZero() {
		return byAgent
	}
	return r
}

const (
	// settled is how long all requests must be refused before the program is ended: it may ask another model at once.
	settled = 3 * time.Second
	// patient is how long a program may keep asking a provider that fails.
	patient = time.Minute
)

// hopeless reports whether the program keeps asking a provider that does not accept its credentials, that has said to
// come back after a longer time, or that has failed for long. A loop that sleeps waits at no cost.
func (m *counted) hopeless(now time.Time) bool {
	r := m.refusal()
	switch {
	case r == nil:
		m.since = time.Time{}
		return false
	case m.total.Open > 0:
		return false
	case m.since.IsZero():
		m.since = now
	}
	refused := now.Sub(m.since)
	return refused > patient || refused > settled && (r.Until.After(now.Add(patient)) || r.Status == 401 && !m.total.Worked)
}

// heard returns when the last answer of the provider, or a part of it, arrived; zero if none has.
func (m *counted) heard() time.Time {
	info, err := os.Stat(dirfd.At(m.file))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func (m *counted) read() error {
	var text bytes.Buffer
	if err := workspace.ReadFrom(m.file, m.at, math.MaxInt64, &text); err != nil {
		return fmt.Errorf("reading what the meter counted: %w", err)
	}
	m.at += int64(m.total.Read(text.Bytes()))
	return nil
}

// slack is how much stream and meter may differ, at least 5000 tokens. The meter also counts requests that no stream has,
// such as the one for a session's title; a stream also counts an unfinished answer.
func (m *counted) slack() int64 { return max(5000, m.total.Tokens()/20) }

// in returns the usage: the meter's count if it covers everything that the stream reports, else the stream's. The
// cost is the meter's if it knows the price of every model. The tool calls are the larger of both numbers: the stream
// lacks those of nested agents, and the meter lacks those that a program makes by itself.
func (m *counted) in(byAgent loop.Usage) loop.Usage {
	u := byAgent
	u.ToolCalls = max(byAgent.ToolCalls, m.total.Tools)
	cost := adapter.Dollars(m.total.Nano)
	reported := byAgent.InputTokens + byAgent.OutputTokens
	hasCountedAll := m.total.Calls > 0 && m.total.Tokens()+m.slack() >= reported
	if !hasCountedAll {
		if cost.Cmp(byAgent.CostUSD) > 0 {
			u.CostUSD = cost
		}
		return u
	}
	u.InputTokens, u.OutputTokens = m.total.Input, m.total.Output
	if len(m.total.Unknown) == 0 || cost.Cmp(byAgent.CostUSD) > 0 {
		u.CostUSD = cost
	}
	return u
}

// warnings returns what people should know about a call, given the stream's totals. ended means that the program itself
// reported its end, so that its numbers are final.
func (m *counted) warnings(byAgent loop.Usage, ended bool) (warnings []string) {
	t := m.total
	said := byAgent.InputTokens + byAgent.OutputTokens
	switch {
	case t.Calls == 0 && said > 0:
		warnings = append(warnings, "none of the agent's requests to its model went through pawl's meter: the usage that its own stream reports counts")
	case ended && said-t.Tokens() > m.slack():
		warnings = append(warnings, fmt.Sprintf("the agent's own stream reports %d tokens, but pawl's meter counted %d: not all of its requests went through the meter, so the stream's figure counts", said, t.Tokens()))
	case ended && t.Tokens()-said > m.slack():
		warnings = append(warnings, fmt.Sprintf("the agent's own stream reports %d tokens, but pawl's meter counted %d; the meter's figure counts", said, t.Tokens()))
	}
	if t.Guessed > 0 {
		warnings = append(warnings, fmt.Sprintf("%d of its model's answers came without a number of tokens, so pawl estimates it from their length", t.Guessed))
	}
	if len(t.Unknown) > 0 && byAgent.CostUSD.IsZero() {
		warnings = append(warnings, "pawl knows no price of the model "+metric.Description(strings.Join(t.Unknown, ", "))+", so that its cost is not estimated: add it to "+pricesFile+" in $PAWL_HOME")
	}
	return warnings
}
