package docs_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/agent/prompt"
	"pawl/internal/fault"
	"pawl/internal/judge/evaluator"
	"pawl/internal/loop"
	"pawl/internal/metric/stats"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
	"pawl/internal/steward/charter"
	"pawl/test/harness/constants"
)

var update = flag.Bool("update", false, "write the generated pages anew")

const generated = "<!-- Generated from the code by `go test ./test/docs -update`; do not edit. -->\n\n"

func TestGeneratedPagesAreInStep(t *testing.T) {
	for name, text := range map[string]string{"reference/events.md": events(t), "reference/errors.md": errorsPage(), "reference/phases.md": phases(), "reference/sealed.md": sealedPage(t)} {
		path := filepath.Join("..", "..", "docs", name)
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		have, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(have), "docs/%s is out of step: go test ./test/docs -update", name)
	}
}

// TestSchemaIsInStep compares the JSON Schema with the reader's own tables and the words of docs/reference/spec.md.
func TestSchemaIsInStep(t *testing.T) {
	ofLoops, ofStewards, divided := strings.Cut(page(t, "reference/spec.md"), "\n## The spec of a steward\n")
	require.True(t, divided)
	loops, stewards := meanings(ofLoops), meanings(ofStewards)
	for _, key := range spec.Keys() {
		require.NotEmpty(t, loops[key], "docs/reference/spec.md does not say what %s means", key)
	}
	for _, key := range charterKeys() {
		require.NotEmpty(t, stewards[key], "docs/reference/spec.md does not say what %s means to a steward", key)
	}
	for key := range stewards {
		require.Contains(t, charterKeys(), key, "docs/reference/spec.md has a key that no steward knows")
	}
	text, err := json.MarshalIndent(schemaOfFiles(loops, stewards), "", "  ")
	require.NoError(t, err)
	path := filepath.Join("..", "..", "schema", "pawl.schema.json")
	if *update {
		require.NoError(t, os.WriteFile(path, append(text, '\n'), 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(text)+"\n", string(have), "schema/pawl.schema.json is out of step: go test ./test/docs -update")
}

// meanings returns the descriptions of keys in a page's tables.
func meanings(text string) map[string]string {
	about := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\| [^|]* \\|([^|]*)\\|$").FindAllStringSubmatch(text, -1) {
		for _, key := range strings.Split(row[1], ", ") {
			about[strings.Trim(key, "`")] = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(strings.TrimSpace(row[2]), "$1")
		}
	}
	return about
}

// charterKeys returns the keys of a steward's spec, with the keys of the entries of its lists.
func charterKeys() []string {
	all := charter.Keys()
	for list, item := range map[string]any{"tiers": charter.Rule{}, "schedules": charter.Schedule{}, "triggers": charter.Trigger{}} {
		for _, key := range spec.KeysOf(item) {
			if inner := strings.HasPrefix(key, "task."); !inner {
				all = append(all, list+"[]."+key)
			} else if task := list + "[].task"; !slices.Contains(all, task) {
				all = append(all, task)
			}
		}
	}
	return all
}

// TestPolicyRulesAreInStep compares the table in docs/reference/spec.md with the rules.
func TestPolicyRulesAreInStep(t *testing.T) {
	const head = "| rule | setting | default | what it judges | blocks |\n|---|---|---|---|---|\n"
	text := page(t, "reference/spec.md")
	before, rest, ok := strings.Cut(text, head)
	require.True(t, ok, "docs/reference/spec.md has no table of rules")
	_, after, _ := strings.Cut(rest, "\n\n")
	if strings.HasPrefix(rest, "\n") { // an empty table
		after = rest[1:]
	}
	text = before + head + rules() + "\n" + after
	path := filepath.Join("..", "..", "docs", "reference", "spec.md")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	require.Equal(t, text, page(t, "reference/spec.md"), "docs/reference/spec.md is out of step: go test ./test/docs -update")
}

func rules() string {
	var w strings.Builder
	for _, r := range spec.Rules {
		setting, standard, blocks := "–", "–", "no"
		if r.Setting() != "" {
			setting, standard = r.Setting(), "no limit"
		}
		if most, ok := r.Limit(spec.Spec{}.Rules()); ok {
			standard = fmt.Sprint(most)
		} else if word := r.Says(spec.Spec{}.Rules()); word != "" {
			standard = "`" + word + "`"
		}
		if r.Blocks {
			blocks = "yes"
		}
		fmt.Fprintf(&w, "| `%s` | %s | %s | %s | %s |\n", r.Name, setting, standard, r.Judges, blocks)
	}
	return w.String()
}

// sealedPage returns testdata/sealed.md with the table of programs at its end.
func sealedPage(t *testing.T) string {
	text, err := os.ReadFile(filepath.Join("testdata", "sealed.md"))
	require.NoError(t, err)
	var w strings.Builder
	w.WriteString(strings.Replace(string(text), "GENERATED\n\n", generated, 1))
	cell := func(globs []string) string {
		if len(globs) == 0 {
			return "–"
		}
		return "`" + strings.Join(globs, "`, `") + "`"
	}
	for _, r := range evaluator.Table() {
		fmt.Fprintf(&w, "| %s | %s | %s | %s | %s |\n", cell(r.Programs), cell(r.Tests), cell(r.Settings), cell(r.Absent), cell(r.Lines))
	}
	return w.String()
}

func errorsPage() string {
	var w strings.Builder
	w.WriteString("# Errors\n\n" + generated)
	w.WriteString("Every fault has a code. The code is the workflow's failure type, the state's `errorCode`, and the type of a refused\nupdate's error. It also decides the exit code of the command.\n\n")
	w.WriteString("| code | what it means | what to do | exit code |\n|---|---|---|---|\n")
	for _, k := range fault.Table {
		fmt.Fprintf(&w, "| `%s` | %s | %s | %d |\n", k.Code, k.Meaning, k.Recovery(), k.Exit)
	}
	var within []string
	for _, k := range fault.Table {
		if fault.Enforcement.Has(k.Family) {
			within = append(within, "`"+string(k.Code)+"`")
		}
	}
	w.WriteString("\nThese codes are one family. Code can match the family as a whole, or one code: " + strings.Join(within, ", ") + ".\nTwo of them are never an `errorCode`, only the `cause` beside it, in the state, the result and the last event. If the wall clock\nhas run out, or an iteration has used up its agent calls, the loop ends with `BUDGET_EXHAUSTED`, as for every budget.\n")
	w.WriteString("\nOther exit codes: 0 means that the loop completed; 4 means that a gate opened and there is no terminal to ask at (the loop waits).\n")
	return w.String()
}

func events(t *testing.T) string {
	var w strings.Builder
	w.WriteString("# Events\n\n" + generated)
	w.WriteString("Only events change a loop's state: the state is the fold of its events. The ledger keeps all of them, `pawl log --json` prints\nthem as JSON lines, and the query `events` returns the latest ones.\n\n| type | meaning |\n|---|---|\n")
	for _, e := range constants.Of[loop.Type](t, "internal/loop/event.go", "Type") {
		fmt.Fprintf(&w, "| `%s` | %s |\n", e.Value, e.Meaning)
	}
	w.WriteString("\n## Fields\n\nEvery event has `seq`, `time`, `loop`, `type`, `iteration` and `phase`. The other fields depend on the type.\n\n")
	w.WriteString(fields(reflect.TypeFor[loop.Event]()))
	for _, inner := range []reflect.Type{
		reflect.TypeFor[loop.Usage](), reflect.TypeFor[loop.Iteration](), reflect.TypeFor[loop.Judgement](), reflect.TypeFor[loop.Gate](),
		reflect.TypeFor[loop.Answer](), reflect.TypeFor[loop.Contract](), reflect.TypeFor[loop.Proposal](), reflect.TypeFor[loop.Opened](),
		reflect.TypeFor[stats.Judgement](), reflect.TypeFor[stats.Sampler](), reflect.TypeFor[loop.Claim](),
	} {
		fmt.Fprintf(&w, "\n### %s\n\n%s", named(inner), fields(inner))
	}
	return w.String()
}

func fields(t reflect.Type) string {
	return "| field | type |\n|---|---|\n" + rows(t)
}

// rows returns the fields of a struct, including those of embedded structs.
func rows(t reflect.Type) string {
	var w strings.Builder
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			w.WriteString(rows(f.Type))
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fmt.Fprintf(&w, "| `%s` | %s |\n", name, named(f.Type))
	}
	return w.String()
}

