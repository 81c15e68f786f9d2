package agentcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"pawl/activities/command"
	"pawl/activities/record"
	"pawl/activities/workspace"
	"pawl/internal/agent/adapter"
	"pawl/internal/agent/prompt"
	"pawl/internal/exec/llmproxy"
	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
	"pawl/internal/fault"
	"pawl/internal/ledger"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/remove"
	"pawl/internal/lib/list"
	"pawl/internal/lib/safego"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/internal/spec/agents"
	"pawl/internal/spec/issue"
	"pawl/internal/spec/kind"
)

// Exchange is the folder in which an agent finds its prompt and leaves its result.
type Exchange struct {
	ws   *workspace.Workspace
	Dir  string
	goal string
	call *call // nil if the agent's stdout is not a stream
	// plain is the silence of an agent whose stdout is not a stream.
	plain silence
	// programs are the known programs that the agent is or starts.
	programs []agents.Program
	label    string    // the agent in a few words, as people know it
	spared   deskFiles // the files in which it writes for itself on the desk
	signed   signIns   // the sign-in files that it obeys
	models   []string  // the addresses of its models' servers, as far as its environment has them
}

// RunAgent lets the loop's supervisor run an agent. The agent gets no variables from the repository.
func RunAgent(ctx context.Context, w *command.Work, c supervisor.Command, e *Exchange) (out api.Outcome, err error) {
	w.Agents = append(w.Agents, list.Map(e.programs, func(p agents.Program) string { return p.Name })...)
	record := filepath.Join(w.Dir, "variables.json")
	variables, err := emptyVariables(c.Dir, w.In.Head, record, e.programs)
	run := command.Plainly
	switch {
	case e.call != nil: // its stdout is a stream, which is followed
		run = e.call.run
	case e.plain.limit > 0:
		run = e.plain.run
	}
	if err == nil {
		out, err = w.Run(ctx, c, run)
	}
	restored := variables.putBack(c.Dir)
	if restored == nil {
		_ = os.Remove(dirfd.At(record))
	}
	return out, cmp.Or(err, restored)
}

// silence is that of the agent's program.
func (e *Exchange) silence() *silence {
	if e.call != nil {
		return &e.call.quiet
	}
	return &e.plain
}

func (e *Exchange) promptFile() string { return filepath.Join(e.Dir, "prompt.md") }

const resultName = "result.json"

// boundInstructions is the maximum size in bytes of a repository's file of instructions.
const boundInstructions = 64 << 10

