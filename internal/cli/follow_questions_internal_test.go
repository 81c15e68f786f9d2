package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli/render"
	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec/kind"
)

// TestAPageFitsOnTheScreen: wrapped lines take several rows of it.
func TestAPageFitsOnTheScreen(t *testing.T) {
	long := strings.Repeat("x", 100)
	p := pagesOf("one\n" + long + "\ntwo\n" + long + "\n")
	narrow := render.Style{Wrap: true, Width: 40}
	require.Equal(t, "one\n"+long+"\n", p.next(narrow, 4))
	require.Equal(t, "two\n", p.next(narrow, 3))
	require.Equal(t, long, p.next(narrow, 2), "one line at least")
	require.Equal(t, len(p.lines), p.at)
}

func TestARejectionOfTheLastIterationPromisesNoOther(t *testing.T) {
	three := metric.MustDecimal("3")
	left := loop.NewBudget(map[loop.Resource]metric.Decimal{loop.Iterations: three})
	spent := left.Spend(loop.Iterations, three)
	gate := loop.Gate{Kind: loop.GateDiff}
	require.Contains(t, questionAt(kind.Deliver, gate, left), "n: reject (another iteration)")
	require.Equal(t, "Why? (the agent reads it; Enter: no reason) ", whyAt(kind.Deliver, gate, left, true))
	require.Contains(t, questionAt(kind.Deliver, gate, spent), "n: reject (no iteration is left)")
	require.Equal(t, "Why? (for the record; Enter: no reason) ", whyAt(kind.Deliver, gate, spent, true))
	require.Equal(t, "The loop ends. Why? (for the record; Enter: no reason) ", whyAt(kind.Improve, loop.Gate{Kind: loop.GateContract}, left, false))
	require.Equal(t, "The loop ends. Why? (for the record; Enter: no reason) ", whyAt(kind.Improve, loop.Gate{Kind: loop.GateBudget}, left, true))
	require.Equal(t, "The change is undone. Why? (the agent reads it; Enter: no reason) ", whyAt(kind.Improve, loop.Gate{Kind: loop.GateNewFiles}, left, true))
	require.Equal(t, "The change is undone. Why? (for the record; Enter: no reason) ", whyAt(kind.Improve, loop.Gate{Kind: loop.GateNewFiles}, spent, true))
	require.Contains(t, questionAt(kind.Improve, gate, spent), "n: reject (ends the loop)")
}

// TestTheOutputOfACommandKeepsItsLines: nobody can read them as one.
func TestTheOutputOfACommandKeepsItsLines(t *testing.T) {
	var out, said bytes.Buffer
	a := newApp(nil, &out, &said, Deps{})
	a.explain(fault.New(fault.PreconditionFailed, "the setup command fails (exit 1): `npm ci`\nnpm error one\n  npm error two\n").Advise("Try it."))
	require.Equal(t, "pawl: the setup command fails (exit 1): `npm ci` (PRECONDITION_FAILED)\n      npm error one\n      npm error two\n      Try it.\n", said.String())
}
