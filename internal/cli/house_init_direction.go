package cli

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"pawl/activities/preflight"
	"pawl/internal/draft"
	"pawl/internal/home"
	"pawl/internal/spec"
)

// installed looks for programs on the PATH, and in a Python for its modules. The answers are kept: a language
// may ask more than once.
func installed(ctx context.Context) func(string) bool {
	known := map[string]bool{}
	return func(program string) bool {
		is, asked := known[program]
		if asked {
			return is
		}
		if python, module, of := strings.Cut(program, " -m "); of {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			c := exec.CommandContext(ctx, python, "-I", "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)", module)
			is = c.Run() == nil
		} else {
			_, err := exec.LookPath(program)
			is = err == nil
		}
		known[program] = is
		return is
	}
}

// direct finds out whether more or less of the metric is better where its command does not say so by itself: whoever
// calls says it, or what the command prints, or whoever is asked.
func (a *app) direct(ctx context.Context, o initOptions, root string, tracked bool, found *draft.Repository) error {
	m := &found.Metric
	if o.direction != "" {
		m.Direction = o.direction
	}
	if m.Direction != "" {
		return nil
	}
	printed := "there is no commit yet to try it on"
	if tracked {
		var err error
		if m.Direction, printed, err = a.tryMetric(ctx, root, *found); err != nil || m.Direction != "" {
			return err
		}
	}
	question := fmt.Sprintf("pawl can't tell whether a higher or a lower result of `%s` is better (%s)", m.Command, printed)
	if !a.terminal() {
		return usage(question + "; pass --direction lower or --direction higher")
	}
	a.say("%s", question)
	a.listen()
	for m.Direction == "" {
		a.screen.Ask("Which is better, lower or higher? [l/h] ")
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case line, open := <-a.typed:
			switch typed := strings.ToLower(strings.TrimSpace(line)); {
			case typed == "l" || typed == "lower":
				m.Direction = "lower"
			case typed == "h" || typed == "higher":
				m.Direction = "higher"
			case !open:
				return &leaving{code: exitInterrupted, why: "not answered; nothing was written"}
			}
		}
	}
	return nil
}

// tryMetric runs the metric's command in a clone, and tells the direction from what it prints; said is
// what there was to see.
func (a *app) tryMetric(ctx context.Context, root string, found draft.Repository) (direction, said string, err error) {
	var scope []any
	for _, glob := range found.Scope {
		scope = append(scope, glob)
	}
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
		return "", "", err
	}
	h, err := home.Open()
	if err != nil {
		return "", "", err
	}
	shown := a.progress("trying `"+found.Metric.Command+"` in a clone, to see whether a higher or a lower result is better", s, false)
	f, err := preflight.DryRun(ctx, h, "init", s, shown.begin)
	shown.stop()
	switch {
	case ctx.Err() != nil:
		return "", "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Sprintf("it could not be tried: %v", err), nil
	case f.Verify == nil && len(f.Problems) > 0:
		return "", "it could not be tried: " + f.Problems[0].What, nil
	case f.Verify == nil:
		return "", "it could not be tried", nil
	case !f.Verify.OK():
		return "", "it fails here: " + f.Verify.Ending(), nil
	}
	return draft.Direction(f.Printed), "it ends with: " + draft.LastNumber(f.Printed), nil
}