// brief writes the prompt of an agent call and completes its command: the role's own program and arguments, the
// prompt on stdin, PAWL_* in the environment. The content of the prompt comes from the ledger at head, so it is not
// in history. brief also copies the results so far to the desk.
func brief(ctx context.Context, ws *workspace.Workspace, input api.Call, head string, c *supervisor.Command, tell func(loop.Usage, string)) (*Exchange, error) {
	head = cmp.Or(head, input.Ledger)
	contract, err := ws.Book.Contract(ctx, head)
	if err != nil {
		return nil, err
	}
	state, err := ws.Book.State(ctx, head)
	if err != nil {
		return nil, err
	}
	if err := copyResults(ctx, ws, head); err != nil {
		return nil, err
	}
	k, err := kind.Of(state.Kind)
	if err != nil {
		return nil, workspace.Refusal(err)
	}
	s := contract.Spec
	chain := s.Agent.Chain(input.Role)
	agent := chain[min(input.Substitute, len(chain)-1)]
	agentAdapter, built := adapter.Lookup(agent.Use)
	if !built {
		return nil, workspace.Refuse(fault.New(fault.InvalidSpec, "this version knows no agent %q", agent.Use))
	}
	brief := prompt.Brief{Call: input, Kind: k, Spec: s, State: state, Streams: agentAdapter.Streams()}
	if state.Sampler != nil {
		brief.Noise = rules.Told(*state.Sampler, s)
	}
	for _, seal := range contract.Sealed {
		if seal.Untold {
			continue
		}
		if seal.OfFiles() {
			brief.Sealed = append(brief.Sealed, seal.Path)
		}
		if seal.OfNewFiles() {
			brief.Reserved = append(brief.Reserved, seal.Path)
		}
		if len(seal.Lines) > 0 {
			brief.Lines = append(brief.Lines, seal.Path+" ("+strings.Join(seal.Lines, ", ")+")")
		}
	}
	if input.Evidence != "" {
		// The agent can't reach the judge; the same files are on the desk.
		brief.Evidence = strings.ReplaceAll(command.EvidenceIn(input.Evidence), ws.Judge.Dir, ws.Desk.Dir)
	}
	programs := agent.Programs(s.Sandbox.Agents)
	for _, p := range programs {
		if p.Instructs == "" || agent.Use == spec.UseCommand { // a command may read the file itself
			continue
		}
		text, err := prompt.Left(boundInstructions, ws.Desk.Dir, p.Instructs)
		if err == nil { // a file that can't be read has no instructions to follow
			brief.Instructions = prompt.Text{Name: p.Instructs, Content: string(text)}
		}
	}
	if brief.Plan, err = record.PlanAt(ctx, ws, state, head); err != nil {
		return nil, err
	}
	if proposal := input.Proposal; proposal != nil {
		brief.Criteria = issue.Parse([]byte(s.Goal)).Criteria
		if brief.Diff, err = ws.Objects.Diff(ctx, proposal.Base, proposal.Head, prompt.BoundProposal); err != nil {
			return nil, fmt.Errorf("reading the proposal: %w", err)
		}
	}
	g, gctx := safego.WithContext(ctx)
	g.Go(func() (err error) {
		brief.Log, err = ws.Objects.Log(gctx, input.Head, 20)
		return err
	})
	if last := state.LastChange; last != nil {
		g.Go(func() (err error) {
			brief.LastDiff, err = ws.Objects.Diff(gctx, last.Parent, last.Commit, 8<<10)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	e, err := ExchangeFor(ws, input.Key, brief.Text(), c)
	if err != nil {
		return nil, err
	}
	e.goal = s.Goal
	if e.spared, err = spare(ws, programs, s); err != nil {
		return nil, err
	}
	call := adapter.Call{
		Agent: agent, Tools: s.Approvals.Tools, Budget: input.Budget,
		MayEdit: slices.Contains(rules.Needs(input.Phase), spec.CanEditSource) && rules.Permit(s, input.Role, spec.CanEditSource) == nil,
	}
	err = e.Instruct(agentAdapter, call, c, s.Sandbox.Agents, tell,
		"PAWL_LOOP="+ws.Loop, "PAWL_KIND="+state.Kind, "PAWL_ROLE="+input.Role, "PAWL_PHASE="+input.Phase,
		"PAWL_ITERATION="+strconv.Itoa(input.Key.Iteration), "PAWL_ATTEMPT="+strconv.Itoa(input.Attempt))
	e.silence().limit = time.Duration(input.SilenceMs) * time.Millisecond
	return e, err
}

// ExchangeFor makes the exchange of a step and puts the prompt into it. The command gets the prompt on stdin.
func ExchangeFor(ws *workspace.Workspace, key api.Key, prompt string, c *supervisor.Command) (*Exchange, error) {
	e := &Exchange{ws: ws, Dir: filepath.Join(ws.Exchange(), command.StepName(key))}
	remove.Inherited(ws.Exchange()) // an agent can take away the permissions of this folder
	if err := os.Chmod(dirfd.At(ws.Exchange()), 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("making the exchange: %w", err)
	}
	if err := remove.All(e.Dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dirfd.At(e.Dir), 0o700); err != nil {
		return nil, fmt.Errorf("making the exchange: %w", err)
	}
	// The copy beside the logs is the record. The agent may change its own copy.
	for _, file := range []string{e.promptFile(), filepath.Join(filepath.Dir(c.Stdout), "prompt.md")} {
		if err := os.WriteFile(dirfd.At(file), []byte(prompt), 0o600); err != nil {
			return nil, fmt.Errorf("writing the prompt: %w", err)
		}
	}
	c.Stdin = e.promptFile()
	return e, nil
}

// Instruct completes the command of an agent: its program, arguments and environment, with further variables. named
// are the agents that the spec says that a command starts.
func (e *Exchange) Instruct(adapter adapter.Adapter, call adapter.Call, c *supervisor.Command, named []string, tell func(loop.Usage, string), variables ...string) (err error) {
	call.Session, call.Dir = uuid.NewString(), e.Dir
	if call.Self, err = os.Executable(); err != nil {
		return fmt.Errorf("looking for pawl's own program: %w", err)
	}
	agent := call.Agent
	programs := agent.Programs(named)
	e.programs = programs
	c.Env = workspace.Later(slices.Concat(agentEnvironment(c.Env, programs, agent), adapter.Env(call), variables, []string{
		"PAWL_PROMPT=" + e.promptFile(), "PAWL_RESULT=" + filepath.Join(e.Dir, resultName),
	}))
	e.models = result.Endpoints(c.Env)
	route, reason := direction(e.ws, programs, agent, c.Env)
	if e.ws.Sandbox.Use != spec.Off && reason != "" { // without a sandbox it can write in the user's home; with the meter it gets no sign-ins
		if e.signed, err = signedIn(programs, sandbox.Values(c.Env)["HOME"], c.Stdout); err != nil {
			return err
		}
	}
	row, _ := call.Agent.Row()
	if resource := toMeter(row, call.Budget); resource != "" && reason != "" {
		return unkept(row, resource, reason)
	}
	for _, arg := range route.Args {
		call.Agent.Args = append(slices.Clone(call.Agent.Args), strings.ReplaceAll(arg, "{base}", "http://"+llmproxy.Address))
	}
	c.Argv = adapter.Argv(call)
	for name, text := range adapter.Files(call) {
		if err := os.WriteFile(dirfd.At(filepath.Join(e.Dir, name)), []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing what the agent is told of its tools: %w", err)
		}
	}
	e.label = strings.Join(agent.Label(), " ")
	if agent.Use == spec.UseCommand && agent.Model != "" {
		c.Env = append(c.Env, "PAWL_MODEL="+agent.Model)
	}
	if adapter.Streams() {
		c.OutputLimit = streamLimit
		if e.call, err = newCall(adapter, call.Budget, c.Stdout, tell); err != nil || reason != "" {
			return err
		}
		e.call.meter = &counted{file: filepath.Join(filepath.Dir(c.Stdout), meterFile)}
		led := programs[0]
		led.Cost = row.Cost // the Agent Client Protocol may not report costs
		return metered(e.ws, led, route, e.Dir, c, call.Budget)
	}
	return nil
}

// copyResults puts the results where the agent can read them. The desk belongs to the agent: if something else has
// the file's name, it is removed and never followed.
func copyResults(ctx context.Context, ws *workspace.Workspace, head string) error {
	page, err := ws.Book.Read(ctx, head)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dirfd.At(ws.Desk.Dir))
	if err != nil {
		return fmt.Errorf("opening the desk: %w", err)
	}
	defer root.Close()
	const name = ledger.ResultsFile
	tmp := name + ".lock"
	_ = root.RemoveAll(tmp)
	if err := root.WriteFile(tmp, page.Results, 0o644); err != nil {
		return fmt.Errorf("copying the results to the desk: %w", err)
	}
	if st, err := root.Lstat(name); err == nil && st.IsDir() {
		_ = root.RemoveAll(name)
	}
	if err := root.Rename(tmp, name); err != nil {
		return fmt.Errorf("copying the results to the desk: %w", err)
	}
	return nil
}
