package cli

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/activities/preflight"
	"pawl/internal/cli/render"
	"pawl/internal/cli/scaffold"
	"pawl/internal/home"
	"pawl/internal/lib/list"
	"pawl/internal/spec"
)

// installed returns a function that looks for a program on the PATH, or for a module of a Python. It remembers the
// answers, because a language may ask more than once. A Python of the repository itself is not run, because its owner
// may be a stranger: only its files are looked at.
func installed(ctx context.Context, root string) func(string) bool {
	cache := map[string]bool{}
	return func(program string) bool {
		isInstalled, asked := cache[program]
		if asked {
			return isInstalled
		}
		python, module, of := strings.Cut(program, " -m ")
		if environment, inEnvironment := strings.CutSuffix(python, "/bin/python"); of && inEnvironment {
			isInstalled = hasModule(filepath.Join(root, environment), module)
		} else if of {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			c := exec.CommandContext(ctx, python, "-I", "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)", module)
			isInstalled = c.Run() == nil
		} else {
			_, err := exec.LookPath(program)
			isInstalled = err == nil
		}
		cache[program] = isInstalled
		return isInstalled
	}
}

// hasModule reports whether a virtual environment has a module, also one that it takes from the Python that it is of.
func hasModule(environment, module string) bool {
	if found(environment, "lib/python3*/site-packages/"+module) {
		return true
	}
	text, err := os.ReadFile(filepath.Join(environment, "pyvenv.cfg"))
	if err != nil {
		return false
	}
	settings := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, "=")
		settings[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	if settings["include-system-site-packages"] != "true" || !filepath.IsAbs(settings["home"]) {
		return false
	}
	return found(filepath.Dir(settings["home"]), "lib/python3*/*-packages/"+module, "local/lib/python3*/*-packages/"+module)
}

// found reports whether a folder has a file that matches one of these globs.
func found(dir string, globs ...string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		files, err := fs.Glob(os.DirFS(dir), glob)
		return err == nil && len(files) > 0
	})
}

// settleMetric asks a person for the command of the metric, if nothing was found that measures, and finds out whether
// more or less of it is better. A benchmark that fails is not proposed. The command may stay "": then the spec leaves it
// open.
func (a *app) settleMetric(ctx context.Context, o initOptions, root string, tracked bool, found *scaffold.Repository) error {
	for {
		if found.Metric.Command == "" && a.terminal() {
			if err := a.asksMetric(ctx, found); err != nil {
				return err
			}
		}
		if found.Metric.Command == "" {
			found.Metric.Direction = o.direction
			return nil
		}
		if err := a.direct(ctx, o, root, tracked, found); err != nil {
			return err
		}
		if found.Metric.Command != "" {
			return nil
		}
		if a.terminal() {
			last := len(found.Missing) - 1
			a.say("%s", render.Clean(found.Missing[last]))
			found.Missing = found.Missing[:last]
		}
	}
}

// asksMetric asks for a command that measures. Without an answer the metric stays open.
func (a *app) asksMetric(ctx context.Context, found *scaffold.Repository) error {
	a.say("nothing was found here that measures something")
	command, err := a.asks(ctx, "Which command prints the number to improve? ")
	if err != nil || command == "" {
		return err
	}
	found.Metric.Command = command
	found.Metric.Goal = "Improve what " + command + " measures"
	found.Metric.Why = "the command that you named"
	return nil
}

// direct finds out whether more or less of the metric is better, if its command does not say so itself: from the
// --direction flag, from the output of the command, or by asking a person.
func (a *app) direct(ctx context.Context, o initOptions, root string, tracked bool, found *scaffold.Repository) error {
	m := &found.Metric
	m.Direction = cmp.Or(o.direction, m.Direction)
	printed := "there is no commit yet to try it on"
	if m.Direction == "" && tracked {
		var err error
		if printed, err = a.tryMetric(ctx, root, found); err != nil {
			return err
		}
	}
	if m.Direction != "" || m.Command == "" {
		return nil
	}
	question := fmt.Sprintf("pawl can't tell whether a higher or a lower result of `%s` is better (%s)", m.Command, printed)
	if !a.terminal() {
		return usage(question + "; pass --direction lower or --direction higher")
	}
	a.say("%s", question)
	for m.Direction == "" {
		typed, err := a.asks(ctx, "Which is better, lower or higher? [l/h] ")
		if err != nil {
			return err
		}
		switch typed = answered(typed); typed {
		case "l", "lower":
			m.Direction = "lower"
		case "h", "higher":
			m.Direction = "higher"
		case "":
		default:
			a.say("%q is no answer to this", render.Clean(typed))
		}
	}
	return nil
}

// tryMetric runs the metric's command in a clone, and notes the direction that its output tells, or replaces the metric if
// the command fails. It returns what it printed, or why it could not be tried.
func (a *app) tryMetric(ctx context.Context, root string, found *scaffold.Repository) (printed string, err error) {
	scope := list.Map(found.Scope, func(glob string) any { return glob })
	keys := map[string]any{
		"goal": found.Metric.Goal, "repo": map[string]any{"path": root}, "scope": scope, "approvals": map[string]any{"tools": []any{"*"}},
		"agent": map[string]any{"command": "true"}, "verify": map[string]any{"command": found.Metric.Command, "timeout": found.Metric.Timeout, "direction": "lower", "evidence": spec.Single},
		"validate": map[string]any{"canary": false},
	}
	if found.Setup != "" {
		keys["setup"] = map[string]any{"command": found.Setup}
	}
	s, err := spec.FromMap(keys)
	if err != nil {
		return "", err
	}
	h, err := home.Open()
	if err != nil {
		return "", err
	}
	shown := a.progress("trying `"+found.Metric.Command+"` in a clone, to see whether a higher or a lower result is better", s, false)
	f, err := preflight.DryRun(ctx, h, "init", s, shown.begin)
	shown.stop()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "it could not be tried: " + oneLine(err), nil
	case f.Verify == nil && len(f.Problems) > 0:
		return "it could not be tried: " + f.Problems[0].What, nil
	case f.Verify == nil:
		return "it could not be tried", nil
	case !f.Verify.OK():
		found.WithoutBenchmark(f.Verify.Ending())
		return "", nil
	}
	found.Metric.Direction = scaffold.Direction(f.Printed)
	return "it ends with: " + scaffold.LastNumber(f.Printed), nil
}
