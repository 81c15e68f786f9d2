package rules

import (
	"fmt"
	"strings"
	"time"

	"pawl/internal/judge/canary"
	"pawl/internal/lib/list"
	"pawl/internal/loop/api"
	"pawl/internal/metric"
	"pawl/internal/spec"
)

// CanaryOf returns the canary of a spec and its limit: it runs those commands of guard and test that passed. Broken
// code may hang, so each command has a multiple of its own time, within its own limit.
func CanaryOf(s spec.Spec, guard, test *api.Outcome) api.Canary {
	c := api.Canary{Spec: s}
	if guard != nil && guard.OK() && s.Guard.Command != "" {
		c.Guard = s.Guard.Command
		allow(&c, &c.Spec.Guard.Timeout, guard.ElapsedMs)
	}
	if test != nil && test.OK() && s.Test.Command != "" {
		c.Test = s.Test.Command
		allow(&c, &c.Spec.Test.Timeout, test.ElapsedMs)
	}
	return c
}

// Measuring returns the canary that measures the broken code too, beside that measurement of the unchanged code.
func Measuring(c api.Canary, unchanged api.Measured) api.Canary {
	if !unchanged.OK() || unchanged.Metric == nil {
		return c
	}
	c.Metric, c.Form = unchanged.Metric, unchanged.Form
	allow(&c, &c.Spec.Verify.Timeout, unchanged.ElapsedMs)
	c.LimitMs += c.Spec.Verify.Timeout.D().Milliseconds() // it may run twice
	return c
}

// allow bounds how long a command of the canary may take by its time on the unchanged code, and adds that to the canary's limit.
func allow(c *api.Canary, limit *spec.Duration, took int64) {
	*limit = min(*limit, max(spec.Duration(canaryTime), spec.Duration(canaryTimes*time.Duration(took)*time.Millisecond)))
	c.LimitMs += limit.D().Milliseconds()
}

// Each command of the canary may take this multiple of its time on the unchanged code, and at least this long.
const (
	canaryTimes = 5
	canaryTime  = 30 * time.Second
)

// Blind returns the problem and the advice for commands that do not notice that the code they should guard is broken.
func Blind(c api.Canaried, commands ...string) (text, do string) {
	text = fmt.Sprintf("the guard does not see your code: pawl put a syntax error into %s in scope (%s), but this still passed: %s",
		metric.Counted(c.Files, "file"), strings.Join(c.Broken, ", "), inCode(commands))
	if len(c.Instead) > 0 {
		text += ". What it uses instead: " + strings.Join(c.Instead, "; ")
	}
	return text, "Make it test the code of the folder that it runs in, for example by installing that folder in setup.command, or name another command. `validate.canary: false` turns this check off."
}

// Hollow returns the problem for commands that notice a syntax error, but not functions that always fail.
func Hollow(commands ...string) string {
	return "pawl made every function in scope fail, but this still passed: " + inCode(commands) + ". It builds your code but does not run it, so it guards little"
}

// Missed returns what commands did not notice in the code that they should guard, "" if they noticed all of it.
func Missed(c api.Canaried) string {
	switch {
	case c.Blind():
		return "a syntax error in your code"
	case c.Hollow:
		return "functions that always fail"
	default:
		return ""
	}
}

// Unmoved returns the note on a metric that stays the same while the code in scope is broken, or absent.
func Unmoved(c api.Canaried, value metric.Decimal) string {
	return fmt.Sprintf("verify may not see your code: it printed %s with a syntax error in %s (%s), and also without any file in scope",
		value, metric.Counted(c.Files, "file"), strings.Join(c.Broken, ", "))
}

// TriesPart reports whether the next part of the code is broken by itself. The guard runs once for each part, so the
// time for all parts is bounded: spent is the time of the parts so far, took the longest time that one may take.
func TriesPart(i int, spent, took time.Duration) bool { return i < maxParts && spent+took <= partsTime }

const (
	maxParts  = 12
	partsTime = 2 * time.Minute
)

// Part names a part of the code, with its size.
func Part(p canary.Part) string {
	first := p.Files[0]
	if len(p.Files) > 1 {
		first += ", …"
	}
	return fmt.Sprintf("%s (%s: %s)", p.Name, metric.Counted(len(p.Files), "file"), first)
}

// Unseen returns the problem for commands that see the code, but not these parts of it.
func Unseen(parts []string, commands ...string) string {
	return "the guard does not see all of your code. These parts had a syntax error, each by itself, and still this passed: " + inCode(commands) + ". " + strings.Join(parts, "; ") +
		". Whatever a change breaks there is kept: have the guard test them too, or take them out of the scope"
}

// PartsLeft returns the note on parts that were not broken by themselves because that would take too long.
func PartsLeft(parts []canary.Part, commands ...string) string {
	names := list.Map(parts[:min(len(parts), maxParts)], func(p canary.Part) string { return p.Name })
	if rest := len(parts) - len(names); rest > 0 {
		names = append(names, fmt.Sprintf("%d more", rest))
	}
	return "it was not tried whether " + inCode(commands) + " sees each part of the code, since that takes long. Not tried: " + strings.Join(names, ", ")
}

// inCode lists the commands, each in backticks.
func inCode(commands []string) string {
	given := list.Filter(commands, func(c string) bool { return c != "" })
	return strings.Join(list.Map(given, func(c string) string { return "`" + c + "`" }), ", ")
}
