package spec_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"pawl/internal/metric"
	"pawl/internal/spec"
)

var update = flag.Bool("update", false, "write the golden files")

// minimal has only the required keys.
const minimal = `{"goal":"faster","scope":["src/**"],"verify":{"command":"./bench"},"agent":{"command":["./agent"]},"approvals":{"tools":["*"]}}`

// full has every key, each with its own value.
const full = `{
	"name": "loop 1", "kind": "improve", "goal": "raise the coverage",
	"repo": {"path": "/src/x", "base": "main", "host": "h1"},
	"setup": {"command": "npm ci"},
	"scope": ["src/**", "*.go"], "protect": ["tests/"], "judge": {"keep": ["node_modules/**"]}, "newFiles": "allow",
	"verify": {"command": "npm run -s cov", "timeout": "90s", "pattern": "(\\d+)%", "direction": "lower", "minDelta": 0.10, "target": 12.50,
		"evidence": "sequential", "calibration": 20, "maxSamples": 50, "parallelSafe": true, "holdout": {"command": "npm run -s other"}},
	"metrics": [{"name": "size", "direction": "lower", "atWorst": "1%"}, {"name": "p99", "atWorst": 120}, {"name": "seen"}],
	"guard": {"command": "npm test", "timeout": "1h30m", "policy": "strict"},
	"policies": {"strict": {"maxFiles": 5, "maxLines": 200, "maxTotalFiles": 20, "maxTotalLines": 1000, "maxFileBytes": 65536, "secrets": "allow", "binary": "deny"}, "default": {}},
	"check": {"command": "tsc --noEmit"},
	"agent": {"use": "command", "command": "./agent --fast", "env": {"A": "b", "lower": "C"}, "ideas": true},
	"sandbox": {"use": "required", "allow": ["~/.cache/x"], "network": "filtered", "hosts": ["*.npmjs.org", "10.0.0.0/8", "[2001:db8::1]:443"]},
	"limits": {"iterations": 100, "activeTime": "2h", "toolCalls": 500, "costUSD": 1.5, "tokens": 9007199254740993, "wallClock": "24h",
		"reworks": 0, "discards": 7, "shiftAfter": 4, "steps": 3, "phaseTimeout": "500ms", "silence": "5s", "onExhausted": "halt", "parallel": 4, "memory": "2GiB", "processes": 500, "deskBytes": "4GiB"},
	"approvals": {"plan": "auto", "diff": "required", "tools": ["edit", "bash"], "escalateAfter": "1h", "onDenied": "deny"},
	"breakpoints": ["commit", "decide"], "mode": "mission", "session": {"user": "me"}
}`

func TestP0_DefaultsAreThoseOfTheContract(t *testing.T) {
	s, err := spec.Parse([]byte(minimal))
	require.NoError(t, err)
	assert.Equal(t, "improve", s.Kind)
	assert.Equal(t, ".", s.Repo.Path)
	assert.Equal(t, "deny", s.NewFiles)
	assert.Equal(t, 30*time.Second, s.Verify.Timeout.D())
	assert.Equal(t, "higher", s.Verify.Direction)
	assert.True(t, s.Verify.MinDelta.IsZero())
	assert.Nil(t, s.Verify.Target)
	assert.Equal(t, 5*time.Minute, s.Guard.Timeout.D())
	assert.Equal(t, "default", s.Guard.Policy)
	assert.Equal(t, 5*time.Minute, s.Test.Timeout.D())
	assert.True(t, s.TestRequired())
	assert.Equal(t, "command", s.Agent.Use)
	assert.False(t, s.Agent.OffersIdeas())
	assert.Equal(t, spec.Limits{
		Iterations: 3, ActiveTime: spec.Duration(10 * time.Minute), ToolCalls: 10, FixAttempts: 3, Reworks: 2, Discards: 10, ShiftAfter: 5, Steps: 10,
		PhaseTimeout: spec.Duration(10 * time.Minute), OnExhausted: "halt",
	}, s.Limits)
	assert.Equal(t, spec.Approvals{Plan: "required", Diff: "required", Tools: []string{"*"}, EscalateAfter: spec.Duration(24 * time.Hour)}, s.Approvals)
	assert.Equal(t, "mission", s.Mode)
	assert.Equal(t, 5*time.Minute, s.Silence("claude"))
	assert.Zero(t, s.Silence("command"), "it may work in silence")
}

