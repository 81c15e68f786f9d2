package render_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli/render"
	"pawl/internal/exec/sandbox"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/steward/charter"
)

func TestTheContractShowsAllThatIsApproved(t *testing.T) {
	target := dec("20000")
	wall := spec.Duration(2 * time.Hour)
	c := render.Contract{
		Kind: kind.Improve,
		Loop: "demo-1", Repo: "/home/me/src/routes", Branch: "pawl/demo-1", Baseline: ref("34051.6"), InScope: 5,
		Contract: loop.Contract{Hash: hash, Base: "2c9deac54712", Tools: []string{"*"}, Sealed: []loop.Seal{{Path: "go.mod"}, {Path: "route/city.go"}}},
		Spec: spec.Spec{
			Notify: []string{"https://example.com/hook", "./tell.sh | mail me"},
			Goal:   "Make it shorter\nbut visit every city", Repo: spec.Repo{Base: "main"}, Scope: []string{"route/*.go"}, NewFiles: "deny",
			Setup:  spec.Setup{Command: "make deps"},
			Verify: spec.Verify{Command: "go run ./cmd/measure", Timeout: spec.Duration(30 * time.Second), Direction: "lower", MinDelta: metric.Threshold{Value: dec("1")}, Target: &target},
			Guard:  spec.Guard{Command: "go vet ./...\ngo test ./...", Timeout: spec.Duration(5 * time.Minute)},
			Agent:  spec.Agent{Command: spec.Argv{List: []string{"sh", "/tmp/my agent.sh"}}},
			Limits: spec.Limits{Iterations: 1, ActiveTime: spec.Duration(10 * time.Minute), ToolCalls: 60, Discards: 10, WallClock: &wall, CostUSD: ref("2.50")},
		},
		Protections: []string{"the agent works on a clone of its own", "no sandbox: agent and commands run with your rights"},
	}
	golden(t, "contract", style.Contract(c))
	for i := range 30 {
		c.Contract.Sealed = append(c.Contract.Sealed, loop.Seal{Path: "more" + string(rune('a'+i%26))})
	}
	require.Contains(t, style.Contract(c), "and 12 files more")
	c.Contract.Sealed = []loop.Seal{{Path: "**/go.mod", Names: loop.SealNew, Lines: []string{"ignore", "replace"}}, {Path: "go.work", Names: loop.SealLines, Lines: []string{"use"}}}
	require.Regexp(t, `sealed +no new files: \*\*/go.mod\n +no change of these lines: \*\*/go.mod \(ignore, replace\)  go.work \(use\)\n +\S`, style.Contract(c))
}

func TestWhatDoesNotHoldIsInRed(t *testing.T) {
	inColour := render.Style{Width: 100, Zone: zone, Color: true}
	alarm := "THE ENGINE CAN BE REACHED: agent and commands could answer a gate"
	text := inColour.Protections([]string{"HTTP is closed", alarm})
	require.Contains(t, text, "\x1b[31m"+alarm)
	require.NotContains(t, text, "\x1b[31mHTTP")
	require.Contains(t, inColour.Protections([]string{"may write /x\x1b[31m\u202e"}), `may write /x\u{1b}[31m\u{202e}`)
	for _, claim := range sandbox.Claims(sandbox.Facts{Repo: "/r", Policy: sandbox.Policy{Network: sandbox.Open}}) {
		if claim.Fails == "" { // the claim holds in any case
			continue
		}
		require.Contains(t, inColour.Protections([]string{claim.Fails}), "\x1b[31m"+claim.Fails)
	}
}

func TestAChartersViewShowsWhatItGrants(t *testing.T) {
	c := charter.Charter{
		Defaults: json.RawMessage(`{"sandbox": {"allow": ["/var/cache/x"]}, "agent": {"env": {"BASE": "http://x"}}}`),
		Agent:    spec.Agent{Roles: map[string]spec.Override{spec.RolePlanner: {Env: map[string]string{"PLANS": "$PLANS", "BASE": "http://x"}}}},
	}
	text := style.Charter(render.Charter{Charter: c, Environment: []string{"of the worker's what builds need"}})
	for _, want := range []string{"of the worker's what builds need", "may write /var/cache/x", "BASE=http://x", "planner: PLANS=$PLANS"} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "planner: BASE")

	brief := render.Charter{Charter: c, Environment: []string{"of the worker's what builds need"}, Protections: []string{"a long sentence"}, Claims: 7}
	text = style.CharterSummary(brief, "--full: all of it")
	for _, want := range []string{"(--full: all of it)", "may write /var/cache/x", "BASE=http://x", "planner: PLANS=$PLANS", "full (7 of 7 claims hold"} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "a long sentence")
	require.NotContains(t, text, "what builds need")
	brief.Lacks = []string{"MEMORY IS NOT BOUNDED"}
	require.Contains(t, style.CharterSummary(brief, ""), "sandbox     MEMORY IS NOT BOUNDED", "what it lacks is never cut")
}