// named returns the name of a type in JSON.
func named(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[stats.Judgement]():
		return "Samples"
	case t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Pointer:
		return named(t.Elem())
	case t.Name() == "Decimal":
		return "number, exact"
	case t.Name() == "Time":
		return "time, RFC 3339 UTC"
	case t == reflect.TypeFor[json.RawMessage](): // a fragment of a spec
		return "object"
	case t.Kind() == reflect.Slice:
		return "list of " + named(t.Elem())
	case t.Kind() == reflect.Map:
		return "object of " + named(t.Elem())
	case t.Kind() == reflect.Struct:
		return t.Name()
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "true or false"
	}
	return "whole number"
}

func phases() string {
	var w strings.Builder
	w.WriteString("# Phases\n\n" + generated)
	w.WriteString("These are the phases of each kind of loop, and all changes of phase that pawl allows. Any other change ends with\n`ALO_INVALID_TRANSITION`.\n\n## Improve\n\n")
	improve := kind.Improve.Machine(kind.Version(), true)
	w.WriteString(drawing(improve, func(from, to phase.Phase) (string, bool) {
		return "", to != phase.Complete || from == phase.Log
	}))
	w.WriteString("\nA loop can also go from every phase to `complete`, because it can be halted anywhere.\n\n" + table(improve, nil))
	w.WriteString("\n## Deliver\n\n")
	strict, lax := kind.Deliver.Machine(kind.Version(), true), kind.Deliver.Machine(kind.Version(), false)
	only := func(from, to phase.Phase) (string, bool) {
		if from != phase.None && strict.Check(from, to) != nil {
			return "only without test.required", true
		}
		return "", true
	}
	w.WriteString(drawing(lax, only))
	w.WriteString("\nThe guard is not a phase: it runs at the end of `write` and `fix`. A rework happens within its phase. `complete` is\nthe last phase and means success: a loop that fails or is halted stays in its phase.\n\n" + table(lax, only))
	return w.String()
}