// TestPoliciesLeaveToTheDefaultWhatTheyDoNotSay checks the documented policy `default`.
func TestPoliciesLeaveToTheDefaultWhatTheyDoNotSay(t *testing.T) {
	size := 10 << 20
	none := spec.Policy{Secrets: "deny", Binary: "allow", MaxFileBytes: &size}
	s, err := spec.Parse([]byte(minimal))
	require.NoError(t, err)
	require.Equal(t, none, s.Rules())
	s, err = spec.Parse([]byte(full))
	require.NoError(t, err)
	p := s.Rules()
	require.Equal(t, []any{5, 200, 20, 1000, 65536, "allow", "deny"},
		[]any{*p.MaxFiles, *p.MaxLines, *p.MaxTotalFiles, *p.MaxTotalLines, *p.MaxFileBytes, p.Secrets, p.Binary})
	s.Guard.Policy = "default"
	require.Equal(t, none, s.Rules())
}

func TestP0_WhatIsGivenReplacesTheDefaultAlsoWithZero(t *testing.T) {
	s, err := spec.Parse([]byte(full))
	require.NoError(t, err)
	assert.Equal(t, 0, s.Limits.Reworks)
	assert.Equal(t, 100, s.Limits.Iterations)
	assert.Equal(t, int64(9007199254740993), *s.Limits.Tokens, "beyond what a float64 can hold")
	assert.Equal(t, 90*time.Second, s.Verify.Timeout.D())
	assert.Equal(t, "0.10", s.Verify.MinDelta.String(), "decimals are kept")
	assert.Equal(t, "12.50", s.Verify.Target.String())
	assert.Equal(t, []string{"sh", "-c", "./agent --fast"}, s.Agent.Command.Args())
	assert.True(t, s.Agent.OffersIdeas())
	assert.Equal(t, map[string]string{"A": "b", "lower": "C"}, s.Agent.Env)
	assert.Equal(t, "auto", s.Approvals.Plan)
	assert.Equal(t, 5*time.Second, s.Silence("command"))

	s, err = spec.Parse([]byte(strings.Replace(minimal, `"goal"`, `"limits":null,"name":null,"guard":{"command":null},"goal"`, 1)))
	require.NoError(t, err, "null is not given")
	assert.Equal(t, 3, s.Limits.Iterations)
}

func TestP0_ANormalisedSpecReadsBackAsItself(t *testing.T) {
	for _, doc := range []string{minimal, full} {
		s, err := spec.Parse([]byte(doc))
		require.NoError(t, err)
		data, err := json.Marshal(s)
		require.NoError(t, err)
		back, err := spec.Parse(data)
		require.NoError(t, err)
		assert.Equal(t, s, back)
		var plain spec.Spec
		require.NoError(t, json.Unmarshal(data, &plain), "and so it does without Parse, from state")
		assert.Equal(t, s, plain)
	}
	data, err := json.Marshal(must(t, minimal))
	require.NoError(t, err)
	golden(t, "minimal.json", string(data)+"\n")
}

func TestP0_YAMLGivesTheSameSpecAsJSON(t *testing.T) {
	var doc map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(full), &doc)) // JSON is YAML
	s, err := spec.FromMap(doc)
	require.NoError(t, err)
	want := must(t, full)
	assert.Equal(t, "0.1", s.Verify.MinDelta.String(), "YAML has no decimals")
	s.Verify.MinDelta, s.Verify.Target = want.Verify.MinDelta, want.Verify.Target
	*s.Limits.Tokens = *want.Limits.Tokens
	assert.Equal(t, want, s)

	s, err = spec.FromMap(map[string]any{
		"goal": "g", "scope": []any{"**"}, "verify": map[string]any{"command": "x", "minDelta": 2, "target": "1.50"}, "agent": map[string]any{"command": []any{"a"}, "env": map[string]any{"A": "b"}},
		"approvals": map[string]any{"tools": []any{"*"}}, "limits": map[string]any{"iterations": 5.0, "toolCalls": 7, "discards": int64(8), "costUSD": 0.1},
	})
	require.NoError(t, err)
	assert.Equal(t, "2", s.Verify.MinDelta.String())
	assert.Equal(t, metric.MustDecimal("1.50"), *s.Verify.Target)
	assert.Equal(t, []int{5, 7, 8}, []int{s.Limits.Iterations, s.Limits.ToolCalls, s.Limits.Discards})
	assert.Equal(t, "0.1", s.Limits.CostUSD.String())
}

