package govern

import (
	"fmt"
	"strings"

	"pawl/internal/act"
	"pawl/internal/evidence"
	"pawl/internal/spec"
)

// CanaryOf returns the canary of a spec: the commands that are to notice, "" for none, and its limit.
func CanaryOf(s spec.Spec, guard, test string) act.Canary {
	c := act.Canary{Spec: s, Guard: guard, Test: test}
	if guard != "" {
		c.LimitMs += s.Guard.Timeout.D().Milliseconds()
	}
	if test != "" {
		c.LimitMs += s.Test.Timeout.D().Milliseconds()
	}
	return c
}

// Blind returns what is wrong where the commands that are to guard the code do not notice that it is broken,
// and what to do.
func Blind(c act.Canaried, commands ...string) (what, do string) {
	what = fmt.Sprintf("the guard does not see your code: %s in scope had a syntax error (%s), and still this passed: %s",
		evidence.Counted(c.Files, "file"), strings.Join(c.Broken, ", "), inCode(commands))
	if len(c.Instead) > 0 {
		what += ". What it uses instead: " + strings.Join(c.Instead, "; ")
	}
	return what, "Have it test the code of the folder that it runs in, such as by installing that folder in setup.command, or name another command. `validate.canary: false` leaves this out."
}

// Hollow returns what to say where the commands notice a syntax error, and not that functions only fail.
func Hollow(commands ...string) string {
	return "every function of the code in scope only failed, and still this passed: " + inCode(commands) + ". It builds your code and does not run it, so it guards little"
}

// inCode lists the commands that there are.
func inCode(commands []string) string {
	var all []string
	for _, c := range commands {
		if c != "" {
			all = append(all, "`"+c+"`")
		}
	}
	return strings.Join(all, ", ")
}
