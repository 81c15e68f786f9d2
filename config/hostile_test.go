package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/config"
	"pawl/internal/spec"
)

// enough is a complete spec in each format, so only what a case adds is wrong.
const (
	enough     = "goal: g\nscope: [a]\nverify: {command: x}\nagent: {command: y}\napprovals: {tools: ['*']}\n"
	enoughTOML = "goal = 'g'\nscope = ['a']\nverify.command = 'x'\nagent.command = 'y'\napprovals.tools = ['*']\n"
	enoughJSON = `"goal": "g", "scope": ["a"], "verify": {"command": "x"}, "agent": {"command": "y"}, "approvals": {"tools": ["*"]}`
)

// The test has the mistakes that people and their editors make in spec files. No other problems are reported: for a
// file that can't be read, pawl does not also list missing keys.
func TestSpecsOfEveryWrongKind(t *testing.T) {
	const text, limits = "; want: a text file in UTF-8", "; want: one of iterations, activeTime, toolCalls, costUSD, tokens, wallClock, fixAttempts, reworks, discards, shiftAfter, steps, phaseTimeout, silence, onExhausted, parallel, backtrack, atomic, onSealed, memory, processes, deskBytes"
	for _, c := range []struct {
		name, file, text string
		want             []string
	}{
		{"binary", "a.yaml", "\x7fELF\x00\x01", []string{"a.yaml: is not a text file" + text}},
		{"UTF-16", "a.yaml", "\xff\xfeg\x00o\x00", []string{"a.yaml: is in UTF-16" + text}},
		{"Latin-1", "a.json", "{\n\"goal\": \"f\xfcr\"}", []string{"a.json:2: is not valid UTF-8" + text}},
		{"an escape sequence", "a.toml", "goal = 'g'\nname = '\x1b[31m'", []string{"a.toml:2: contains the control character U+001B" + text}},
		{"a list", "a.yaml", "- a\n", []string{"a.yaml:1: is not an object; want: keys with values, such as goal: …"}},
		{"a scalar", "a.yaml", "make it faster", []string{"a.yaml:1: is not an object; want: keys with values, such as goal: …"}},
		{"null", "a.json", "null", []string{"a.json:1: is not an object; want: the keys of a spec in { }"}},
		{"an empty JSON file", "a.json", "\n", []string{"a.json:1: not valid JSON: it is empty; want: valid JSON"}},
		{"two objects", "a.json", "{}{}", []string{"a.json:1: not valid JSON: more follows after the object; want: valid JSON"}},
		{"two documents", "a.yaml", enough + "---\n" + enough, []string{"a.yaml: holds more than one document; want: one"}},
		{"another format", "a.ini", "[a]\nb=c\n", []string{"a.ini:1: not valid YAML: did not find expected <document start>; want: valid YAML"}},
		{"a key twice in YAML", "a.yaml", enough + "goal: h\n", []string{"a.yaml:6: goal: is given twice; want: one of the two"}},
		{"a key twice in TOML", "a.toml", enoughTOML + "goal = 'h'\n", []string{"a.toml:6: goal: is given twice; want: one of the two"}},
		{"a table twice in TOML", "a.toml", enoughTOML + "[limits]\nsteps = 1\n[limits]\n", []string{"a.toml:8: limits: is given twice; want: one of the two"}},
		{"a key twice in JSON", "a.json", "{" + enoughJSON + ",\n\"goal\": \"h\"}", []string{"a.json:2: goal: is given twice; want: one of the two"}},
		{"tabs", "a.yaml", enough + "limits:\n\tsteps: 5\n", []string{"a.yaml:7: not valid YAML: the line is indented with a tab; want: spaces"}},
		{"a trailing comma in an object", "a.json", "{\n\"goal\": \"g\",\n}", []string{"a.json:3: not valid JSON: a comma stands before the closing bracket; want: no comma after the last one"}},
		{"a trailing comma in a list", "a.json", "{\"scope\": [\"a\",\n]}", []string{"a.json:2: not valid JSON: a comma stands before the closing bracket; want: no comma after the last one"}},
		{"comments in JSON", "a.json", "{\n// faster\n\"goal\": \"g\"}", []string{"a.json:2: not valid JSON: it has comments; want: no comments, which YAML and TOML have"}},
		{"keys that are no names", "a.yaml", enough + "limits: {1: 2, true: 3}\n? [a]\n: b\n", []string{
			"a.yaml:6: limits.1: is not a key of a spec" + limits, "a.yaml:6: limits.true: is not a key of a spec" + limits, "a.yaml:7: has a key that is not a name; want: keys such as verify"}},
		{"dates and times in TOML", "a.toml", enoughTOML + "name = 2026-01-02\n[limits]\nactiveTime = 07:32:00\n", []string{
			"a.toml:6: name: is 2026-01-02; want: a string", "a.toml:8: limits.activeTime: is 07:32:00; want: a duration such as \"30s\", \"10m\" or \"1h30m\""}},
		{"wrong types deep in TOML", "a.toml", enoughTOML + "protect = [\n 'b',\n 5]\ncheck = {command = 1}\n", []string{"a.toml:8: protect[1]: is 5; want: a string", "a.toml:9: check.command: is 1; want: a string"}},
		{"a number that TOML can't hold", "a.toml", enoughTOML + "limits.tokens = 99999999999999999999\n", []string{`a.toml:6: not valid TOML: couldn't parse decimal number: "99999999999999999999": value out of range; want: valid TOML`}},
		{"infinity and NaN", "a.toml", enoughTOML + "limits.costUSD = inf\nverify.target = nan\n", []string{"a.toml:6: limits.costUSD: is +Inf; want: a number", "a.toml:7: verify.target: is NaN; want: a number"}},
		{"huge numbers", "a.yaml", enough + "limits:\n  iterations: 99999999999999999999\n  toolCalls: 1e400\n  costUSD: 1e999999\n", []string{
			"a.yaml:7: limits.iterations: is 99999999999999999999; want: a number that is not so large", `a.yaml:8: limits.toolCalls: is "1e400"; want: a whole number`, `a.yaml:9: limits.costUSD: is "1e999999"; want: a number`}},
		{"durations without a unit", "a.yaml", enough + "limits:\n  activeTime: 600\n  wallClock: 1d\n  phaseTimeout: '10'\n", []string{
			`a.yaml:7: limits.activeTime: is 600; want: a duration such as "30s", "10m" or "1h30m"`, `a.yaml:8: limits.wallClock: is "1d"; want: a duration such as "30s", "10m" or "1h30m"`, `a.yaml:9: limits.phaseTimeout: is "10"; want: a duration such as "30s", "10m" or "1h30m"`}},
		{"CRLF", "a.yaml", strings.ReplaceAll(enough+"mode: on\n", "\n", "\r\n"), []string{`a.yaml:6: mode: is "on"; want: answer, plan or mission`}},
		{"a number for a branch", "a.yaml", enough + "repo: {base: 1.10}\n", []string{"a.yaml:6: repo.base: is 1.10; want: a string in quotes, such as \"1.10\""}},
		{"an alias of itself", "a.yaml", enough + "check: &c {command: *c}\n", []string{"a.yaml:6: check.command: is an alias of the value that contains it; want: an alias of something else"}},
		{"an alias of nothing", "a.yaml", enough + "check: *c\n", []string{"a.yaml: not valid YAML: unknown anchor 'c' referenced; want: valid YAML"}},
		{"a merge of a number", "a.yaml", enough + "check: {<<: 5}\n", []string{"a.yaml:6: check: merges something that is not an object; want: an alias of an object"}},
		{"tags", "a.yaml", enough + "name: !!binary aGVsbG8=\nsetup: {command: !secret x}\nprotect: !reference [a, b]\ncheck: !include {a: b}\n", []string{"a.yaml:6: name: has the tag !!binary; want: a plain value", "a.yaml:7: setup.command: has the tag !secret; want: a plain value", "a.yaml:8: protect: has the tag !reference; want: a plain value", "a.yaml:9: check: has the tag !include; want: a plain value"}},
		{"too deep in YAML", "a.yaml", strings.Repeat("[", 200) + strings.Repeat("]", 200), []string{
			"a.yaml:1: [0][0][0][0][0][0][0][0][0][0][0][0][0]…: is nested more than 32 deep; want: a spec that a person can read", "a.yaml:1: is not an object; want: keys with values, such as goal: …"}},
		{"too deep in JSON", "a.json", strings.Repeat("[", 200) + strings.Repeat("]", 200), []string{"a.json:1: not valid JSON: it is nested more than 32 deep; want: valid JSON"}},
		{"too deep in TOML", "a.toml", enoughTOML + "name = " + strings.Repeat("[", 500_000), []string{"a.toml: holds more than 20000 values; want: a spec that a person can read"}},
		{"objects too deep in TOML", "a.toml", enoughTOML + "check = " + strings.Repeat("{a=", 200_000), []string{"a.toml: holds more than 20000 values; want: a spec that a person can read"}},
		{"a key too deep in TOML", "a.toml", enoughTOML + strings.Repeat("a.", 200_000) + "a = 1", []string{"a.toml: holds more than 20000 values; want: a spec that a person can read"}},
		{"too many values in YAML", "a.yaml", enough + "protect: [" + strings.Repeat("x,", 30_000) + "]\n", []string{"a.yaml: holds more than 20000 values; want: a spec that a person can read"}},
		{"too many values in TOML", "a.toml", enoughTOML + "protect = [" + strings.Repeat("'x',", 200_000) + "]\n", []string{"a.toml: holds more than 20000 values; want: a spec that a person can read"}},
		{"too many tables in TOML", "a.toml", enoughTOML + strings.Repeat("[[x]]\n", 150_000), []string{"a.toml: holds more than 20000 values; want: a spec that a person can read"}},
		{"too many values in JSON", "a.json", "{" + enoughJSON + `,"protect": [` + strings.Repeat(`"x",`, 200_000) + `"x"]}`, []string{"a.json: holds more than 20000 values; want: a spec that a person can read"}},
		{"a long key", "a.json", "{" + enoughJSON + ",\n" + `"` + strings.Repeat("k", 900_000) + `": 1}`, []string{"a.json:2: " + strings.Repeat("k", 59) + "…: is not a key of a spec; want: kind (did you mean it?)"}},
		{"hosts that are no list", "a.yaml", enough + "sandbox: {hosts: 80}\n", []string{`a.yaml:6: sandbox.hosts: is 80; want: a list of strings, such as ["one", "two"]`}},
		{"a URL for a host", "a.yaml", enough + "sandbox: {hosts: [a.example, 'https://b.example']}\n", []string{`a.yaml:6: sandbox.hosts[1]: is "https://b.example", which is a URL and not a host; want: a host such as "registry.npmjs.org", "*.example.org", "example.org:443" or "10.0.0.0/8"`}},
		{"many short keys in a TOML line are not deep", "a.toml", enoughTOML + "agent.env = {" + strings.Repeat("A.b = 1, ", 40) + "B = 1}\nmode = 'on'", slices.Repeat([]string{"a.toml:6: agent.env.A.b: is given twice; want: one of the two"}, 39)},
		{"brackets in TOML strings are not deep", "a.toml", enoughTOML + "name = '" + strings.Repeat("[", 100) + "'\nsetup.command = \"\"\"\n\\\"" + strings.Repeat("{.", 100) + "\"\"\" # " + strings.Repeat("[", 100) + "\nmode = 'on'", []string{`a.toml:9: mode: is "on"; want: answer, plan or mission`}},
		{"a dotted key in YAML", "a.yaml", enough + "limits.iterations: 5\n", []string{"a.yaml:6: limits.iterations: is not a key of a spec; want: limits: {iterations: …} (did you mean it?)"}},
		{"protected and in scope", "a.yaml", enough + "protect: [b, a]\n", []string{`a.yaml:2: scope[0]: is in protect too, and protect wins: no file that it matches may change; want: the glob in only one of the two`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, c.file, c.text)
			_, err := config.LoadSpec(path, nil)
			var problems spec.Problems
			require.ErrorAs(t, err, &problems)
			require.Equal(t, c.want, strings.Split(strings.ReplaceAll(err.Error(), filepath.Dir(path)+"/", ""), "\n"))
		})
	}
}

