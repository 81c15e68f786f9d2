package steward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"pawl/activities/agentcall"
	"pawl/activities/command"
	"pawl/activities/contract"
	"pawl/activities/open"
	"pawl/activities/workspace"
	"pawl/internal/agent/adapter"
	"pawl/internal/agent/prompt"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/judge/evaluator"
	"pawl/internal/ledger"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/risk"
	"pawl/internal/steward/task"
)

// PlanTask plans a task and assesses it (S3). It reads the task, the governance files and the project's head. Unless
// the task brings its own steps, it asks the planner, on the steward's desk. Then it checks the plan against the
// charter. Problems of the plan, and reasons why it can't begin, are results.
func (a *Stewards) PlanTask(ctx context.Context, input stewardapi.PlanTask) (stewardapi.TaskPlanned, error) {
	out, err := command.Do(ctx, a.Runner, input.Step, func(ctx context.Context, w *command.Work) (stewardapi.TaskPlanned, error) {
		p := planning{Work: w, in: input}
		err := p.plan(ctx)
		return p.out, err
	})
	if failed := userrepo.Failed(err); len(failed) > 0 && !open.MayPass(ctx, failed) {
		return stewardapi.TaskPlanned{Blockers: list.Map(failed, (*userrepo.Precondition).Error)}, nil
	}
	return out, err
}

// planning is one execution of PlanTask.
type planning struct {
	*command.Work
	in    stewardapi.PlanTask
	task  task.Task
	state steward.State
	files []store.TreeEntry // the files of the project
	names []string          // the names of these files
	specs []spec.Spec       // the specs of the plan's loops
	out   stewardapi.TaskPlanned
}

func (p *planning) plan(ctx context.Context) error {
	if err := os.MkdirAll(dirfd.At(p.Dir), 0o700); err != nil {
		return fmt.Errorf("making the step's folder: %w", err)
	}
	if err := p.read(ctx); err != nil || p.out.Base == "" {
		return err
	}
	governance, err := p.governance(ctx)
	if err != nil {
		return err
	}
	text, author, err := p.text(ctx, governance)
	if err != nil || text == nil {
		return err
	}
	plan, err := task.ParsePlan(text)
	if err != nil {
		p.out.Problems = problemsOf(err)
		return nil
	}
	plan.By = author
	if err := p.compose(ctx, plan); err != nil {
		return err
	}
	if p.out.Estimate, err = p.estimate(ctx, plan); err != nil {
		return err
	}
	a := risk.Assess(p.in.Charter, risk.Work{Task: p.task, Specs: p.specs, Files: p.names, Planner: plan.Tier, Estimate: p.out.Estimate})
	p.out.Tier, p.out.TierBy, p.out.TierReasons, p.out.Governs, p.out.Production = a.Tier, a.By, a.Why, a.Governs, a.Production
	p.block()
	if _, err := keepText(p.Workspace, text); err != nil {
		return err
	}
	crashpoint.At("plan.kept")
	p.out.Plan = &plan
	return nil
}

// read reads the task, the state and the project's head. If the repository does not fulfil P0, that is a blocker.
func (p *planning) read(ctx context.Context) (err error) {
	ws := p.Workspace
	if p.state, err = ws.StewardBook.State(ctx, p.in.Ledger); err != nil {
		return err
	}
	if p.task, err = ws.StewardBook.Task(ctx, p.in.Ledger, p.in.Task); err != nil {
		return err
	}
	if p.in.Tier != "" {
		p.task.Tier = p.in.Tier
	}
	repo, err := ws.Repository()
	held := err == nil
	if held {
		defer repo.Close()
	}
	if held && !ws.Remote {
		_, err = userrepo.Inspect(ctx, repo, ws.Onto, "")
	}
	var commit string
	if failed := userrepo.Failed(err); len(failed) > 0 {
		p.out.Blockers = list.Map(failed, (*userrepo.Precondition).Error)
	} else if err != nil {
		return err
	}
	if !held { // nothing there may be read
		return nil
	}
	if commit, err = userrepo.Fetch(ctx, ws.Objects, repo, ws.Onto); err != nil {
		if ctx.Err() == nil {
			err = userrepo.Unreached(ws.Repo, err)
		}
		if len(p.out.Blockers) > 0 && len(userrepo.Failed(err)) > 0 { // they are why
			return nil
		}
		return fmt.Errorf("fetching the project's head: %w", err)
	}
	crashpoint.At("plan.fetched")
	p.out.Base = commit
	if p.files, err = ws.Objects.Entries(ctx, commit); err != nil {
		return fmt.Errorf("listing the project's files: %w", err)
	}
	p.names = list.Map(p.files, func(f store.TreeEntry) string { return f.Path })
	return nil
}