// drawing returns a machine as mermaid draws it. label returns the text of an arrow, and whether the arrow is drawn. A
// nil label draws all.
func drawing(m phase.Machine, label func(from, to phase.Phase) (string, bool)) string {
	var w strings.Builder
	w.WriteString("```mermaid\nstateDiagram-v2\n")
	for _, from := range append([]phase.Phase{phase.None}, m.Phases()...) {
		for _, to := range m.Row(from).Next {
			text, drawn := label(from, to)
			if !drawn {
				continue
			}
			name := string(from)
			if from == phase.None {
				name = "[*]"
			}
			fmt.Fprintf(&w, "    %s --> %s", name, to)
			if text != "" {
				w.WriteString(" : " + text)
			}
			w.WriteString("\n")
		}
	}
	w.WriteString("    complete --> [*]\n```\n")
	return w.String()
}

// table lists which phases may follow each phase.
func table(m phase.Machine, label func(from, to phase.Phase) (string, bool)) string {
	var w strings.Builder
	w.WriteString("| phase | may be followed by |\n|---|---|\n")
	for _, from := range m.Phases() {
		var next []string
		for _, to := range m.Row(from).Next {
			text := "`" + string(to) + "`"
			if label != nil {
				if when, _ := label(from, to); when != "" {
					text += " (" + when + ")"
				}
			}
			next = append(next, text)
		}
		if len(next) == 0 {
			next = []string{"nothing"}
		}
		fmt.Fprintf(&w, "| `%s` | %s |\n", from, strings.Join(next, ", "))
	}
	return w.String()
}

// TestEveryKeyIsDocumented compares docs/reference/spec.md with the keys of the contract.
func TestEveryKeyIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "spec.md"))
	require.NoError(t, err)
	for _, key := range spec.Keys() {
		require.Contains(t, string(page), "`"+key+"`", "%s is not documented", key)
	}
}

// TestWhatAnAgentMayReportIsDocumented compares docs/reference/spec.md with what pawl reads of a result file.
func TestWhatAnAgentMayReportIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "spec.md"))
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| `PAWL_RESULT` .*$").FindString(string(page))
	result := reflect.TypeFor[prompt.Result]()
	for i := range result.NumField() {
		if key, _, _ := strings.Cut(result.Field(i).Tag.Get("json"), ","); key != "-" {
			require.Contains(t, row, "`"+key+"`")
		}
	}
}