func TestP0_EverythingWrongIsReportedAtOnce(t *testing.T) {
	for _, name := range []string{"types", "values", "missing", "unknown", "deliver", "agents", "together"} {
		t.Run(name, func(t *testing.T) {
			doc, err := os.ReadFile(filepath.Join("testdata", name+".json"))
			require.NoError(t, err)
			_, err = spec.Parse(doc)
			var problems spec.Problems
			require.ErrorAs(t, err, &problems)
			golden(t, name+".txt", err.Error()+"\n")
			seen := map[string]bool{}
			for _, p := range problems {
				assert.NotEmpty(t, p.What)
				assert.False(t, seen[p.Key], "%s is reported twice", p.Key)
				seen[p.Key] = true
			}
		})
	}
}

func TestP0_WhatIsNotAnObjectIsRefused(t *testing.T) {
	for doc, want := range map[string]string{
		"":                           "line 1: not valid JSON: the document ends too early; want: one JSON object with the keys of a spec",
		"{\n\"goal\": \n}":           "line 3: not valid JSON: ",
		"[]":                         "the document is a list; want: one JSON object",
		"null":                       "the document is nothing",
		minimal + "x":                "not valid JSON: more follows after the object",
		minimal + minimal:            "more follows",
		`{"goal":"a","goal":"b"}`:    "goal: is given twice",
		strings.Repeat(`{"a":`, 100): "nested more than 32 deep",
	} {
		_, err := spec.Parse([]byte(doc))
		assert.ErrorContains(t, err, want, "%.40q", doc)
	}
}

func TestP6_AThresholdIsANumberOrAShare(t *testing.T) {
	for text, want := range map[string]string{`2`: "2", `"0.50"`: "0.50", `"2%"`: "2%", `"2 %"`: "2%", `"0.5%"`: "0.5%"} {
		s := must(t, strings.Replace(minimal, `"./bench"`, `"./bench","minDelta":`+text, 1))
		assert.Equal(t, want, s.Verify.MinDelta.String(), text)
	}
	for _, text := range []string{`"%"`, `"two"`, `[]`, `"-1%"`, `-1`} {
		_, err := spec.Parse([]byte(strings.Replace(minimal, `"./bench"`, `"./bench","minDelta":`+text, 1)))
		assert.ErrorContains(t, err, "verify.minDelta: is ", text)
	}
}

func TestHowChangesAreJudgedUnlessTheSpecSays(t *testing.T) {
	v := must(t, minimal).Verify
	assert.Equal(t, []any{"auto", 12, 32, false}, []any{v.Judging(), v.Calibrations(), v.MostSamples(), v.Shares()})
	v = must(t, full).Verify
	assert.Equal(t, []any{"sequential", 20, 50, true}, []any{v.Judging(), v.Calibrations(), v.MostSamples(), v.Shares()})
}

func TestE4_OneCallAnIterationLeavesNoneForAnIdea(t *testing.T) {
	s, yes := must(t, minimal), true
	s.Limits.Steps, s.Repo.Path = 1, "/src/x"
	assert.NoError(t, s.ValidateInput(), "nobody is asked for an idea")
	s.Agent.Ideas = &yes
	assert.ErrorContains(t, s.ValidateInput(), "limits.steps: is 1, but the ideator's call would leave none for the writer; want: 2 or more, or agent.ideas: false")
}

func TestP0_InputNeedsAnAbsolutePath(t *testing.T) {
	s := must(t, minimal)
	assert.EqualError(t, s.ValidateInput(), `repo.path: is "."; want: an absolute path, since a worker may run anywhere`)
	s.Repo.Path = "/src/x"
	assert.NoError(t, s.ValidateInput())
	s.Goal = ""
	assert.ErrorContains(t, s.ValidateInput(), "goal: is missing")
}

// A workflow has one second to read its input, and the size of its history is limited.
func TestP0_InputThatIsNoSpecIsRefusedInFewWords(t *testing.T) {
	list := func(n int) string { return strings.TrimSuffix(strings.Repeat(`"x",`, n), ",") }
	var keys strings.Builder
	for i := range 15_000 {
		fmt.Fprintf(&keys, `,"k%d":1`, i)
	}
	for name, c := range map[string]struct{ doc, want string }{
		"keys":   {strings.TrimSuffix(minimal, "}") + keys.String() + "}", "there are more problems than these"},
		"values": {strings.TrimSuffix(minimal, "}") + `,"protect":[` + list(400_000) + `]}`, "it holds more than 20000 values"},
		"globs":  {strings.TrimSuffix(minimal, "}") + `,"breakpoints":[` + list(15_000) + `]}`, "there are more problems than these"},
	} {
		_, err := spec.Parse([]byte(c.doc))
		require.ErrorContains(t, err, c.want, name)
		require.Less(t, len(err.Error()), 64<<10, name)
	}
	_, err := must(t, minimal).Amend([]byte(`{"test":{`+strings.TrimPrefix(keys.String(), ",")+`}}`), spec.Amendable)
	require.ErrorContains(t, err, "there are more problems than these")
}