// maxGovernance is how many bytes of one governance file the planner gets.
const maxGovernance = 1 << 20

// governance reads the governance files. Their hash goes into the record, their text to the planner.
func (p *planning) governance(ctx context.Context) (texts []prompt.Text, err error) {
	files, hash := governing(p.in.Charter, p.files)
	p.out.Governance = hash
	for _, f := range files {
		content, err := p.Workspace.Objects.BlobByID(ctx, f.Blob, maxGovernance)
		switch {
		case errors.Is(err, git.ErrTooLarge):
			content = []byte("too large to be shown: read it in the project")
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", git.Quote(f.Path), err)
		case !utf8.Valid(content):
			content = []byte("no text")
		}
		texts = append(texts, prompt.Text{Name: git.Quote(f.Path), Content: string(content)})
	}
	return texts, nil
}

// governing returns the governance files of a project, and the SHA-256 of their names and contents.
func governing(c charter.Charter, files []store.TreeEntry) (among []store.TreeEntry, hash string) {
	var builder strings.Builder
	for _, f := range files {
		if spec.MatchAny(c.Governance, f.Path) && f.Mode != "160000" {
			among = append(among, f)
			fmt.Fprintf(&builder, "%s\x00%s\n", f.Path, f.Blob)
		}
	}
	return among, ledger.HashOf([]byte(builder.String()))
}

// text returns PLAN.md and who made it: the task, or the planner. It returns nil if there is no plan.
func (p *planning) text(ctx context.Context, governance []prompt.Text) (text []byte, maker string, err error) {
	if p.in.Again != "" {
		return p.again(ctx)
	}
	if len(p.task.Steps()) > 0 {
		text, err = task.RenderPlan(p.task)
		return text, "task", err
	}
	planner, hasPlanner := p.in.Charter.Planner()
	if !hasPlanner {
		p.out.Problems = append(p.out.Problems, "the task brings no steps, and the steward has no planner: give the task a plan or a spec, or set agent.roles.planner")
		return nil, "", nil
	}
	text, err = p.ask(ctx, planner, governance)
	return text, "planner", err
}

// again returns the plan that the task already has.
func (p *planning) again(ctx context.Context) (text []byte, author string, err error) {
	name := ledger.TaskPlanFile(p.task.ID)
	files, err := p.Workspace.Objects.ReadLedger(ctx, p.in.Ledger, name)
	if err != nil {
		return nil, "", fmt.Errorf("reading the plan of %s: %w", p.task.ID, err)
	}
	if t := p.state.Find(p.task.ID); ledger.HashOf(files[name]) == p.in.Again && t != nil && t.Plan != nil {
		return files[name], t.Plan.By, nil
	}
	p.out.Problems = append(p.out.Problems, "the plan with the hash "+p.in.Again+" is not in the ledger")
	return nil, "", nil
}