// A document with very many problems, by mistake or on purpose, is refused quickly and in a few lines.
func TestOfVeryManyProblemsTheFirstAreSaid(t *testing.T) {
	var yaml, toml, json strings.Builder
	yaml.WriteString(enough)
	toml.WriteString(enoughTOML)
	json.WriteString("{" + enoughJSON)
	fmt.Fprintf(&yaml, "%s:\n", strings.Repeat("k", 900))
	fmt.Fprintf(&toml, "[%s]\n", strings.Repeat("k", 500_000)) // a header that each key below would repeat
	for i := range 9_000 {
		fmt.Fprintf(&yaml, " k%d: 1\n", i)
		fmt.Fprintf(&toml, "k%d = 1\n", i)
		fmt.Fprintf(&json, ",\n\"k%d\": 1", i)
	}
	for i := range 9_000 {
		fmt.Fprintf(&yaml, "k%d: 1\n", i)
		fmt.Fprintf(&toml, "[k%d]\n", i)
		fmt.Fprintf(&json, ",\n\"k%d\": 1", i)
	}
	json.WriteString("}")
	for file, text := range map[string]string{"a.yaml": yaml.String(), "a.toml": toml.String(), "a.json": json.String()} {
		_, err := config.LoadSpec(write(t, file, text), nil)
		var problems spec.Problems
		require.ErrorAs(t, err, &problems, file)
		require.Len(t, problems, 101, file)
		require.Equal(t, "there are more problems than these; want: these fixed first", problems[100].String())
	}
}

func TestAPipeIsReadAsAFileIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.yaml")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	go func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for the reader
		if err == nil {
			f.WriteString(enough)
			f.Close()
		}
	}()
	s, err := config.LoadSpec(path, nil)
	require.NoError(t, err)
	require.Equal(t, "g", s.Goal)
}

func TestAnEmptyFileLacksWhatIsRequired(t *testing.T) {
	for _, file := range []string{"a.yaml", "a.toml", "a"} {
		_, err := config.LoadSpec(write(t, file, "\n# nothing yet\n"), nil)
		for _, key := range []string{"goal", "scope", "verify.command", "agent.command", "approvals.tools"} {
			require.ErrorContains(t, err, key+": is missing")
		}
	}
}

func TestWhatEditorsAddIsNoFault(t *testing.T) {
	for file, text := range map[string]string{
		"bom.yaml": "\xef\xbb\xbf" + enough, "bom.toml": "\xef\xbb\xbf" + enoughTOML, "bom.json": "\xef\xbb\xbf{" + enoughJSON + "}",
		"crlf.yaml": strings.ReplaceAll(enough, "\n", "\r\n"), "crlf.toml": strings.ReplaceAll(enoughTOML, "\n", "\r\n"),
		"upper.YAML": enough, "upper.TOML": enoughTOML, "none": enough,
	} {
		s, err := config.LoadSpec(write(t, file, text), nil)
		require.NoError(t, err, file)
		require.Equal(t, "g", s.Goal, file)
	}
}