func TestProblemNamesFileAndLine(t *testing.T) {
	p := spec.Problem{Key: "verify.timeout", What: "is 30", Want: `"30s"`}
	assert.Equal(t, `verify.timeout: is 30; want: "30s"`, p.String())
	p.Line = 7
	assert.Equal(t, `line 7: verify.timeout: is 30; want: "30s"`, p.String())
	p.File = "pawl.yaml"
	assert.Equal(t, `pawl.yaml:7: verify.timeout: is 30; want: "30s"`, p.String())
	p.Line = 0
	assert.Equal(t, `pawl.yaml: verify.timeout: is 30; want: "30s"`, p.String())
}

func TestLoopIDs(t *testing.T) {
	for _, id := range []string{"a", "my-loop", "my loop", "nightly-2026-03-27T02:00:00Z", "a/b", strings.Repeat("x", 200)} {
		assert.NoError(t, spec.ValidID(id), id)
	}
	for _, id := range []string{"", " ", "-x", " x", "x ", "a\nb", "a\x00b", "a\u202eb", "größe", "\xff", strings.Repeat("x", 201)} {
		assert.Error(t, spec.ValidID(id), "%q", id)
	}
}

func TestDurationsAreGoDurationStrings(t *testing.T) {
	for in, want := range map[string]string{"30s": "30s", "10m": "10m", "600s": "10m", "24h": "24h", "90m": "1h30m", "1h0m30s": "1h0m30s", "1.5s": "1.5s", "0": "0s", "20ms": "20ms", "10m0s": "10m", "-1h": "-1h"} {
		var d spec.Duration
		require.NoError(t, json.Unmarshal([]byte(`"`+in+`"`), &d), in)
		assert.Equal(t, want, d.String())
		data, err := json.Marshal(d)
		require.NoError(t, err)
		var back spec.Duration
		require.NoError(t, json.Unmarshal(data, &back))
		assert.Equal(t, d, back)
	}
	for _, in := range []string{`30`, `"30"`, `"soon"`, `""`, `null `, `[]`, `"1d"`} {
		var d spec.Duration
		assert.Error(t, json.Unmarshal([]byte(in), &d), in)
	}
}