// ask lets the planner make the plan, on the desk. Its changes on the desk are thrown away.
func (p *planning) ask(ctx context.Context, planner spec.Agent, governance []prompt.Text) (text []byte, err error) {
	ws := p.Workspace
	done, interrupted := ws.Planning(ctx)
	if interrupted != nil {
		p.out.Interrupted = true
		return nil, nil
	}
	defer done()
	p.in.Head = p.out.Base
	p.Work.In.Head = p.out.Base
	agentAdapter, built := adapter.Lookup(planner.Use)
	if !built {
		return nil, workspace.Refuse(fault.New(fault.InvalidSpec, "this version knows no agent %q", planner.Use))
	}
	if missing := lacks(planner); missing != "" {
		p.out.Blockers = append(p.out.Blockers, missing)
		return nil, nil
	}
	if err := p.Ready(ctx, p.OnDesk); err != nil {
		return nil, err
	}
	command, err := p.Command(ws.Desk.Dir)
	if err != nil {
		return nil, err
	}
	defaults := p.in.Charter.Fragment()
	brief := prompt.TaskBrief{
		Task: p.task, Note: p.in.Note, Governance: governance, Kinds: kind.Loops(), Scope: defaults.Scope, Commands: p.in.Charter.Allow, Streams: agentAdapter.Streams(),
		Files: list.Map(p.names, git.Quote),
	}
	e, err := agentcall.ExchangeFor(ws, p.in.Key, brief.Text(), &command)
	if err != nil {
		return nil, err
	}
	plan := filepath.Join(e.Dir, task.PlanFile)
	tell := func(u loop.Usage, tool string) { p.Live.Store(&api.Live{Usage: u, Tool: loop.Clip(tool, 80)}) }
	var budget map[loop.Resource]metric.Decimal
	if p.in.CostUSD != nil {
		budget = map[loop.Resource]metric.Decimal{loop.CostUSD: *p.in.CostUSD}
	}
	if err := e.Instruct(agentAdapter, adapter.Call{Agent: planner, Tools: defaults.Approvals.Tools, Budget: budget}, &command, defaults.Sandbox.Agents, tell,
		"PAWL_LOOP="+ws.Loop, "PAWL_KIND="+kind.Steward.Name, "PAWL_ROLE="+spec.RolePlanner, "PAWL_PHASE="+string(task.Planning),
		"PAWL_ITERATION="+strconv.Itoa(p.in.Key.Iteration), "PAWL_ATTEMPT=1", "PAWL_TASK="+p.task.ID, "PAWL_PLAN="+plan); err != nil {
		return nil, err
	}
	var called api.Called
	if called.Outcome, err = agentcall.RunAgent(ctx, p.Work, command, e); err != nil {
		return nil, err
	}
	printed := e.Collect(&called, command.Stdout, api.Call{Step: p.in.Step, Role: spec.RolePlanner})
	ws.EndProcesses()
	if err := ws.Park(ctx); err != nil {
		return nil, err
	}
	p.out.Outcome = called.Outcome
	p.out.Usage = called.Usage.OfTask()
	p.out.Usage.ActiveMs = called.ElapsedMs
	switch {
	case called.Interrupted, called.Exhausted != "":
		return nil, nil
	case called.GiveUp != "":
		p.out.Unclear = append(p.out.Unclear, called.GiveUp)
		return nil, nil
	case !called.OK():
		return nil, nil // the outcome says how it ended
	}
	written, err := prompt.Left(task.MaxPlan, filepath.Dir(e.Dir), filepath.Base(e.Dir), task.PlanFile) // the agent owns all exchanges, but not the folder around them
	if err != nil {
		p.out.Problems = append(p.out.Problems, task.PlanFile+" can't be read: "+err.Error())
		return nil, nil
	}
	if len(written) == 0 {
		written = unfenced(printed)
	}
	if len(bytes.TrimSpace(written)) == 0 {
		p.out.Problems = append(p.out.Problems, "the planner has made none: "+task.PlanFile+" and what it printed are empty")
		return nil, nil
	}
	return written, nil
}

// unfenced returns a plan without the Markdown fence around it, if there is one.
func unfenced(text string) []byte {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "```"); ok {
		if _, body, ok := strings.Cut(rest, "\n"); ok {
			text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
		}
	}
	return []byte(text + "\n")
}

