package activities

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"pawl/internal/agent/stream"
	"pawl/internal/egress"
	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/held"
	"pawl/internal/loop"
	"pawl/internal/meter"
	"pawl/internal/meter/tally"
	"pawl/internal/proc"
	"pawl/internal/program"
	"pawl/internal/spec"
)

// meterFile is where the meter notes what the calls of a step have used, in the step's folder.
const meterFile = "meter.jsonl"

// agentEnvironment is what the program of an agent has in its environment before it is called.
func agentEnvironment(inherited []string, programs []program.Program, own spec.Agent, dir string) []string {
	env := slices.Clone(inherited)
	for _, p := range programs {
		env = slices.Concat(env, p.Env, present(p.Keys), pinned(p, dir))
	}
	return later(append(env, granted(own.Env)...))
}

// toMeter reports whether nobody but the meter can tell what a program uses while it works.
func toMeter(p program.Program) bool { return p.Metering.Base != "" && !p.Tokens }

// direction is how the programs of an agent with an environment speak to pawl's meter; why says why they do not, as the
// rest of a sentence that begins with the agent's name. The meter of a call has one provider, and so one program.
func (ws *loopWorkspace) direction(programs []program.Program, own spec.Agent, env []string) (r program.Route, why string) {
	switch {
	case own.Use == spec.UseCommand || len(programs) != 1 || own.Use != programs[0].Name && len(programs[0].Metering.Args) > 0:
		return r, "can't be led to pawl's meter"
	case !own.Metered():
		return r, "is not led to pawl's meter (agent.meter is off)"
	case ws.Sandbox.Use != spec.Off && ws.Sandbox.Network == spec.None:
		return r, "has no network (sandbox.network is none)"
	}
	values := valuesOf(env)
	return programs[0].Metering.Direction(values, own.Args, func(file string) []byte {
		text, err := os.ReadFile(filepath.Join(values["HOME"], file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return []byte{} // it is there
		}
		return text
	})
}

// counting are the lines of the contract on who counts what each agent uses.
func (ws *loopWorkspace) counting(s spec.Spec) (lines []string, err error) {
	inherited, err := ws.environment()
	if err != nil {
		return nil, err
	}
	for _, own := range agentsOf(s) {
		a, known := stream.Lookup(own.Use)
		if !known || !a.Streams() {
			continue
		}
		r, why := ws.routeOf(own, s.Sandbox.Agents, inherited)
		line := a.Name + "'s tokens, tool calls and cost are counted by pawl's meter, through which it speaks to its model; pawl keeps " + strings.Join(r.Keys, " and ")
		if why != "" {
			line = "what " + a.Name + " uses its own stream tells, not pawl's meter: it " + why
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// uncounted refuses a budget of tokens that nobody would keep, nil where it is kept.
func (ws *loopWorkspace) uncounted(s spec.Spec) error {
	inherited, err := ws.environment()
	if err != nil || s.Limits.Tokens == nil {
		return err
	}
	for _, own := range agentsOf(s) {
		p, _ := own.Row()
		if _, why := ws.routeOf(own, s.Sandbox.Agents, inherited); why != "" && toMeter(p) {
			return unkept(p, why)
		}
	}
	return nil
}

// routeOf is the direction of an agent as it would be called now.
func (ws *loopWorkspace) routeOf(own spec.Agent, named, inherited []string) (program.Route, string) {
	programs := own.Programs(named)
	return ws.direction(programs, own, agentEnvironment(inherited, programs, own, ws.desk.Dir))
}

// unkept is that of one program.
func unkept(p program.Program, why string) error {
	var names []string
	for _, key := range p.Metering.Keys {
		names = append(names, key.Name)
	}
	return refuse(fault.New(fault.PreconditionFailed, "limits.tokens can't be kept: %s does not say what it uses while it works, and %s", p.Name, why).
		Advise("Set " + spec.Or(names) + " for the worker, so that pawl's meter counts, or take limits.tokens out; limits.toolCalls and limits.activeTime are kept."))
}

// metered leads the program of a command to the meter: it gets a placeholder instead of each key, and the meter's address
// as its provider's. The command's arguments have been led there already.
func (ws *loopWorkspace) metered(p program.Program, r program.Route, c *proc.Command, budget map[loop.Resource]evidence.Decimal) error {
	prices, err := ws.machine.prices()
	if err != nil {
		return err
	}
	values := valuesOf(c.Env)
	m := meter.Config{
		Upstream: r.Upstream, Keys: map[string]string{}, Prices: prices, File: filepath.Join(filepath.Dir(c.Stdout), meterFile),
		Budget: meter.Budget{Tokens: limitOf(budget, loop.Tokens, 1), Nano: limitOf(budget, loop.CostUSD, 1e9), Tools: limitOf(budget, loop.ToolCalls, 1)},
	}
	m.Proxy, m.Direct = egress.Upstream()
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} {
		if values[name] != "" {
			m.Roots = append(m.Roots, values[name])
		}
	}
	c.Env = slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool { // one that it would prefer
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(p.Keys, name)
	})
	for _, name := range r.Keys {
		placeholder := "pawl-" + uuid.NewString()
		m.Keys[placeholder] = values[name]
		c.Env = append(c.Env, name+"="+placeholder)
	}
	c.Env = append(c.Env, p.Metering.Base+"=http://"+meter.Address)
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		c.Env = append(c.Env, name+"="+strings.TrimPrefix(values[name]+",127.0.0.1", ","))
	}
	c.Env, c.Meter = later(c.Env), &m
	return nil
}

// limitOf is a budget in units of which there are so many in one.
func limitOf(budget map[loop.Resource]evidence.Decimal, r loop.Resource, units float64) meter.Limit {
	left, limited := budget[r]
	return meter.Limit{Set: limited, At: int64(math.Round(min(left.Float()*units, 1e18)))}
}

// pricesFile is where a person gives prices of their own, in $PAWL_HOME.
const pricesFile = "prices.json"

// prices are the person's own, and the list prices.
func (m *machine) prices() (tally.Prices, error) {
	path := filepath.Join(m.Home.Dir, pricesFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return tally.Listed(), nil
	}
	var own tally.Prices
	if err == nil {
		own, err = tally.ParsePrices(text)
	}
	if err != nil {
		return nil, refuse(fault.New(fault.PreconditionFailed, "the prices in %s can't be read: %v", path, err).Advise("Correct the file, or remove it: the list prices count then."))
	}
	return append(own, tally.Listed()...), nil
}

// valuesOf are the variables of an environment, where the last of a name counts.
func valuesOf(env []string) map[string]string {
	values := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	return values
}

// counted is what the meter has noted of a step: all its attempts, those that were lost too.
type counted struct {
	file  string
	at    int64
	total tally.Total
}

// read takes what is new.
func (m *counted) read() error {
	f, err := os.Open(held.At(m.file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was asked yet
	}
	if err != nil {
		return fmt.Errorf("reading what the meter counted: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, m.at, 1<<40))
	if err != nil {
		return fmt.Errorf("reading what the meter counted: %w", err)
	}
	m.at += int64(m.total.Read(text))
	return nil
}

// slack is by how much stream and meter may differ: a twentieth, and at least 5000 tokens. The meter counts requests that
// no stream has, such as the one for a session's title, of a few hundred tokens to a few thousand; a stream counts an
// answer that is under way.
func (m *counted) slack() int64 { return max(5000, m.total.Tokens()/20) }

// whole reports whether the meter has counted all that a stream tells of.
func (m *counted) whole(told loop.Usage) bool {
	return m.total.Calls > 0 && m.total.Tokens()+m.slack() >= told.InputTokens+told.OutputTokens
}

// in returns what was used: what the meter has counted, where that is all that the stream tells of. The cost is the
// meter's where it knows the price of every model; the tool calls are the larger number of both, since the stream has none
// of nested agents and the meter none that a program makes by itself.
func (m *counted) in(told loop.Usage) loop.Usage {
	u := told
	u.ToolCalls = max(told.ToolCalls, m.total.Tools)
	cost := stream.Dollars(m.total.Nano)
	if !m.whole(told) {
		if cost.Cmp(told.CostUSD) > 0 {
			u.CostUSD = cost
		}
		return u
	}
	u.InputTokens, u.OutputTokens = m.total.Input, m.total.Output
	if len(m.total.Unknown) == 0 || cost.Cmp(told.CostUSD) > 0 {
		u.CostUSD = cost
	}
	return u
}

// warnings are what people should know of a call of which a stream has told so much. ended says that the program itself
// said how it ended, so that its numbers are its last.
func (m *counted) warnings(told loop.Usage, ended bool) (all []string) {
	t := m.total
	said := told.InputTokens + told.OutputTokens
	switch {
	case t.Calls == 0 && said > 0:
		all = append(all, "none of the agent's requests to its model went through pawl's meter: what its own stream tells counts")
	case ended && said-t.Tokens() > m.slack():
		all = append(all, fmt.Sprintf("the agent's own stream tells of %d tokens, and pawl's meter has counted %d: not all of its requests went through the meter, and the stream counts", said, t.Tokens()))
	case ended && t.Tokens()-said > m.slack():
		all = append(all, fmt.Sprintf("the agent's own stream tells of %d tokens, and pawl's meter has counted %d, which counts", said, t.Tokens()))
	}
	if t.Guessed > 0 {
		all = append(all, fmt.Sprintf("of %d of its model's answers nobody told the tokens: they are estimated by their length", t.Guessed))
	}
	if len(t.Unknown) > 0 && told.CostUSD.IsZero() {
		all = append(all, "pawl knows no price of the model "+evidence.Description(strings.Join(t.Unknown, ", "))+", so that its cost is not estimated: add it to "+pricesFile+" in $PAWL_HOME")
	}
	return all
}
