package activities

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/git"
	"pawl/internal/kind"
	"pawl/internal/proc"
	"pawl/internal/program"
	"pawl/internal/secret"
	"pawl/internal/spec"
)

// ready looks for the programs that a spec names, before anything runs, so that all that is missing is named at
// once: those of its commands, and those of its agents, which are started for their version where pawl knows
// them. What setup may bring is not looked for.
func (f *Preflight) ready(ctx context.Context, ws *loopWorkspace, s spec.Spec) error {
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
	}
	seen := map[string]bool{}
	for _, agent := range s.Agent.All() {
		for _, name := range programsOf(agent.Agent) {
			if seen[name] || ctx.Err() != nil {
				continue
			}
			seen[name] = true
			f.agent(ctx, name, append(slices.Clone(env), granted(agent.Env)...))
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

// agent looks for an agent's program, and starts it where it is one that pawl knows to have --version.
func (f *Preflight) agent(ctx context.Context, name string, env []string) {
	path := lookUp(env, name)
	if path == "" {
		f.problem("agent", "the agent's program "+git.Quote(name)+" is not on the PATH", "Install it, or name another agent.")
		return
	}
	if _, known := program.Lookup(filepath.Base(name)); !known || name == program.Command {
		return
	}
	if said, err := proc.Version(ctx, path, later(env)); err != nil && ctx.Err() == nil {
		if said = secret.Redact(said); said != "" {
			said = ": " + said
		}
		f.problem("agent", fmt.Sprintf("the agent's program can't be started: `%s --version` fails (%v)%s", path, err, said), "Run it by hand, and install it anew.")
	}
}

// lookUp finds a program on the PATH of an environment, "" where it is not there. A name with a slash is a path; a
// relative one is looked up nowhere, since it is in a tree.
func lookUp(env []string, name string) string {
	is := func(path string) bool {
		fi, err := os.Stat(path)
		return err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o111 != 0
	}
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) || is(name) {
			return name
		}
		return ""
	}
	for _, kv := range env {
		dirs, found := strings.CutPrefix(kv, "PATH=")
		if !found {
			continue
		}
		for _, dir := range filepath.SplitList(dirs) {
			if path := filepath.Join(dir, name); filepath.IsAbs(dir) && is(path) {
				return path
			}
		}
	}
	return ""
}
