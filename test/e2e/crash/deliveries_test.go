package crash_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/test/harness/world"
)

// delivery is one way through a Deliver loop. Its test command prints the file that the agent writes: a report in TAP,
// in which `not ok` is a failure.
type delivery struct {
	name   string
	agent  string
	spec   doc
	during func(*machine)
	phases string
	code   fault.Code
}

// roles is an agent of several roles: each line is for the role that it names.
func roles(lines ...string) string {
	return "echo \"$PAWL_ROLE.$PAWL_ITERATION.$PAWL_ATTEMPT\" >>\"$WORLD/calls\"\nn() { echo \"$1\" >work/n; }\nsecond() { test \"$(grep -c \"^$PAWL_ROLE\" \"$WORLD/calls\")\" -ge 2; }\ncase $PAWL_ROLE in\n" +
		strings.Join(lines, " ;;\n") + " ;;\nesac\n"
}

const (
	passing = `n "ok 1 - climbs"`
	failing = `n "not ok 1 - climbs"`
)

var own = doc{"planner": doc{}, "reviewer": doc{}}

var deliveries = []delivery{
	{
		name: "deliver-planned-fixed-reviewed", spec: doc{"agent": doc{"roles": own}},
		agent: roles(`planner) echo "climb"`, `writer) `+failing+`; echo "climb badly"`, `fixer) `+passing+`; echo "climb well"`,
			`reviewer) sed -n 's/^\(APPROVED [0-9a-f]*\).*/\1: fine/p' "$PAWL_PROMPT" | head -n 1`),
		phases: "plan write test fix test verify complete",
	},
	{
		name:   "deliver-regenerated",
		agent:  roles(`writer) if second; then `+passing+`; else `+failing+`; fi; echo "climb"`, `fixer) echo '{"regenerate": true}' >"$PAWL_RESULT"`),
		phases: "plan write test fix write test verify complete",
	},
	{
		name:   "deliver-flaky",
		agent:  roles(`writer) n "ok 1 - flaky"; echo "climb"`),
		spec:   doc{"sandbox": doc{"use": "off"}}, // a judge that is made anew has no deps/seen, so the tests would fail from scratch, too
		phases: "plan write test verify complete",
	},
	{
		name:  "deliver-blocked",
		agent: roles(`writer) echo exit 0 >guard.sh; echo "ease the guard"`),
		during: func(w *machine) {
			first := w.gate(loop.GateGuard)
			w.message("reject", map[string]string{"by": "bob"})
			w.until("what was written anew is blocked", w.is(func(s loop.State) bool { return s.Gate != nil && s.Gate.ID != first.ID }))
			w.message("halt", map[string]string{"by": "bob"})
		},
		phases: "plan write", code: fault.GuardBlocked,
	},
	{
		name: "deliver-max-iterations", spec: iterations(2),
		agent:  roles(`writer) n "ok 1 - boom $PAWL_ITERATION"; echo "climb"`),
		phases: "plan write test verify write test verify", code: fault.MaxIterations,
	},
	{
		name: "deliver-max-fixes", spec: doc{"limits": doc{"fixAttempts": 1}},
		agent:  roles(`writer) `+failing+`; echo "climb"`, `fixer) n "not ok 2 - stays"; echo "climb on"`),
		phases: "plan write test fix test", code: fault.MaxFixAttempts,
	},
	{
		name: "deliver-phase-timeout", spec: doc{"limits": doc{"phaseTimeout": "5s"}},
		agent:  roles(`writer) exec sleep 60`),
		phases: "plan write", code: fault.PhaseTimeout,
	},
	{
		name: "deliver-rejected-then-approved", spec: doc{"approvals": doc{"diff": "required"}, "limits": doc{"iterations": 2}},
		agent: roles(`writer) n "ok 1 - climbs $PAWL_ITERATION"; echo "climb"`),
		during: func(w *machine) {
			first := w.gate(loop.GateDiff)
			w.message("reject", map[string]string{"by": "bob", "hash": first.Hash, "note": "higher"})
			w.until("another proposal waits", w.is(func(s loop.State) bool {
				return s.Gate != nil && s.Gate.Kind == loop.GateDiff && s.Gate.ID != first.ID
			}))
			w.message("approve", map[string]string{"by": "ann", "hash": w.gate(loop.GateDiff).Hash})
		},
		phases: "plan write test verify write test verify complete",
	},
}

// delivers returns the machine's loop as a Deliver loop.
func (w *machine) delivers(change doc) []byte {
	w.T.Helper()
	w.kind = "Deliver"
	doc := doc{
		"kind": "deliver", "judge": doc{"keep": []string{"deps/**"}},
		"test": doc{"command": `cat work/n
if grep -q flaky work/n && [ ! -e deps/seen ]; then touch deps/seen; echo "not ok 2 - now and then"; exit 1; fi
! grep -q '^not ok' work/n`},
	}
	maps.Copy(doc, change)
	return w.spec(doc)
}

// TestDeliveries takes every way through a Deliver loop and replays its history with the current code. With -update it
// keeps the histories for the replay test of the workflows.
func TestDeliveries(t *testing.T) {
	world.Slow(t, "TestADeliveryKilledAtEveryPoint takes one of the ways, and the histories of all are replayed")
	if !*world.Update {
		t.Parallel()
	}
	for _, d := range deliveries {
		t.Run(d.name, func(t *testing.T) {
			w := pathMachine(t, d.agent)
			w.start(bothRoles)
			w.Loop = d.name
			require.NoError(t, w.begin(w.delivers(d.spec)))
			if d.during != nil {
				d.during(w)
			}
			r, err := w.end()
			var failed *temporal.ApplicationError
			if err != nil {
				require.ErrorAs(t, err, &failed)
				require.NoError(t, failed.Details(&r))
				require.Equal(t, string(d.code), failed.Type())
			}
			require.Equal(t, string(d.code), r.ErrorCode, r.Reason)
			require.Equal(t, d.phases, w.phases())
			require.Equal(t, w.Before, w.Snapshot())
			w.keepHistory(t, d.name, "")
		})
	}
}

// phases returns the phases that the loop entered, from its ledger.
func (w *machine) phases() string {
	w.T.Helper()
	_, l, head := w.openLedger()
	events, err := l.Events(w.T.Context(), head)
	require.NoError(w.T, err)
	var all []string
	for _, e := range events {
		if e.Type == loop.PhaseEntered {
			all = append(all, string(e.Phase))
		}
	}
	return strings.Join(all, " ")
}
