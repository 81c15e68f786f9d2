package activities_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/act"
)

// TestL2_WhatFailedOnTheUnchangedCodeIsToldApart compares runs of the tests with one in which a test failed.
func TestL2_WhatFailedOnTheUnchangedCodeIsToldApart(t *testing.T) {
	l, env, _ := torn(t)
	tap := func(lines string, exit int) string { return fmt.Sprintf("printf '%s'; exit %d", lines, exit) }
	step := func(n int) act.Step {
		s := l.step(0)
		s.Key.Attempt = n
		return s
	}
	before, _ := l.run(env, act.Test{Step: step(0), Command: tap(`not ok 1 - docker\nok 2 - a\n1..2\n`, 1)})
	require.Equal(t, []string{"docker"}, before.Tests.Failing)
	require.False(t, before.Tests.Excused || before.Tests.Progress)
	for i, c := range []struct {
		name              string
		command           string
		excused, progress bool
		known             []string
	}{
		{"as before", tap(`not ok 1 - docker\nok 2 - a\n1..2\n`, 1), true, false, []string{"docker"}},
		{"and one more passes", tap(`not ok 1 - docker\nok 2 - a\nok 3 - b\n1..3\n`, 1), true, true, []string{"docker"}},
		{"and one more fails", tap(`not ok 1 - docker\nok 2 - a\nnot ok 3 - b\n1..3\n`, 1), false, false, []string{"docker"}},
		{"another fails", tap(`ok 1 - docker\nnot ok 2 - a\n1..2\n`, 1), false, true, nil},
		{"what passed is gone", tap(`not ok 1 - docker\n1..1\n`, 1), false, false, []string{"docker"}},
		{"no test fails, and the command does", tap(`ok 1 - docker\nok 2 - a\n1..2\n`, 1), false, true, nil},
		{"it is mended", tap(`ok 1 - docker\nok 2 - a\n1..2\n`, 0), false, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, _ := l.run(env, act.Test{Step: step(i + 1), Command: c.command, Known: before.Log})
			require.Equal(t, c.excused, out.Tests.Excused)
			require.Equal(t, c.progress, out.Tests.Progress)
			require.Equal(t, c.known, out.Tests.Known)
		})
	}
	out, _ := l.run(env, act.Test{Step: step(20), Command: tap(`not ok 1 - docker\n1..1\n`, 1), Known: before.Log + "-gone"})
	require.False(t, out.Tests.Excused, "the host that had the report is gone: everything counts")
}
