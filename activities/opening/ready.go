package opening

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/activities/contracts"
	"pawl/activities/hosted"
	"pawl/activities/steps"
	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/held"
	"pawl/internal/kind"
	"pawl/internal/program"
	"pawl/internal/seal"
	"pawl/internal/shell"
	"pawl/internal/spec"
)

// Readiness is what a host lacks for a spec.
type Readiness struct {
	Problems []Unready // they keep the loop from starting
	Notes    []string
}

// Unready is one thing that keeps a loop from starting. Check is the part of the spec that it is about.
type Unready struct{ Check, What, Do string }

func (r *Readiness) problem(check, what, do string) {
	r.Problems = append(r.Problems, Unready{check, what, do})
}

// err returns the problems as the reason why a loop is refused, nil if there are none.
func (r *Readiness) err() error {
	if len(r.Problems) == 0 {
		return nil
	}
	var what, do []string
	for _, p := range r.Problems {
		what = append(what, p.What)
		if !slices.Contains(do, p.Do) {
			do = append(do, p.Do)
		}
	}
	return hosted.Refuse(fault.New(fault.PreconditionFailed, "%s", strings.Join(what, "; ")).Advise(strings.Join(do, " ")))
}

// Ready checks, before anything is measured, that this host has what the commands and agents of a spec need: programs on
// the PATH, programs in the tree, and modules of Python that commands run. It reports all that is missing at once.
// starts says to start known agents too, to ask for their version. It does not check what setup may install. A missing
// program of a make target or an npm script is only a note, because the target or script may find it in another way.
func Ready(ctx context.Context, ws *hosted.Workspace, s spec.Spec, d contracts.Drawn, starts bool) (f Readiness, err error) {
	err = f.check(ctx, ws, s, d, starts)
	return f, err
}