// compose makes the spec of each step's loop. It checks that spec, and that the charter allows its commands.
func (p *planning) compose(ctx context.Context, plan task.Plan) error {
	c, last := p.in.Charter, task.Last(plan.Steps)
	for _, st := range plan.Steps {
		wrong := func(text string) {
			p.out.Problems = append(p.out.Problems, fmt.Sprintf("the step %s: %s", st.ID, text))
		}
		s, err := c.Loop(st, charter.Caps{
			Loop: steward.New(p.in.Steward).LoopID(steward.Task{ID: p.task.ID}, st.ID), Task: p.task.ID, Goal: p.task.Goal(), Plan: plan.Hash,
			Base: p.out.Base, Onto: p.Workspace.Onto, Last: slices.Contains(last, st.ID), CostUSD: c.Limits.CostUSD,
		})
		if err != nil {
			for _, problem := range problemsOf(err) {
				wrong(problem)
			}
			continue
		}
		for _, command := range risk.Commands(s) {
			if ok, reason := risk.Allowed(c, command); !ok {
				wrong(fmt.Sprintf("the command `%s` may not be used: %s", loop.Clip(command, steward.LongCommand), reason))
			}
		}
		d, err := contract.Draw(ctx, p.Workspace, s, p.out.Base)
		if err != nil {
			return err
		}
		if f := d.Closed(p.Workspace, s); f != nil {
			wrong(f.What)
		}
		missing := list.Map(s.Agent.All(), func(keyed spec.Keyed) string { return lacks(keyed.Agent) })
		tools, err := p.missing(s)
		if err != nil {
			return err
		}
		for _, item := range append(missing, tools...) {
			if item != "" && !slices.Contains(p.out.Blockers, item) {
				p.out.Blockers = append(p.out.Blockers, item)
			}
		}
		p.specs = append(p.specs, s)
	}
	return nil
}

// missing names the programs of a loop's commands that this host lacks, if the loops run here.
func (p *planning) missing(s spec.Spec) (names []string, err error) {
	if p.Workspace.Remote {
		return nil, nil
	}
	env, err := p.Workspace.Environment()
	if err != nil {
		return nil, err
	}
	commands, err := open.CommandsOf(s)
	for _, c := range commands {
		for _, name := range evaluator.NeedsOf(c.Command).Programs {
			if workspace.LookUp(env, name) == "" {
				names = append(names, fmt.Sprintf("%s.command needs %s, which is not on the PATH of this host's worker: `%s`", c.Check, git.Quote(name), loop.Clip(c.Command, steward.LongCommand)))
			}
		}
	}
	return names, err
}

// lacks returns a text if the program of an agent is not on this host, else "".
func lacks(agent spec.Agent) string {
	name := agent.Use
	if name == spec.UseCommand {
		argv := agent.Command.List
		if len(argv) == 0 || strings.Contains(argv[0], "/") {
			return "" // shell code, or a path within the tree
		}
		name = argv[0]
	}
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Sprintf("the agent's program %s is not on the PATH of this host's worker", git.Quote(name))
	}
	return ""
}

// block adds what keeps the plan from beginning: unfinished tasks before it, and running ones on the same files.
func (p *planning) block() {
	if t := p.state.Find(p.task.ID); t != nil {
		for _, id := range t.After {
			if t := p.state.Find(id); t != nil && t.Outcome != steward.Done {
				p.out.Blockers = append(p.out.Blockers, fmt.Sprintf("it comes after the task %s, which is not done", id))
			}
		}
	}
	for _, claim := range p.in.Claims {
		shared := list.Filter(p.names, func(name string) bool {
			return spec.MatchAny(claim.Scope, name) && slices.ContainsFunc(p.specs, func(s spec.Spec) bool { return s.Match(name) })
		})
		if len(shared) > 0 {
			p.out.Meets = append(p.out.Meets, stewardapi.Meeting{Task: claim.Task, On: git.QuoteSome(shared)})
		} else if glob := p.meets(claim.Scope); glob != "" {
			p.out.Meets = append(p.out.Meets, stewardapi.Meeting{Task: claim.Task, On: "new files in " + git.Quote(glob)})
		}
	}
}

// meets returns a glob by which the plan's loops may make a new file that those globs also match, "" for none.
func (p *planning) meets(globs []string) string {
	for _, s := range p.specs {
		for _, scope := range s.Scope {
			if s.NewFiles != spec.Deny && slices.ContainsFunc(globs, func(glob string) bool { return risk.Overlap(scope, glob) }) {
				return scope
			}
		}
	}
	return ""
}

func problemsOf(err error) []string {
	var several spec.Problems
	if !errors.As(err, &several) {
		return []string{err.Error()}
	}
	return list.Map(several, spec.Problem.String)
}
