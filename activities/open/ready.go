package open

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/activities/command"
	"pawl/activities/contract"
	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/judge/evaluator"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/shell"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/internal/spec/agents"
	"pawl/internal/spec/kind"
)

// Readiness is what a host lacks for a spec.
type Readiness struct {
	Problems []Unready // they keep the loop from starting
	Notes    []string
}

// Unready is one thing that keeps a loop from starting. Check is the part of the spec that it is about.
type Unready struct{ Check, What, Do string }

func (r *Readiness) problem(check, text, do string) {
	r.Problems = append(r.Problems, Unready{check, text, do})
}

func (r *Readiness) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// err returns the problems as the reason why a loop is refused, nil if there are none.
func (r *Readiness) err() error {
	if len(r.Problems) == 0 {
		return nil
	}
	var texts, do []string
	for _, p := range r.Problems {
		texts = append(texts, p.What)
		if !slices.Contains(do, p.Do) {
			do = append(do, p.Do)
		}
	}
	return workspace.Refuse(fault.New(fault.PreconditionFailed, "%s", strings.Join(texts, "; ")).Advise(strings.Join(do, " ")))
}

// Ready checks, before anything is measured, that this host has what the commands and agents of a spec need: programs on
// the PATH, programs in the tree, and modules of Python that commands run. It reports all that is missing at once. It does
// not check what setup may install. A missing program of an npm script, or of a Makefile that is not plain, is only a note,
// because the script or the target may find it in another way.
func Ready(ctx context.Context, ws *workspace.Workspace, s spec.Spec, d contract.Drawn) (Readiness, error) {
	c := readinessCheck{ws: ws, spec: s, drawn: d}
	err := c.run(ctx)
	return c.found, err
}

// ReadyToStart is Ready, and starts the agents that pawl knows, to ask for their versions.
func ReadyToStart(ctx context.Context, ws *workspace.Workspace, s spec.Spec, d contract.Drawn) (Readiness, error) {
	c := readinessCheck{ws: ws, spec: s, drawn: d, startAgents: true}
	err := c.run(ctx)
	return c.found, err
}

// readinessCheck collects what a host lacks for a spec.
type readinessCheck struct {
	ws          *workspace.Workspace
	spec        spec.Spec
	drawn       contract.Drawn
	startAgents bool     // known agents are started, to ask for their versions
	env         []string // of the loop's commands
	found       Readiness
}

