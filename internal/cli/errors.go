package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"pawl/internal/cli/render"
	"pawl/internal/fault"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
	"pawl/internal/spec"
)

// explain says what went wrong and what to do, without the names of Go types.
func (a *app) explain(err error) {
	var problems spec.Problems
	var f *fault.Error
	var left *leaving
	var misused *usageError
	switch {
	case exitCode(err) == exitOK:
	case a.told != nil:
		advice := ""
		if errors.As(err, &f) {
			advice = f.Advice()
		}
		a.told.Error(dirfd.Known(err.Error()), "code", fault.CodeOf(err), "advice", advice)
	case errors.As(err, &misused):
		a.say("%s", render.Clean(misused.what))
		a.indent(fmt.Sprintf("See `%s --help`.", cmp.Or(misused.of, a.deps.Program)))
	case errors.As(err, &left):
		if left.why != "" {
			a.say("%s", left.why)
		}
	case errors.As(err, &problems):
		text := "the spec is invalid"
		if errors.Is(err, errTask) {
			text = errTask.Error()
		}
		a.say("%s (%s)", text, fault.InvalidSpec)
		for _, p := range problems {
			a.screen.Print(a.hung("  " + render.Clean(p.String())))
		}
	case errors.As(err, &f):
		text, rest, _ := strings.Cut(strings.TrimSpace(f.What), "\n")
		a.say("%s (%s)", render.Clean(text), f.Code)
		a.indent(rest)
		a.indent(f.Advice())
	default:
		text, rest, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
		a.say("%s", render.Clean(text))
		a.indent(rest)
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			a.indent("Make room on that disk: `pawl doctor` says how much is free, and `pawl clean` lists what ended loops still occupy.")
		}
	}
}

// failure is an error as --json prints it.
type failure struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Fix     string     `json:"fix,omitempty"`
}

// failureOf returns an error as --json prints it, nil for one that ends a command which has said everything.
func failureOf(err error) *failure {
	var problems spec.Problems
	var f *fault.Error
	var left *leaving
	var misused *usageError
	switch {
	case exitCode(err) == exitOK:
		return nil
	case errors.As(err, &left):
		if left.why == "" {
			return nil
		}
		return &failure{fault.Cancelled, left.why, ""}
	case errors.As(err, &misused):
		return &failure{fault.InvalidMessage, misused.what, fmt.Sprintf("See `%s --help`.", misused.of)}
	case errors.As(err, &problems):
		lines := list.Map(problems, func(p spec.Problem) string { return p.String() })
		return &failure{fault.InvalidSpec, strings.Join(lines, "\n"), fault.Recovery(fault.InvalidSpec)}
	case errors.As(err, &f):
		return &failure{f.Code, f.What, f.Advice()}
	}
	return &failure{fault.InfrastructureError, strings.TrimSpace(err.Error()), ""}
}

// explainJSON prints an error to stdout as {"error": {...}}, if --json was given and nothing was printed yet.
func (a *app) explainJSON(err error) error {
	said := failureOf(err)
	if !a.json || a.answered || a.told != nil || said == nil {
		return nil
	}
	said.Message, said.Fix = dirfd.Known(said.Message), dirfd.Known(said.Fix)
	return a.printJSON(struct {
		Error *failure `json:"error"`
	}{said})
}

// oneLine returns an error and what to do about it within a sentence.
func oneLine(err error) string {
	return render.Clean(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
}

// indent writes the rest of a message, which may quote a command's output.
func (a *app) indent(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = render.Clean(line); line != "" {
			a.screen.Print(a.hung("      " + line))
		}
	}
}
