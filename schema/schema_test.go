package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"pawl/internal/spec"
	"pawl/internal/spec/agents"
	"pawl/internal/steward/charter"
	"pawl/schema"
	"pawl/test/harness/tier"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.JSON))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("pawl.schema.json", doc))
	s, err := c.Compile("pawl.schema.json")
	require.NoError(t, err)
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err, "%s", text)
	return s.Validate(doc)
}

const minimal = `"goal":"g","scope":["a"],"verify":{"command":"x"},"agent":{"command":"y"},"approvals":{"tools":["*"]}`

// TestSchemaAndReaderAgree gives both the same documents: each key of the contract with a value of each type, in a spec
// that is otherwise complete.
func TestSchemaAndReaderAgree(t *testing.T) {
	s := compiled(t)
	values := []string{
		`"x"`, `"30s"`, `"1h30m"`, `"0"`, `"1d"`, `"12"`, `"1.50"`, `"--1"`, `1`, `0`, `-1`, `1.5`, `true`, `[]`, `["a"]`, `[1]`, `[null]`, `["verify"]`, `{}`, `{"a":"b"}`, `{"a":1}`,
		`"improve"`, `"deliver"`, `"allow"`, `"ask"`, `"lower"`, `"auto"`, `"mission"`, `"plan"`, `"halt"`, `"command"`, `"claude"`, `"default"`, `1e30`, `""`,
	}
	agree := func(complete string, read func([]byte) error, values []string, keys ...string) (taken, refused int) {
		for _, key := range keys {
			for _, value := range values {
				text := with(t, complete, key, value)
				err, wrong := read(text), validate(t, s, text)
				if err == nil {
					taken++
					assert.NoError(t, wrong, "the reader takes %s: %s", key, value)
					continue
				}
				refused++
				if !contradiction(err) {
					assert.Error(t, wrong, "the reader refuses %s: %s: %v", key, value, err)
				}
			}
		}
		return taken, refused
	}
	taken, refused := agree(minimal, func(text []byte) error { _, err := spec.Parse(text); return err }, values,
		append(spec.Keys(), "verify", "limits", "nonsense", "verify.comand", "agent.roles.writer", "limits.Steps")...)
	require.Greater(t, taken, 100)
	require.Greater(t, refused, 500)

	const schedule = `"name": "n", "every": "1h", "task": {"body": "b"`
	values = append(values, `[{"tier": "T1", "paths": ["a"]}]`, `[{"tier": "T5", "paths": ["a"]}]`, `[{"paths": ["a"]}]`, `[{"tier": "T1", "files": "3"}]`, `{"limits": {"steps": 3}}`, `{"limits": {"steps": "3"}}`,
		`{"name": "x"}`, `{"goal": "g"}`, `{"limit": {}}`, `[{`+schedule+`}}]`, `[{`+schedule+`}, "overlap": "skip"}]`, `[{`+schedule+`}, "overlap": "skpi"}]`, `[{`+schedule+`, "id": "a"}}]`, `[{"every": "1h", "task": {"body": "b"}}]`,
		`[{`+schedule+`, "spec": {"name": "x"}}}]`, `[{`+schedule+`, "priority": "high"}}]`, `[{"name": "n", "from": "json", "secretFile": "f", "task": {"body": "b"}}]`, `[{"name": "n", "from": "post", "secretFile": "f", "task": {"body": "b"}}]`,
		`[{"name": "n", "from": "json", "task": {"body": "b"}}]`, `[{"name": "n", "from": "json", "secretFile": "f"}]`, `"steward"`,
		`[{"name": "n", "every": "1h", "task": {"plan": []}}]`, `[{"name": "n", "every": "1h", "task": {"plan": [{"id": "a", "kind": "deliver"}]}}]`, `[{"name": "n", "from": "json", "secretFile": "f", "task": {"plan": []}}]`)
	taken, refused = agree(`"kind":"steward","name":"shop"`, func(text []byte) error { _, err := charter.Parse(text); return err }, values,
		append(charter.Keys(), "limits", "goal", "queue", "limits.steps", "defaults.scope", "defaults.scpoe", "defaults.verify.timeout")...)
	require.Greater(t, taken, 80)
	require.Greater(t, refused, 500)
}

// TestSchemaTakesEveryWordOfTheReader gives both each word of the contract, with each kind of agent: some words are only
// taken with some agents.
func TestSchemaTakesEveryWordOfTheReader(t *testing.T) {
	s, taken := compiled(t), map[string]bool{}
	for _, use := range append([]string{""}, agents.Telling()...) {
		complete := minimal
		if use != "" {
			complete = strings.Replace(minimal, `"agent":{"command":"y"}`, `"agent":{"use":"`+use+`"}`, 1)
		}
		for key, words := range spec.Words {
			for _, word := range words {
				text := with(t, complete, strings.TrimSuffix(key, "[]"), fmt.Sprintf("%q", word))
				if strings.HasSuffix(key, "[]") {
					text = with(t, complete, strings.TrimSuffix(key, "[]"), fmt.Sprintf("[%q]", word))
				}
				if _, err := spec.Parse(text); err != nil {
					continue
				}
				taken[key+" "+word] = true
				assert.NoError(t, validate(t, s, text), "the reader takes %s: %s", key, word)
			}
		}
	}
	require.True(t, taken["approvals.onDenied ask"])
	require.Greater(t, len(taken), 20)
}

