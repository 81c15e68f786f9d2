package activities

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/internal/act"
	"pawl/internal/git"
	"pawl/internal/held"
	"pawl/internal/kind"
	"pawl/internal/proc"
	"pawl/internal/program"
	"pawl/internal/spec"
)

// ready looks for the programs that a spec names, before anything runs, so that all that is missing is named at
// once: those of its commands, and those of its agents, which are started for their version where pawl knows
// them. What setup may bring is not looked for. What a target of make or a script of npm calls may be there by other ways: that is a note.
func (f *Preflight) ready(ctx context.Context, ws *loopWorkspace, s spec.Spec, d drawnContract) error {
	env, err := ws.environment()
	if err != nil {
		return err
	}
	k, err := kind.Of(s.Kind)
	if err != nil {
		return err
	}
	commands := []struct{ check, command string }{{"setup", s.Setup.Command}}
	if s.Setup.Command == "" {
		commands = append(commands, []struct{ check, command string }{{"verify", s.Verify.Command}, {"guard", s.Guard.Command}, {"check", s.Check.Command}}...)
		if k.Tests && s.TestRequired() {
			commands = append(commands, struct{ check, command string }{"test", s.Test.Command})
		}
	}
	for _, c := range commands {
		for _, name := range spec.Programs(c.command) {
			if lookUp(env, name) == "" {
				f.problem(c.check, fmt.Sprintf("%s.command needs %s, which is not on the PATH: `%s`", c.check, git.Quote(name), c.command), "Install it, or use another command.")
			}
		}
		scripted := slices.DeleteFunc(spec.Scripted(c.command, d.read), func(name string) bool { return slices.Contains(d.names, "node_modules/.bin/"+name) })
		for _, name := range append(spec.Called(c.command, d.read), scripted...) {
			if lookUp(env, name) == "" {
				f.Notes = append(f.Notes, fmt.Sprintf("%s.command (`%s`) calls %s, which is not there", c.check, c.command, git.Quote(name)))
			}
		}
	}
	seen := map[string]bool{}
	for _, agent := range s.Agent.All() {
		for _, name := range programsOf(agent.Agent) {
			if seen[name] || ctx.Err() != nil {
				continue
			}
			seen[name] = true
			if err := f.agent(ctx, ws, name, append(slices.Clone(env), granted(agent.Env)...)); err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

// programsOf are the programs that an agent is started with.
func programsOf(a spec.Agent) []string {
	switch {
	case len(a.Command.List) > 0:
		return a.Command.List[:1]
	case a.Command.Shell != "":
		return spec.Programs(a.Command.Shell)
	case a.Use != spec.UseCommand:
		return []string{a.Use}
	}
	return nil
}

// agent looks for an agent's program, and starts it where it is one that pawl knows to have --version: in the sandbox,
// as all else of an agent's.
func (f *Preflight) agent(ctx context.Context, ws *loopWorkspace, name string, env []string) error {
	path := lookUp(env, name)
	if path == "" {
		f.problem("agent", "the agent's program "+git.Quote(name)+" is not on the PATH", "Install it, or name another agent.")
		return nil
	}
	known, is := program.Lookup(filepath.Base(name))
	if !is || name == program.Command {
		return nil
	}
	w := newWork(ws, act.Step{Ref: ws.Ref, Key: act.Key{Name: "version of " + known.Name}, LimitMs: versionTime.Milliseconds()}, &running{})
	w.agents = []string{known.Name}
	for _, dir := range []string{w.dir, ws.exchange()} {
		if err := os.MkdirAll(held.At(dir), 0o700); err != nil {
			return err
		}
	}
	c, err := w.command(ws.exchange(), path, "--version")
	if err != nil {
		return err
	}
	c.Env = later(env)
	said, err := w.run(ctx, c, func(ctx context.Context, s *proc.Supervisor, c proc.Command) (proc.Result, error) {
		return s.Run(ctx, c)
	})
	if err != nil || said.OK() || ctx.Err() != nil {
		return err
	}
	f.problem("agent", fmt.Sprintf("the agent's program can't be started: `%s --version` fails (%s): %s", path, said.Ending(), lastLine(said.Tail)), "Run it by hand, and install it anew.")
	return nil
}

// lastLine is what a program says in the end.
func lastLine(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return lines[len(lines)-1]
}

// versionTime bounds how long an agent's program may take to say its version.
const versionTime = 15 * time.Second

// lookUp finds a program on the PATH of an environment, "" where it is not there. A name with a slash is a path; a
// relative one is looked up nowhere, since it is in a tree.
func lookUp(env []string, name string) string {
	if strings.Contains(name, "/") && !filepath.IsAbs(name) && !strings.HasPrefix(name, "~/") {
		return name
	}
	at := located(name, env)
	if fi, err := os.Stat(at); err != nil || !fi.Mode().IsRegular() || fi.Mode().Perm()&0o111 == 0 {
		return ""
	}
	return at
}