func (c *readinessCheck) run(ctx context.Context) (err error) {
	if c.env, err = c.ws.Environment(); err != nil {
		return err
	}
	commands, err := CommandsOf(c.spec)
	if err != nil {
		return err
	}
	if err := c.checkPrograms(ctx, commands); err != nil {
		return err
	}

	for _, command := range commands {
		u := user{command.Check, command.Check + ".command", command.Command, c.env}
		if err := c.checkNeeds(ctx, u, evaluator.NeedsOf(command.Command)); err != nil {
			return err
		}
	}
	if err := c.checkAgents(ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// programsOf are the names of the programs that a command starts.
type programsOf struct {
	own     []string // by the command itself
	nested  []string // by what make or npm runs for it
	certain bool     // the nested ones are called in any case, and found on the PATH
}

// programs returns the names of the programs that a command starts.
func (c *readinessCheck) programs(command string) programsOf {
	ofScripts := slices.DeleteFunc(evaluator.Scripted(command, c.drawn.Read), func(name string) bool {
		return slices.Contains(c.drawn.Names, "node_modules/.bin/"+name)
	})
	return programsOf{
		own:     evaluator.NeedsOf(command).Programs,
		nested:  append(evaluator.Called(command, c.drawn.Read), ofScripts...),
		certain: evaluator.Certain(command, c.drawn.Read, c.inTree),
	}
}

// checkPrograms checks that the programs of commands are on the PATH, here and in the sandbox.
func (c *readinessCheck) checkPrograms(ctx context.Context, commands []Checked) error {
	var programs []programsOf
	var names, texts []string
	for _, command := range commands {
		p := c.programs(command.Command)
		programs = append(programs, p)
		names = slices.Concat(names, p.own, p.nested)
		texts = append(texts, command.Command)
	}
	outside, err := hidden(ctx, c.ws, c.env, nil, names, texts...)
	if err != nil {
		return err
	}

	for i, command := range commands {
		for _, name := range programs[i].own {
			switch path := workspace.LookUp(c.env, name); {
			case path == "":
				c.found.problem(command.Check, fmt.Sprintf("%s.command needs %s, which is not on the PATH: `%s`", command.Check, git.Quote(name), command.Command), "Install it, or use another command.")
			case slices.Contains(outside, name):
				c.found.problem(command.Check, fmt.Sprintf("%s.command needs %s, which is %s on this machine and is not in the loop's sandbox: `%s`", command.Check, git.Quote(name), path, command.Command), unhide)
			}
		}
		for _, name := range programs[i].nested {
			switch path := workspace.LookUp(c.env, name); {
			case path == "" && programs[i].certain:
				c.found.problem(command.Check, fmt.Sprintf("%s.command (`%s`) calls %s, which does not exist", command.Check, command.Command, git.Quote(name)), "Install it, or use another command.")
			case path == "":
				c.found.note("%s.command (`%s`) calls %s, which does not exist", command.Check, command.Command, git.Quote(name))
			case slices.Contains(outside, name):
				c.found.note("%s.command (`%s`) calls %s, which is %s on this machine and is not in the loop's sandbox. %s", command.Check, command.Command, git.Quote(name), path, unhide)
			}
		}
	}
	return nil
}

// checkAgents checks each program of the spec's agents once.
func (c *readinessCheck) checkAgents(ctx context.Context) error {
	checked := map[string]bool{}
	for _, agent := range c.spec.Agent.All() {
		text := cmp.Or(agent.Command.Shell, shell.Join(agent.Command.List...))
		needs := evaluator.NeedsOfAgent(text)
		env := append(slices.Clone(c.env), workspace.Granted(agent.Env)...)
		if err := c.checkNeeds(ctx, user{"agent", "the agent's command", text, env}, needs); err != nil {
			return err
		}
		if list := agent.Command.List; len(list) > 0 && strings.HasPrefix(list[0], "~/") {
			c.found.problem("agent", fmt.Sprintf("the agent's program %s begins with ~, which only a shell knows", git.Quote(list[0])), "Write the command as one text, or name the program by its absolute path.")
			continue
		}
		if programs := c.programs(text); programs.certain {
			c.checkCalled(text, programs.nested)
		}
		names := slices.Concat(contract.Programs(agent.Agent), needs.Programs)
		for _, name := range names {
			if checked[name] || ctx.Err() != nil {
				continue
			}
			checked[name] = true
			if err := c.checkAgent(ctx, name, agent.Agent, env); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCalled checks the programs that make calls for an agent's command.
func (c *readinessCheck) checkCalled(command string, names []string) {
	for _, name := range names {
		if workspace.LookUp(c.env, name) == "" {
			c.found.problem("agent", fmt.Sprintf("the agent's command (`%s`) calls %s, which does not exist", command, git.Quote(name)), "Install it, or use another command.")
		}
	}
}

// Checked is a command of a spec and the name of its key.
type Checked struct{ Check, Command string }

// CommandsOf returns the commands whose programs have to exist before anything runs. Setup may install all others.
func CommandsOf(s spec.Spec) ([]Checked, error) {
	if s.Setup.Command != "" {
		return []Checked{{"setup", s.Setup.Command}}, nil
	}
	k, err := kind.Of(s.Kind)
	if err != nil {
		return nil, err
	}
	items := []Checked{{"verify", s.Verify.Command}, {"guard", s.Guard.Command}, {"check", s.Check.Command}}
	if k.Tests && s.TestRequired() {
		items = append(items, Checked{"test", s.Test.Command})
	}
	return items, nil
}

// unhide is the advice for a program that is not in the sandbox.
const unhide = "It leads to a folder that the sandbox does not show: name the program by its real path, or name that folder in sandbox.allow."

// hidden returns those of the names whose programs are on this machine but not in the loop's sandbox, where it looks
// them up. argv is what the loop starts there.
func hidden(ctx context.Context, ws *workspace.Workspace, env, agents, names []string, argv ...string) ([]string, error) {
	var wanted strings.Builder
	for _, name := range names {
		path := workspace.LookUp(env, name)
		if strings.HasPrefix(name, "~/") {
			wanted.WriteString(path + "\n")
		} else if filepath.IsAbs(path) {
			wanted.WriteString(name + "\n")
		}
	}
	if wanted.Len() == 0 {
		return nil, nil
	}
	w := command.NewWork(ws, api.Step{Ref: ws.Ref, Key: api.Key{Name: "programs"}, LimitMs: versionTime.Milliseconds()}, &command.Running{})
	w.Agents = agents
	// A command opens the way to what its arguments name, so the names are in a file.
	const list = "programs"
	if err := os.MkdirAll(dirfd.At(ws.Exchange()), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(dirfd.At(filepath.Join(ws.Exchange(), list)), []byte(wanted.String()), 0o600); err != nil {
		return nil, err
	}
	const script = `while read -r name; do command -v "$name" >/dev/null || echo "$name"; done <` + list
	if err := os.RemoveAll(dirfd.At(w.Dir)); err != nil { // of an earlier call
		return nil, err
	}
	defer os.RemoveAll(dirfd.At(w.Dir))
	r, err := beside(ctx, w, env, append([]string{"sh", "-c", script, "--"}, argv...)...)
	if err != nil || !r.OK() {
		return nil, err
	}
	printed, err := workspace.ReadFile(filepath.Join(w.Dir, "stdout"), workspace.MaxOutput)
	missing := strings.Split(string(printed), "\n")
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.Contains(missing, name) && (!strings.HasPrefix(name, "~/") || !slices.Contains(missing, workspace.LookUp(env, name)))
	}), err
}

// beside runs a command in the folder of the agents' prompts, in the sandbox, like everything that an agent runs.
func beside(ctx context.Context, w *command.Work, env []string, argv ...string) (api.Outcome, error) {
	for _, dir := range []string{w.Dir, w.Workspace.Exchange()} {
		if err := os.MkdirAll(dirfd.At(dir), 0o700); err != nil {
			return api.Outcome{}, err
		}
	}
	c, err := w.Command(w.Workspace.Exchange(), argv...)
	if err != nil {
		return api.Outcome{}, err
	}
	c.Env = workspace.Later(env)
	return w.Run(ctx, c, command.Plainly)
}

// checkAgent checks that an agent's program exists, here and in the sandbox. If known agents are to be started, it starts
// the program with --version.
func (c *readinessCheck) checkAgent(ctx context.Context, name string, a spec.Agent, env []string) error {
	path := workspace.LookUp(env, name)
	if path == "" {
		saidByItsPath := filepath.IsAbs(name) // by checkNeeds
		if !saidByItsPath {
			c.found.problem("agent", "the agent's program "+git.Quote(name)+" is not on the PATH", "Install it, or name another agent.")
		}
		return nil
	}
	program, ok := agents.Lookup(filepath.Base(name))
	if !ok || name == agents.Command {
		outside, err := hidden(ctx, c.ws, env, c.ws.Sandbox.Agents, []string{name}, a.Command.Args()...)
		if len(outside) > 0 {
			c.found.problem("agent", fmt.Sprintf("the agent's program %s is %s on this machine and is not in the loop's sandbox", git.Quote(name), path), unhide)
		}
		return err
	}
	if !c.startAgents {
		return nil
	}

	w := c.work("version of " + program.Name)
	w.Agents = []string{program.Name}
	outcome, err := beside(ctx, w, env, path, "--version")
	if err != nil || outcome.OK() || ctx.Err() != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(outcome.Tail), "\n")
	c.found.problem("agent", fmt.Sprintf("the agent's program can't be started: `%s --version` fails (%s): %s", path, outcome.Ending(), lines[len(lines)-1]), "Run it by hand, and reinstall it.")
	return nil
}

// work returns a short piece of work with that name.
func (c *readinessCheck) work(name string) *command.Work {
	step := api.Step{Ref: c.ws.Ref, Key: api.Key{Name: name}, LimitMs: versionTime.Milliseconds()}
	return command.NewWork(c.ws, step, &command.Running{})
}

// user is a command that needs something.
type user struct {
	check   string
	key     string // what the command is called
	command string
	env     []string
}

// checkNeeds checks the programs and scripts that a command names by a path, and the modules of Python that it runs.
func (c *readinessCheck) checkNeeds(ctx context.Context, u user, needs evaluator.Needs) error {
	setupMayMakeIt := c.spec.Setup.Command != "" && u.check != "setup"
	for _, file := range needs.Files {
		switch {
		case file.Outside():
			if setupMayMakeIt && c.setupCanWrite(workspace.Located(file.Path, u.env), u.env) {
				continue
			}
			c.checkOutside(u, file)
		case setupMayMakeIt:
		default:
			c.checkInTree(u, file)
		}
	}
	for _, module := range needs.Modules {
		if err := c.checkModule(ctx, u, module); err != nil {
			return err
		}
	}
	return nil
}

// setupCanWrite reports whether setup.command may make a file outside of the tree: in a sandbox only in the home, in
// temporary folders and in what the spec allows.
func (c *readinessCheck) setupCanWrite(path string, env []string) bool {
	if !c.ws.Layered() {
		return true
	}
	places := append([]string{"~/", os.TempDir(), "/tmp", "/var/tmp"}, c.spec.Sandbox.Allow...)
	return slices.ContainsFunc(places, func(place string) bool {
		writable := strings.TrimRight(workspace.Located(place, env), "/")
		return writable != "" && strings.HasPrefix(path+"/", writable+"/")
	})
}

// checkOutside checks a program or a script outside of the tree.
func (c *readinessCheck) checkOutside(u user, needed evaluator.Needed) {
	place := workspace.Located(needed.Path, u.env)
	if !needed.Script && workspace.LookUp(u.env, needed.Path) == "" {
		c.found.problem(u.check, fmt.Sprintf("%s needs %s, which is no program on this machine: `%s`", u.key, git.Quote(needed.Name), u.command), "Install it there, or name another one.")
		return
	}
	if _, err := os.Stat(place); err != nil {
		c.found.problem(u.check, fmt.Sprintf("%s needs %s, which does not exist on this machine: `%s`", u.key, git.Quote(needed.Name), u.command), "Put it there, or name another one.")
	}
}

// checkInTree checks a program or a script in the tree.
func (c *readinessCheck) checkInTree(u user, needed evaluator.Needed) {
	onPath := !strings.Contains(needed.Name, "/") && workspace.LookUp(u.env, needed.Name) != "" // a shell looks there too
	if needed.Script && (onPath || c.inTree(needed.Path)) {
		return
	}
	switch mode, linked := c.drawn.Mode(needed.Path); {
	case linked:
	case mode == "":
		c.found.problem(u.check, fmt.Sprintf("%s needs %s, which is not in the repository's commit: `%s`", u.key, git.Quote(needed.Name), u.command),
			"Commit it, name it by its absolute path, or let setup.command make it: the loop works in a clone, which has only what is committed.")
	case mode != "100755" && !needed.Script:
		c.found.problem(u.check, fmt.Sprintf("%s needs %s, which is not executable: `%s`", u.key, git.Quote(needed.Name), u.command),
			fmt.Sprintf("Run `git update-index --chmod=+x %s` and commit that, or start it with its interpreter.", shell.Quote(needed.Path)))
	}
}

// inTree reports whether the commit has a file or a folder of that name.
func (c *readinessCheck) inTree(name string) bool {
	return slices.ContainsFunc(c.drawn.Names, func(file string) bool { return file == name || strings.HasPrefix(file, name+"/") })
}

// checkModule checks a module of Python that a command runs, such as pytest: without it the command fails, and nothing
// that an agent may change mends that.
func (c *readinessCheck) checkModule(ctx context.Context, u user, module evaluator.Module) error {
	if c.hasModule(module.Name) || !canAsk(module.Interpreter, u.env) {
		return nil
	}
	w := c.work("module")
	if err := os.RemoveAll(dirfd.At(w.Dir)); err != nil { // of an earlier call
		return err
	}
	defer os.RemoveAll(dirfd.At(w.Dir))
	outcome, err := beside(ctx, w, u.env, module.Interpreter, "-c", findModule, module.Name)
	if err != nil {
		return err
	}
	if outcome.ExitCode == noModule {
		interpreter := workspace.LookUp(u.env, module.Interpreter)
		c.found.problem(u.check, fmt.Sprintf("%s needs the Python module %s, which %s does not have: `%s`", u.key, git.Quote(module.Name), git.Quote(interpreter), u.command),
			"Install it, name the interpreter of the virtual environment that has it, activate that before pawl starts, or install it in setup.command.")
	}
	return nil
}

// hasModule reports whether the repository has a module of that name itself.
func (c *readinessCheck) hasModule(module string) bool {
	return slices.ContainsFunc(c.drawn.Names, func(path string) bool {
		slashed := "/" + path
		return strings.HasSuffix(slashed, "/"+module+".py") || strings.Contains(slashed, "/"+module+"/")
	})
}

// canAsk reports whether an interpreter exists that does not come from the tree.
func canAsk(interpreter string, env []string) bool {
	inTree := strings.Contains(interpreter, "/") && !filepath.IsAbs(interpreter)
	return !inTree && workspace.LookUp(env, interpreter) != ""
}

// noModule is how findModule exits if there is no such module.
const noModule = 77

const findModule = "import importlib.util, sys; sys.exit(0 if importlib.util.find_spec(sys.argv[1]) else 77)"

// versionTime is how long an agent's program may take to print its version.
const versionTime = 15 * time.Second