func TestA1_TheContractShowsWhatItGrants(t *testing.T) {
	sp := spec.Spec{
		Sandbox: spec.Sandbox{Use: spec.Required, Hosts: []string{"registry.npmjs.org", "*.example.org:443"}},
		Judge:   spec.Judge{Keep: []string{"target/**", "node_modules"}},
		Verify:  spec.Verify{Command: "make bench", Pattern: "^rate: (\\d+)\u200b$"},
		Agent:   spec.Agent{Env: map[string]string{"API_KEY": "$API_KEY", "BASE": "http://x"}, Roles: map[string]spec.Override{"reviewer": {Env: map[string]string{"ONLY": "$ONLY"}}}},
	}
	text := style.Contract(render.Contract{Spec: sp, Environment: []string{"verify.command mentions DATABASE_URL, which stays out"}})
	for _, want := range []string{
		"may connect to registry.npmjs.org  *.example.org:443\n", "leaves in target/** stay", "leaves in node_modules stay",
		`^rate: (\d+)\u{200b}$ finds last`, "API_KEY=$API_KEY\n", "BASE=http://x\n", "reviewer: ONLY=$ONLY\n", "mentions DATABASE_URL, which stays out\n",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "reviewer: BASE")
	require.NotContains(t, style.Contract(render.Contract{}), "granted")
	sp.Sandbox = spec.Sandbox{Use: spec.Off, Allow: []string{"/x"}, Hosts: []string{"a.org"}, Network: spec.None}
	text = style.Contract(render.Contract{Spec: sp})
	require.Contains(t, text, "sandbox.allow, sandbox.hosts, sandbox.network: no effect, since sandbox.use is off")
	require.NotContains(t, text, "may connect to")
}

func TestAContractNamesEveryAgentAndItsPermissions(t *testing.T) {
	text := style.Contract(render.Contract{Spec: spec.Spec{
		Agent: spec.Agent{Use: "claude", Model: "big", Roles: map[string]spec.Override{
			"ideator": {Use: "command", Command: spec.Argv{Shell: "./ideas"}, Args: []string{"--far"}},
			"writer":  {Command: spec.Argv{List: []string{"/opt/claude"}}, Args: []string{"--effort", "low"}},
		}},
		Permissions: map[string][]string{"reviewer": {}, "writer": {"canExecuteTasks", "canEditSource"}},
	}})
	for _, want := range []string{
		"claude with the model big", "ideator: ./ideas", "with --far", "writer: claude with the model big:", "/opt/claude --effort low",
		"reviewer: nothing", "writer: canExecuteTasks, canEditSource",
	} {
		require.Contains(t, text, want)
	}
}

// The session's claims about a steward are shown as mere claims, because anybody can write a session.
func TestAContractSaysWhatItHasFromTheSessionOfASteward(t *testing.T) {
	said := map[string]string{"steward": "crew", "task": "t1", "plan": hash, "approvedBy": "ann", "base": strings.Repeat("a", 40), "onto": "main"}
	text := style.Contract(render.Contract{Spec: spec.Spec{Session: said}})
	for _, want := range []string{"steward crew, plan " + hash + ", approved by ann", "begins at aaaaaaa", "applied to main", "as its session says; nobody has checked it"} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, style.Contract(render.Contract{Spec: spec.Spec{Session: map[string]string{"user": "ann"}}}), "session")

	approved := now
	s := loop.State{Kind: "improve", Steward: "crew", Contract: &loop.Contract{Hash: hash, ApprovedBy: rules.Approver(spec.Spec{Session: said}), ApprovedAt: &approved}}
	require.Contains(t, style.State(kind.Improve, s, now), "as the loop's session says")
	s.Contract.ApprovedBy = "ann"
	require.NotContains(t, style.State(kind.Improve, s, now), "session")
}

func TestA1_AContractSaysWhatItsToolsDoNotHold(t *testing.T) {
	text := style.Contract(render.Contract{
		Spec:     spec.Spec{Agent: spec.Agent{Use: "pi", Roles: map[string]spec.Override{"writer": {Use: "command", Command: spec.Argv{Shell: "./a.sh"}}}}},
		Contract: loop.Contract{Tools: []string{"read", "shell"}},
	})
	require.Contains(t, text, "tools: read shell")
	require.Equal(t, 1, strings.Count(text, "the shell of pi does what the sandbox lets it, whatever the other tools"))
	require.Contains(t, text, "nothing holds the command to these tools but the sandbox")
}

func TestNothingHidesInAContract(t *testing.T) {
	c := render.Contract{Spec: spec.Spec{
		Verify: spec.Verify{Command: "echo 1 \x1b[2K\r# rm -rf ~\u202e"},
		Agent:  spec.Agent{Command: spec.Argv{List: []string{"sh", "a\nb\x07"}}},
	}}
	text := style.Contract(c)
	require.NotContains(t, text, "\x1b")
	require.NotContains(t, text, "\r")
	require.NotContains(t, text, "\u202e")
	require.Contains(t, text, `echo 1 \u{1b}[2K\r# rm -rf ~\u{202e}`)
	require.Contains(t, text, `b\u{7}`)
}

// A person approves where the loop stops and what it asks, so the contract shows that.
func TestTheContractSaysWhenTheLoopAsks(t *testing.T) {
	s := spec.Defaults()
	require.NotContains(t, style.Contract(render.Contract{Kind: kind.Improve, Spec: s}), "asks")
	s.Breakpoints, s.Limits.OnExhausted, s.Approvals.OnDenied = []string{"verify", "log"}, spec.Ask, new(spec.Ask)
	require.Contains(t, style.Contract(render.Contract{Kind: kind.Improve, Spec: s}),
		"asks        at each verify, log, before it begins\n              for a higher limit when a budget is used up\n              when an agent was denied a tool\n")
}