func TestKeysAreThoseOfTheContract(t *testing.T) {
	golden(t, "keys.txt", strings.Join(spec.Keys(), "\n")+"\n")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(full))
	for _, name := range []string{"types", "values", "missing", "unknown", "deliver", "agents"} {
		doc, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(doc)
	}
	f.Add([]byte(`{"a":{"b":[{}]}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		s, err := spec.Parse(doc)
		if err != nil {
			if _, ok := err.(spec.Problems); !ok {
				t.Fatalf("%T", err)
			}
			return
		}
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := spec.Parse(data)
		if err != nil {
			t.Fatalf("%s\n%v", data, err)
		}
		assert.Equal(t, s, back)
		s.Match("b/c")
	})
}

func must(t *testing.T, doc string) spec.Spec {
	t.Helper()
	s, err := spec.Parse([]byte(doc))
	require.NoError(t, err)
	return s
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func TestARoleHasItsOwnAgent(t *testing.T) {
	yes := true
	a := spec.Agent{
		Use: "claude", Model: "big", Args: []string{"--effort", "high"}, Env: map[string]string{"A": "1", "B": "1"},
		Roles: map[string]spec.Override{
			"writer":   {Model: "small", Env: map[string]string{"B": "2"}},
			"ideator":  {Use: "command", Command: spec.Argv{List: []string{"./ideas"}}},
			"reviewer": {Use: "claude", Args: []string{}},
		},
	}
	own := func(use string, command spec.Argv, model string, args []string, env map[string]string) spec.Agent {
		return spec.Agent{Use: use, Command: command, Model: model, Args: args, Env: env}
	}
	env := map[string]string{"A": "1", "B": "1"}
	assert.Equal(t, own("claude", spec.Argv{}, "big", []string{"--effort", "high"}, env), a.For("fixer"))
	assert.Equal(t, own("claude", spec.Argv{}, "small", []string{"--effort", "high"}, map[string]string{"A": "1", "B": "2"}), a.For("writer"))
	assert.Equal(t, own("command", spec.Argv{List: []string{"./ideas"}}, "", nil, env), a.For("ideator"), "model and arguments mean another program's")
	assert.Equal(t, own("claude", spec.Argv{}, "big", []string{}, env), a.For("reviewer"), "an empty list is one")
	assert.False(t, a.OffersIdeas(), "the ideator is a command")
	o := a.Roles["ideator"]
	o.Ideas = &yes
	a.Roles["ideator"] = o
	assert.True(t, a.OffersIdeas())
	assert.True(t, spec.Agent{Use: "claude"}.OffersIdeas())
}

func TestE1_PermissionsAreByRoleUnlessGiven(t *testing.T) {
	s := must(t, minimal)
	assert.Equal(t, []string{"canExecuteTasks", "canEditSource"}, s.Permitted("writer"))
	assert.Equal(t, []string{"canExecuteTasks"}, s.Permitted("reviewer"))
	assert.Empty(t, s.Permitted("nobody"), "no role, no permission")
	s, err := spec.FromMap(map[string]any{
		"goal": "g", "scope": []any{"**"}, "verify": map[string]any{"command": "x"}, "agent": map[string]any{"command": "a"},
		"approvals": map[string]any{"tools": []any{"*"}}, "permissions": map[string]any{"writer": []any{}, "ideator": []any{"canExecuteTasks", "canEditSource"}},
	})
	require.NoError(t, err)
	data, err := json.Marshal(s)
	require.NoError(t, err)
	s, err = spec.Parse(data)
	require.NoError(t, err)
	assert.Empty(t, s.Permitted("writer"), "an empty list takes everything away, also after a journey as workflow input")
	assert.Len(t, s.Permitted("ideator"), 2)
}

func TestL2_TheReportsOfMavenAndGradleAreKnown(t *testing.T) {
	named := []string{"out/*.xml"}
	for command, known := range map[string]bool{
		"mvn -q test": true, "./mvnw -B verify": true, "cd app && ./gradlew test": true, "gradle": true,
		"make test": false, "cat gradle.properties": false, "echo mvnd": false,
	} {
		tested := spec.Spec{Test: spec.Test{Command: command}}
		guarded := spec.Spec{Guard: spec.Guard{Command: command}}
		require.Equal(t, known, len(tested.TestReports()) > 0, command)
		require.Equal(t, known, len(guarded.GuardReports()) > 0, command)

		tested.Test.Report, guarded.Test.Report = named, named
		require.Equal(t, named, tested.TestReports())
		require.Equal(t, named, guarded.GuardReports(), "the guard writes what the tests write")

		guarded.Guard.Report = []string{"guard.json"}
		require.Equal(t, []string{"guard.json"}, guarded.GuardReports())
		require.Equal(t, named, guarded.TestReports())
	}
}

func TestAReportIsNamedByAGlob(t *testing.T) {
	for key, s := range map[string]spec.Spec{
		"guard.report[0]": {Guard: spec.Guard{Report: []string{"/tmp/x.xml"}}},
		"test.report[0]":  {Test: spec.Test{Report: []string{"[x"}}},
	} {
		require.ErrorContains(t, s.ValidateInput(), key)
	}
}

func TestAToolIsAskedForOnlyWhereThatCanBeKept(t *testing.T) {
	for more, want := range map[string]string{
		`"agent":{"use":"claude"}`:                                                                "",
		`"agent":{"use":"acp","command":["codex-acp"]}`:                                           "",
		`"agent":{"use":"codex"}`:                                                                 "is ask, but the agent of the writer does not report which tools it was not allowed to use (agent.use: codex)",
		`"agent":{"use":"claude","fallback":[{"use":"gemini"}]}`:                                  "does not report which tools it was not allowed to use (agent.use: gemini)",
		`"agent":{"use":"claude"},"limits":{"parallel":2}`:                                        "is ask, but 2 candidates are made at the same time",
		`"agent":{"use":"claude","roles":{"reviewer":{"use":"codex"}}},"limits":{"iterations":3}`: "",
	} {
		doc := `{"goal":"faster","scope":["src/**"],"verify":{"command":"./bench"},"approvals":{"tools":["*"],"onDenied":"ask"},` + more + `}`
		_, err := spec.Parse([]byte(doc))
		if want == "" {
			assert.NoError(t, err, more)
		} else {
			assert.ErrorContains(t, err, want, more)
		}
	}
}
