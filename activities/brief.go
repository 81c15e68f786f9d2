package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"pawl/internal/act"
	"pawl/internal/agent"
	"pawl/internal/agent/stream"
	"pawl/internal/durable"
	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/issue"
	"pawl/internal/kind"
	"pawl/internal/loop"
	"pawl/internal/proc"
	"pawl/internal/spec"
	"pawl/internal/workspace"
)

// exchange is the folder in which an agent finds its prompt and leaves its result.
type exchange struct {
	dir  string
	goal string
	call *call // nil where the agent's stdout is no stream
}

// run runs the agent; one whose stdout is a stream is followed.
func (e *exchange) run(ctx context.Context, s *proc.Supervisor, c proc.Command) (proc.Result, error) {
	if e.call != nil {
		return e.call.run(ctx, s, c)
	}
	return s.Run(ctx, c)
}

func (e *exchange) promptFile() string { return filepath.Join(e.dir, "prompt.md") }
func (e *exchange) resultFile() string { return filepath.Join(e.dir, "result.json") }

// brief writes the prompt of an agent call and completes its command: the role's own program and
// arguments, the prompt on stdin, PAWL_* in the environment. What the agent is told comes from
// the ledger at head, so it is not in history; the results so far lie on the desk.
func (ws *loopWorkspace) brief(ctx context.Context, in act.Call, head string, c *proc.Command, tell func(loop.Usage, string)) (*exchange, error) {
	head = cmp.Or(head, in.Ledger)
	contract, err := ws.ledger.Contract(ctx, head)
	if err != nil {
		return nil, err
	}
	state, err := ws.ledger.State(ctx, head)
	if err != nil {
		return nil, err
	}
	if err := ws.copyResults(ctx, head); err != nil {
		return nil, err
	}
	k, err := kind.Of(state.Kind)
	if err != nil {
		unknown, _ := errors.AsType[*fault.Error](err)
		return nil, refuse(unknown)
	}
	s := contract.Spec
	own := s.Agent.For(in.Role)
	adapter, built := stream.Lookup(own.Use)
	if !built {
		return nil, refuse(fault.New(fault.InvalidSpec, "this version knows no agent %q", own.Use))
	}
	brief := agent.Brief{
		Kind: k, State: state, Goal: s.Goal, Role: in.Role, Phase: in.Phase, Attempt: in.Attempt, Test: s.Test.Command,
		Direction: s.Verify.Direction, Metric: s.Verify.Command, Guard: s.Guard.Command, Scope: s.Scope, NewFiles: s.NewFiles,
		Idea: in.Idea, Repair: in.Repair, Guidance: in.Guidance,
		Streams: adapter.Streams(),
	}
	if s.Verify.Target != nil {
		brief.Target = s.Verify.Target.String()
	}
	for _, seal := range contract.Sealed {
		brief.Sealed = append(brief.Sealed, seal.Path)
	}
	if in.Evidence != "" {
		brief.Evidence = evidenceIn(in.Evidence)
	}
	if brief.Plan, err = ws.plan(ctx, state, head); err != nil {
		return nil, err
	}
	if of := in.Proposal; of != nil {
		brief.Proposal, brief.Criteria = of, issue.Parse([]byte(s.Goal)).Criteria
		if brief.Diff, err = ws.proposed(ctx, of, agent.BoundProposal); err != nil {
			return nil, err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		brief.Log, err = ws.store.Log(gctx, in.Head, 20)
		return err
	})
	if last := state.LastChange; last != nil {
		g.Go(func() (err error) {
			brief.LastDiff, _, err = ws.store.Diff(gctx, last.Parent, last.Commit, 8<<10)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	text := brief.Text()
	e := &exchange{dir: filepath.Join(workspace.Exchange(ws.machine.Home, ws.Ref), stepName(in.Key)), goal: s.Goal}
	if err := os.RemoveAll(e.dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the exchange: %w", err)
	}
	if err := os.WriteFile(e.promptFile(), []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("writing the prompt: %w", err)
	}
	// The copy beside the logs is the record; what the agent has is the agent's.
	if err := os.WriteFile(filepath.Join(filepath.Dir(c.Stdout), "prompt.md"), []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("writing the prompt: %w", err)
	}
	c.Stdin = e.promptFile()
	c.Argv = adapter.Argv(stream.Call{
		Agent: own, Tools: s.Approvals.Tools, Session: uuid.NewString(), Budget: in.Budget,
		MayEdit: slices.Contains(govern.Needs(in.Phase), spec.CanEditSource) && govern.Permit(s, in.Role, spec.CanEditSource) == nil,
	})
	c.Env = later(slices.Concat(c.Env, adapter.Env, credentials(adapter.Keys), granted(own.Env), []string{
		"PAWL_LOOP=" + ws.Loop, "PAWL_KIND=" + state.Kind, "PAWL_ROLE=" + in.Role, "PAWL_PHASE=" + in.Phase,
		"PAWL_ITERATION=" + strconv.Itoa(in.Key.Iteration), "PAWL_ATTEMPT=" + strconv.Itoa(in.Attempt),
		"PAWL_PROMPT=" + e.promptFile(), "PAWL_RESULT=" + e.resultFile(),
	}))
	if own.Use == spec.UseCommand && own.Model != "" {
		c.Env = append(c.Env, "PAWL_MODEL="+own.Model)
	}
	if adapter.Streams() {
		c.OutputLimit = streamLimit
		if e.call, err = newCall(adapter, in, c.Stdout, tell); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// take reads what the agent left: words, and what it says it spent. A result file that can't be
// read is a warning; spending that is not reported counts as one tool call. Of an agent whose
// stdout is a stream, that says what was spent and how it ended, and the file has words only.
func (e *exchange) take(out *act.Called, stdout string, in act.Call) (printed string) {
	r, err := agent.ReadResult(e.resultFile())
	if e.call != nil {
		printed = e.call.take(out)
	} else {
		first, _ := readFile(stdout, maxPlan)
		printed = string(first)
		out.Description = evidence.Description(printed)
		out.Usage = reported(r)
	}
	out.Regenerate = out.Regenerate || r.Regenerate
	if in.Proposal != nil {
		out.Opinion = opinion(in.Proposal, e.goal, r.Review, printed)
	}
	if err != nil {
		out.Warning = err.Error()
	}
	if said := evidence.Description(r.Description); said != "" {
		out.Description = said
	}
	out.Session = cmp.Or(out.Session, loop.Clip(evidence.Description(r.SessionID), 100))
	out.Idea = evidence.Description(r.Idea)
	if gave := evidence.Description(string(r.GiveUp)); gave != "" {
		out.GiveUp = loop.Clip(gave, 300)
	}
	return printed
}

// reported is what an agent says that it spent in a call.
func reported(r agent.Result) loop.Usage {
	u := loop.Usage{AgentCalls: 1, ToolCalls: 1, InputTokens: int64(r.InputTokens), OutputTokens: int64(r.OutputTokens)}
	if r.ToolCalls != nil {
		u.ToolCalls = int64(*r.ToolCalls)
	}
	if r.CostUSD != nil {
		u.CostUSD = *r.CostUSD
	}
	return u
}

// secret are parts of names of variables whose values no command of a loop gets unasked.
var secret = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "COOKIE", "SESSION", "HEADERS"}

// cleaned returns an environment without git's and pawl's variables, Temporal's connection and
// secrets, so that what runs in a loop neither reaches another repository nor leaks.
func cleaned(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		upper := strings.ToUpper(name)
		for _, prefix := range []string{"GIT_", "PAWL_", "TEMPORAL_", "SUPERVISED_BY"} {
			if strings.HasPrefix(upper, prefix) {
				return true
			}
		}
		return slices.ContainsFunc(secret, func(part string) bool { return strings.Contains(upper, part) })
	})
}

// environment is what the loop's commands inherit: this worker's environment as it was when the
// contract was drawn, cleaned. Whichever shell a later worker is started from makes no difference.
func (ws *loopWorkspace) environment() ([]string, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.env != nil {
		return ws.env, nil
	}
	path := filepath.Join(ws.machine.Home.Loop(ws.Ref), "environment.json")
	err := durable.ReadJSON(path, &ws.env)
	torn := errors.Is(err, durable.ErrTorn)
	if torn {
		ws.machine.Logger.Warn("the loop's environment can't be read: it is this worker's from now on", "loop", ws.Loop, "error", err)
	}
	if torn || errors.Is(err, fs.ErrNotExist) {
		ws.env = cleaned(os.Environ())
		err = durable.WriteJSON(path, ws.env)
	}
	if err != nil {
		ws.env = nil
		return nil, fmt.Errorf("reading the loop's environment: %w", err)
	}
	return ws.env, nil
}

// granted is agent.env: values as the spec gives them, $NAME and ${NAME} taken from the worker's
// environment, so that a key is named in the spec and never stands in it.
func granted(env map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+os.ExpandEnv(env[name]))
	}
	return out
}

// credentials are an agent program's own, as the worker has them. It was chosen to be given them.
func credentials(names []string) (env []string) {
	for _, name := range names {
		if value, has := os.LookupEnv(name); has {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// later returns the environment with one value for each name, the last. Which of two a program
// reads is its own business.
func later(env []string) []string {
	last := map[string]int{}
	for i, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = i
	}
	var out []string
	for i, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); last[name] == i {
			out = append(out, kv)
		}
	}
	return out
}