func (f *Readiness) check(ctx context.Context, ws *hosted.Workspace, s spec.Spec, d contracts.Drawn, starts bool) error {
	env, err := ws.Environment()
	if err != nil {
		return err
	}
	commands, err := CommandsOf(s)
	if err != nil {
		return err
	}
	type called struct{ needs, calls []string } // needs: by the command itself; calls: by what make or npm runs for it
	var programs []called
	var all, texts []string
	for _, c := range commands {
		scripted := slices.DeleteFunc(seal.Scripted(c.Command, d.Read), func(name string) bool { return slices.Contains(d.Names, "node_modules/.bin/"+name) })
		p := called{seal.Programs(c.Command), append(seal.Called(c.Command, d.Read), scripted...)}
		programs, all, texts = append(programs, p), slices.Concat(all, p.needs, p.calls), append(texts, c.Command)
	}
	shut, err := hidden(ctx, ws, env, nil, all, texts...)
	if err != nil {
		return err
	}
	for i, c := range commands {
		for _, name := range programs[i].needs {
			switch at := hosted.LookUp(env, name); {
			case at == "":
				f.problem(c.Check, fmt.Sprintf("%s.command needs %s, which is not on the PATH: `%s`", c.Check, git.Quote(name), c.Command), "Install it, or use another command.")
			case slices.Contains(shut, name):
				f.problem(c.Check, fmt.Sprintf("%s.command needs %s, which is %s on this machine and is not in the loop's sandbox: `%s`", c.Check, git.Quote(name), at, c.Command), unhide)
			}
		}
		for _, name := range programs[i].calls {
			switch at := hosted.LookUp(env, name); {
			case at == "":
				f.Notes = append(f.Notes, fmt.Sprintf("%s.command (`%s`) calls %s, which does not exist", c.Check, c.Command, git.Quote(name)))
			case slices.Contains(shut, name):
				f.Notes = append(f.Notes, fmt.Sprintf("%s.command (`%s`) calls %s, which is %s on this machine and is not in the loop's sandbox. %s", c.Check, c.Command, git.Quote(name), at, unhide))
			}
		}
	}
	for _, c := range commands {
		f.path(c.Check, c.Check+".command", c.Command, d, s)
		if err := f.modules(ctx, ws, env, c, d); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, agent := range s.Agent.All() {
		f.path("agent", "the agent's command", cmp.Or(agent.Command.Shell, shell.Join(agent.Command.List...)), d, s)
		for _, name := range contracts.Programs(agent.Agent) {
			if seen[name] || ctx.Err() != nil {
				continue
			}
			seen[name] = true
			if err := f.agent(ctx, ws, name, agent.Agent, append(slices.Clone(env), hosted.Granted(agent.Env)...), starts); err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
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
	all := []Checked{{"verify", s.Verify.Command}, {"guard", s.Guard.Command}, {"check", s.Check.Command}}
	if k.Tests && s.TestRequired() {
		all = append(all, Checked{"test", s.Test.Command})
	}
	return all, nil
}

// unhide is the advice for a program that is not in the sandbox.
const unhide = "It leads to a folder that the sandbox does not show: name the program by its real path, or name that folder in sandbox.allow."

// hidden returns those of the names whose programs are on this machine but not in the loop's sandbox, where it looks
// them up. argv is what the loop starts there.
func hidden(ctx context.Context, ws *hosted.Workspace, env, agents, names []string, argv ...string) ([]string, error) {
	var asked strings.Builder
	for _, name := range names {
		if at := hosted.LookUp(env, name); strings.HasPrefix(name, "~/") {
			asked.WriteString(at + "\n")
		} else if filepath.IsAbs(at) {
			asked.WriteString(name + "\n")
		}
	}
	if asked.Len() == 0 {
		return nil, nil
	}
	w := steps.NewWork(ws, act.Step{Ref: ws.Ref, Key: act.Key{Name: "programs"}, LimitMs: versionTime.Milliseconds()}, &steps.Running{})
	w.Agents = agents
	// A command opens the way to what its arguments name, so the names are in a file.
	const list = "programs"
	if err := os.MkdirAll(held.At(ws.Exchange()), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(held.At(filepath.Join(ws.Exchange(), list)), []byte(asked.String()), 0o600); err != nil {
		return nil, err
	}
	const script = `while read -r name; do command -v "$name" >/dev/null || echo "$name"; done <` + list
	if err := os.RemoveAll(held.At(w.Dir)); err != nil { // of an earlier call
		return nil, err
	}
	defer os.RemoveAll(held.At(w.Dir))
	r, err := beside(ctx, w, env, append([]string{"sh", "-c", script, "--"}, argv...)...)
	if err != nil || !r.OK() {
		return nil, err
	}
	printed, err := hosted.ReadFile(filepath.Join(w.Dir, "stdout"), hosted.MaxOutput)
	missing := strings.Split(string(printed), "\n")
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.Contains(missing, name) && (!strings.HasPrefix(name, "~/") || !slices.Contains(missing, hosted.LookUp(env, name)))
	}), err
}

// beside runs a command in the folder of the agents' prompts, in the sandbox, like everything that an agent runs.
func beside(ctx context.Context, w *steps.Work, env []string, argv ...string) (act.Outcome, error) {
	for _, dir := range []string{w.Dir, w.Workspace.Exchange()} {
		if err := os.MkdirAll(held.At(dir), 0o700); err != nil {
			return act.Outcome{}, err
		}
	}
	c, err := w.Command(w.Workspace.Exchange(), argv...)
	if err != nil {
		return act.Outcome{}, err
	}
	c.Env = hosted.Later(env)
	return w.Run(ctx, c, steps.Plainly)
}

// agent checks that an agent's program exists, here and in the sandbox, and starts it with --version, if it has that.
func (f *Readiness) agent(ctx context.Context, ws *hosted.Workspace, name string, a spec.Agent, env []string, starts bool) error {
	path := hosted.LookUp(env, name)
	if path == "" {
		f.problem("agent", "the agent's program "+git.Quote(name)+" is not on the PATH", "Install it, or name another agent.")
		return nil
	}
	known, is := program.Lookup(filepath.Base(name))
	if !is || name == program.Command {
		shut, err := hidden(ctx, ws, env, ws.Sandbox.Agents, []string{name}, a.Command.Args()...)
		if len(shut) > 0 {
			f.problem("agent", fmt.Sprintf("the agent's program %s is %s on this machine and is not in the loop's sandbox", git.Quote(name), path), unhide)
		}
		return err
	}
	if !starts {
		return nil
	}
	w := steps.NewWork(ws, act.Step{Ref: ws.Ref, Key: act.Key{Name: "version of " + known.Name}, LimitMs: versionTime.Milliseconds()}, &steps.Running{})
	w.Agents = []string{known.Name}
	said, err := beside(ctx, w, env, path, "--version")
	if err != nil || said.OK() || ctx.Err() != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(said.Tail), "\n")
	f.problem("agent", fmt.Sprintf("the agent's program can't be started: `%s --version` fails (%s): %s", path, said.Ending(), lines[len(lines)-1]), "Run it by hand, and reinstall it.")
	return nil
}

// path checks a program that a command names by a path in the tree, and starts first.
func (f *Readiness) path(check, key, command string, d contracts.Drawn, s spec.Spec) {
	needed, ok := seal.FirstPath(command)
	if !ok || s.Setup.Command != "" && check != "setup" { // setup may make it
		return
	}
	switch mode, linked := d.Mode(needed.Path); {
	case linked:
	case mode == "":
		f.problem(check, fmt.Sprintf("%s needs %s, which is not in the repository's commit: `%s`", key, git.Quote(needed.Name), command),
			"Commit it, name it by its absolute path, or let setup.command make it: the loop works in a clone, which has only what is committed.")
	case mode != "100755":
		f.problem(check, fmt.Sprintf("%s needs %s, which is not executable: `%s`", key, git.Quote(needed.Name), command),
			fmt.Sprintf("Run `git update-index --chmod=+x %s` and commit that, or start it with its interpreter.", shell.Quote(needed.Path)))
	}
}

// modules checks the modules of Python that a command runs, such as pytest: without one the command fails, and nothing
// that an agent may change mends that.
func (f *Readiness) modules(ctx context.Context, ws *hosted.Workspace, env []string, c Checked, d contracts.Drawn) error {
	for _, module := range seal.Modules(c.Command) {
		own := func(name string) bool {
			return name == module.Name+".py" || strings.HasPrefix(name, module.Name+"/") || strings.HasSuffix(name, "/"+module.Name+".py") || strings.Contains(name, "/"+module.Name+"/")
		}
		if slices.ContainsFunc(d.Names, own) || hosted.LookUp(env, module.Interpreter) == "" || strings.Contains(module.Interpreter, "/") && !filepath.IsAbs(module.Interpreter) {
			continue
		}
		w := steps.NewWork(ws, act.Step{Ref: ws.Ref, Key: act.Key{Name: "module"}, LimitMs: versionTime.Milliseconds()}, &steps.Running{})
		if err := os.RemoveAll(held.At(w.Dir)); err != nil { // of an earlier call
			return err
		}
		defer os.RemoveAll(held.At(w.Dir))
		r, err := beside(ctx, w, env, module.Interpreter, "-c", findModule, module.Name)
		if err != nil {
			return err
		}
		if r.ExitCode == noModule {
			f.problem(c.Check, fmt.Sprintf("%s.command needs the Python module %s, which %s does not have: `%s`", c.Check, git.Quote(module.Name), git.Quote(hosted.LookUp(env, module.Interpreter)), c.Command),
				"Install it, name the interpreter of the virtual environment that has it, activate that before pawl starts, or install it in setup.command.")
		}
	}
	return nil
}

// noModule is how findModule exits if there is no such module.
const noModule = 77

const findModule = "import importlib.util, sys; sys.exit(0 if importlib.util.find_spec(sys.argv[1]) else 77)"

// versionTime is how long an agent's program may take to print its version.
const versionTime = 15 * time.Second
