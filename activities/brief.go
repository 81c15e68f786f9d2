package activities

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"pawl/internal/act"
	"pawl/internal/agent"
	"pawl/internal/evidence"
	"pawl/internal/loop"
	"pawl/internal/proc"
	"pawl/internal/workspace"
)

// exchange is the folder in which an agent finds its prompt and leaves its result.
type exchange struct {
	dir    string
	prompt int64
}

func (e *exchange) promptFile() string { return filepath.Join(e.dir, "prompt.md") }
func (e *exchange) resultFile() string { return filepath.Join(e.dir, "result.json") }

// brief writes the prompt of an agent call and completes its command: prompt on stdin, PAWL_*
// in the environment (the contract's `use: command`). What the agent is told comes from the
// ledger at head, so it is not in history; the results so far lie on the desk.
func (a *Activities) brief(ctx context.Context, p *place, in act.Step, head string, c *proc.Command) (*exchange, error) {
	head = cmp.Or(head, in.Entry.Ledger)
	contract, err := p.ledger.Contract(ctx, head)
	if err != nil {
		return nil, err
	}
	state, err := p.ledger.State(ctx, head)
	if err != nil {
		return nil, err
	}
	if err := a.copyResults(ctx, p, head); err != nil {
		return nil, err
	}
	s := contract.Spec
	brief := agent.Brief{
		State: state, Goal: s.Goal, Phase: in.Agent.Phase, Attempt: in.Key.Attempt,
		Direction: s.Verify.Direction, Metric: s.Verify.Command, Guard: s.Guard.Command, Scope: s.Scope, NewFiles: s.NewFiles,
		Idea: in.Agent.Idea, Repair: in.Agent.Repair, Guidance: in.Agent.Guidance,
	}
	if s.Verify.Target != nil {
		brief.Target = s.Verify.Target.String()
	}
	for _, seal := range contract.Sealed {
		brief.Sealed = append(brief.Sealed, seal.Path)
	}
	if in.Agent.Evidence != "" {
		brief.Evidence = tailOf(in.Agent.Evidence)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		brief.Log, err = p.store.Log(gctx, in.Head, 20)
		return err
	})
	if last := state.LastChange; last != nil {
		g.Go(func() (err error) {
			brief.LastDiff, _, err = p.store.Diff(gctx, last.Parent, last.Commit, 8<<10)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	text := brief.Text()
	e := &exchange{dir: filepath.Join(workspace.Exchange(a.Home, p.Ref), stepName(in.Key)), prompt: int64(len(text))}
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
	c.Env = append(c.Env, granted(in.Agent.Env)...)
	c.Env = append(c.Env,
		"PAWL_LOOP="+in.Agent.Loop, "PAWL_KIND="+in.Agent.Kind, "PAWL_ROLE="+in.Agent.Role, "PAWL_PHASE="+in.Agent.Phase,
		"PAWL_ITERATION="+strconv.Itoa(in.Key.Iteration), "PAWL_ATTEMPT="+strconv.Itoa(in.Key.Attempt),
		"PAWL_PROMPT="+e.promptFile(), "PAWL_RESULT="+e.resultFile(),
	)
	return e, nil
}

// take reads what the agent left: words, and what it says it spent. A result file that can't be
// read is a warning; spending that is not reported counts as one tool call.
func (e *exchange) take(out *act.Stepped, stdout string) {
	r, err := agent.ReadResult(e.resultFile())
	if err != nil {
		out.Warning = err.Error()
	}
	first, _ := readFile(stdout, 64<<10)
	out.Description = evidence.Description(r.Description)
	if out.Description == "" {
		out.Description = evidence.Description(string(first))
	}
	out.Idea = evidence.Description(r.Idea)
	out.GiveUp = loop.Clip(evidence.Description(string(r.GiveUp)), 300)
	out.PromptBytes = e.prompt
	out.Usage = loop.Usage{AgentCalls: 1, ToolCalls: 1, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens}
	if r.ToolCalls != nil {
		out.Usage.ToolCalls = *r.ToolCalls
	}
	if r.CostUSD != nil {
		out.Usage.CostUSD = *r.CostUSD
	}
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

// granted is agent.env: values as the spec gives them, $NAME and ${NAME} taken from the worker's
// environment, so that a key is named in the spec and never stands in it.
func granted(env map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+os.ExpandEnv(env[name]))
	}
	return out
}