// with returns the complete spec with one key set.
func with(t *testing.T, complete, key, value string) []byte {
	t.Helper()
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte("{"+complete+"}"), &doc))
	parts, object := strings.Split(key, "."), doc
	for _, part := range parts[:len(parts)-1] {
		if _, there := object[part].(map[string]any); !there {
			object[part] = map[string]any{}
		}
		object = object[part].(map[string]any)
	}
	object[parts[len(parts)-1]] = json.RawMessage(value)
	text, err := json.Marshal(doc)
	require.NoError(t, err)
	return text
}

// contradiction reports whether a document is wrong only in ways that a schema of keys and types does not cover: the
// range of a duration or an exact number, globs, names, blank commands.
func contradiction(err error) bool {
	for _, p := range err.(spec.Problems) {
		typed := strings.HasPrefix(p.Want, "a string") || strings.HasPrefix(p.Want, "a list") || strings.HasPrefix(p.Want, "a whole number") ||
			strings.HasPrefix(p.Want, "a number") || strings.HasPrefix(p.Want, "true or false") || strings.HasPrefix(p.Want, "an object") ||
			strings.HasPrefix(p.Want, "a duration") || strings.Contains(p.What, "not built") || strings.Contains(p.What, "not a key") || p.What == "has no steps"
		if strings.HasPrefix(p.Want, "a list: ") { // depends on both use and command
			typed = false
		}
		if typed && !strings.Contains(fmt.Sprint(p), "is 1e30") {
			return false
		}
	}
	return true
}

func TestSchemaRefusesWhatTheReaderDoes(t *testing.T) {
	s := compiled(t)
	docs, err := filepath.Glob("../internal/spec/testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, docs)
	for _, path := range docs {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = spec.Parse(text)
		if err == nil {
			require.NoError(t, validate(t, s, text), path)
		} else if !contradiction(err) {
			require.Error(t, validate(t, s, text), path)
		}
	}
}

func TestSchemaNamesWhatIsRequired(t *testing.T) {
	err := validate(t, compiled(t), []byte(`{"verify":{},"agent":{},"approvals":{}}`))
	for _, key := range []string{"goal", "scope", "tools"} {
		require.ErrorContains(t, err, key)
	}
}

func TestExamplesConform(t *testing.T) {
	s := compiled(t)
	specs, err := filepath.Glob("../examples/*/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, specs)
	for _, path := range specs {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var doc any
		require.NoError(t, yaml.Unmarshal(text, &doc))
		text, err = json.Marshal(doc)
		require.NoError(t, err)
		require.NoError(t, validate(t, s, text), path)
	}
}

// TestSchemaTakesEveryPairOfTheReader gives both the pairs of keys that the reader takes by themselves, with each word or a
// usual value, for each kind of loop and of agent: a sample of the pairs, unless all tests are to run.
func TestSchemaTakesEveryPairOfTheReader(t *testing.T) {
	s, taken := compiled(t), 0
	for _, complete := range completes() {
		sets := takenAlone(t, complete)
		for i, a := range sets {
			for j, b := range sets[:i] {
				nested := strings.HasPrefix(a.key, b.key) || strings.HasPrefix(b.key, a.key)
				skipped := !tier.Nightly && (7*i+j)%50 != 0
				if nested || skipped {
					continue
				}
				text := with(t, inner(with(t, complete, a.key, a.value)), b.key, b.value)
				_, err := spec.Parse(text)
				wrong := validate(t, s, text)
				if err == nil {
					taken++
					assert.NoError(t, wrong, "the reader takes %s", text)
				} else if !contradiction(err) {
					assert.Error(t, wrong, "the reader refuses %s: %v", text, err)
				}
			}
		}
	}
	require.Greater(t, taken, 200)
}

// completes returns complete specs of each kind, with each kind of agent.
func completes() (all []string) {
	for _, kind := range []string{`"kind":"improve","verify":{"command":"x"}`, `"kind":"deliver"`} {
		for _, agent := range []string{`"command":"y"`, `"use":"claude"`, `"use":"acp","command":["y"]`} {
			all = append(all, kind+`,"goal":"g","scope":["a"],"test":{"command":"t"},"agent":{`+agent+`},"approvals":{"tools":["*"]}`)
		}
	}
	return all
}

type given struct{ key, value string }

// takenAlone returns the keys that the reader takes in a complete spec: each with all its words, or with one usual value.
func takenAlone(t *testing.T, complete string) (all []given) {
	t.Helper()
	takes := func(key, value string) bool {
		_, err := spec.Parse(with(t, complete, key, value))
		return err == nil
	}
	for _, key := range spec.Keys() {
		for _, word := range spec.Words[key] {
			if value := fmt.Sprintf("%q", word); takes(key, value) {
				all = append(all, given{key, value})
			}
		}
		for _, value := range []string{`"x"`, `"30s"`, `1`, `"1"`, `"512MiB"`, `true`, `["a"]`, `{"a":"b"}`, `"5%"`} {
			if takes(key, value) {
				all = append(all, given{key, value})
				break
			}
		}
	}
	return all
}

// inner returns a document without its outer braces.
func inner(text []byte) string { return string(text[1 : len(text)-1]) }
