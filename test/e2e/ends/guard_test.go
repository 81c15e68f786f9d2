package ends_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// TestP5_5_WhatTheGuardIsFor takes a loop through changes for which the guard does not run, and changes for which it
// does: one that the metric discards, one that deletes a test, and one that touches what measures and is made again.
func TestP5_5_WhatTheGuardIsFor(t *testing.T) {
	world.Slow(t, "TestP6_DecisionsAreThoseOfTheProtocol has guards that fail")
	w := world.Alone(t, `case $PAWL_ITERATION.$PAWL_ATTEMPT in
		1.*) echo 9 >work/n; echo "lower the number" ;;
		2.*) echo 1$PAWL_ATTEMPT >work/n; printf 'ok 1 - a\n1..1\n' >work/other; echo "leave a test out" ;;
		3.1) echo 'echo 99' >measure.sh; echo "measure better" ;;
		3.*) cp "$PAWL_PROMPT" "$WORLD/prompt"; echo 11 >work/n; echo "raise the number" ;;
		esac`)
	w.Write("repo/work/other", "ok 1 - a\nok 2 - b\n1..2\n")
	w.Commit("two tests")
	guards := filepath.Join(w.Dir, "guards")
	w.Set(doc{"guard": doc{"command": "echo run >>" + guards + "; find work -name 'oth*' -exec cat {} +"}, "limits": doc{"iterations": 3, "onSealed": "rework"}})
	w.Run(0)
	rows := w.Results(w.Loop)
	require.Equal(t, row{"1", "9", "-1.00", "no", "lower the number"}, rows[1])
	require.Equal(t, row{"2", "10", "+0.00", "no", "guard-fail: leave a test out"}, rows[2])
	require.Equal(t, row{"3", "11", "+1.00", "yes", "raise the number"}, rows[3])
	require.Equal(t, 8, strings.Count(w.Read("guards"), "run"), "at the baseline, twice for each of three attempts of the second change, for the third")
	require.Contains(t, w.Read("prompt"), "sealed: measure.sh")
	require.Contains(t, w.Pawl("log", w.Loop).Out, "guard-fail")
}