// viper would change all of these to lower case, and split them at dots.
func TestNamesOfTheUsersOwnSurviveInEveryFormat(t *testing.T) {
	want := map[string]string{"FooBAR": "x", "lower": "y"}
	for file, text := range map[string]string{
		"a.yaml": strings.Replace(enough, "{command: y}", "{command: y, env: {FooBAR: x, lower: y}}", 1) + "session: {Foo.Bar: x, UPPER: y}\n",
		"a.toml": enoughTOML + "agent.env = {FooBAR = 'x', lower = 'y'}\n[session]\n'Foo.Bar' = 'x'\nUPPER = 'y'\n",
		"a.json": "{" + strings.Replace(enoughJSON, `"y"}`, `"y", "env": {"FooBAR": "x", "lower": "y"}}`, 1) + `, "session": {"Foo.Bar": "x", "UPPER": "y"}}`,
	} {
		s, err := config.LoadSpec(write(t, file, text), nil)
		require.NoError(t, err, file)
		require.Equal(t, want, s.Agent.Env, file)
		require.Subset(t, s.Session, map[string]string{"Foo.Bar": "x", "UPPER": "y"}, file)
	}
	t.Setenv("PAWL_SPEC_AGENT_ENV", `{FooBAR: z}`)
	s, err := config.LoadSpec(write(t, "a.yaml", enough), []string{`session."Foo.Bar=".x=1`})
	require.ErrorContains(t, err, "session.Foo.Bar=: is an object", "the part in quotes is one name")
	s, err = config.LoadSpec(write(t, "a.yaml", enough), []string{`session."Foo.Bar=" = "a=b"`, "session.UPPER=c"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"FooBAR": "z"}, s.Agent.Env)
	require.Subset(t, s.Session, map[string]string{"Foo.Bar=": "a=b", "UPPER": "c"})
}

func TestSetThatIsNoneIsRefused(t *testing.T) {
	path := write(t, "a.yaml", enough)
	for _, set := range []string{"", "=", "=x", "goal", ".goal=x", "goal.=x", "limits..steps=1", `"goal=x`, `""=x`, `"goal"x=y`} {
		_, err := config.LoadSpec(path, []string{set})
		require.ErrorContains(t, err, "is not of the form key=value", "%q", set)
	}
}

func TestListsOfMergesAreRead(t *testing.T) {
	s, err := config.LoadSpec(write(t, "a.yaml", enough+"guard: {<<: [{command: a, timeout: 1m}, {command: b, policy: default}]}\n"), nil)
	require.NoError(t, err)
	require.Equal(t, "a", s.Guard.Command, "the first one wins")
	require.Equal(t, "1m", s.Guard.Timeout.String())
}

func TestAFileThatCannotBeReadDoesNotHideWhatIsWrongElsewhere(t *testing.T) {
	t.Setenv("PAWL_SPEC_NONSENSE", "1")
	_, err := config.LoadSpec(write(t, "a.json", "{"), []string{"nonsense"})
	require.ErrorContains(t, err, "it ends too early")
	require.ErrorContains(t, err, "PAWL_SPEC_NONSENSE")
	require.ErrorContains(t, err, `"nonsense" is not of the form`)
}
