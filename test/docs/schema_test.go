package docs_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/agents"
	"pawl/internal/spec/kind"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// schemaOfFiles returns the schema of the spec files that this version accepts, of loops and of stewards. The key kind
// says which of the two a file is. loop and steward have the descriptions of the keys, by dotted key.
func schemaOfFiles(loop, steward map[string]string) *jsonSchema {
	part, whole := loopSchema(loop)
	is := schemaOf(struct {
		Kind string `json:"kind"`
	}{}, tables{Words: map[string][]string{"kind": {kind.Steward.Name}}, Required: []string{"kind"}})
	is.Additional = nil
	return &jsonSchema{
		Schema: "http://json-schema.org/draft-07/schema#", Title: "The spec of a pawl loop or steward",
		If: is, Then: schemaOf(charter.Defaults(), charterTables(steward)), Else: whole,
		Definitions: map[string]*jsonSchema{path.Base(fragment): part},
	}
}

// charterTables returns the tables that the check of a charter uses. The required keys are those that check reports as missing in an empty
// charter.
func charterTables(descriptions map[string]string) tables {
	by := tables{Descriptions: descriptions, Words: charter.Words, Leasts: charter.Leasts, Barred: map[string][]string{"defaults": charter.Partial}, Empty: []string{"agent.command"}}
	empty := charter.Defaults()
	empty.Repo.Path, empty.Tiers, empty.Schedules, empty.Triggers = "/src", []charter.Rule{{}}, []charter.Schedule{{}}, []charter.Trigger{{}}
	required := map[string]bool{"kind": true}
	for _, p := range problemsOf(empty.ValidateInput()) {
		if key := index.ReplaceAllString(p.Key, "[]"); !strings.HasSuffix(key, "]") {
			required[key] = true
		}
	}
	by.Required = slices.Sorted(maps.Keys(required))
	for _, key := range []string{"schedules[].task", "triggers[].task"} {
		by.Barred[key] = []string{"id", "source", "dedupe"}
		by.Barred[key+".spec"], by.Barred[key+".plan[].spec"] = charter.Starters, charter.Partial
		for _, p := range (task.Task{Plan: []task.Step{}}).Check(key) { // it may have no plan, but not an empty one
			by.Filled = append(by.Filled, p.Key)
		}
	}
	return by
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// jsonSchema is a JSON Schema (draft 7, which editors support best), with the parts that describe a spec.
type jsonSchema struct {
	Schema      string       `json:"$schema,omitempty"`
	Ref         string       `json:"$ref,omitempty"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	Type        any          `json:"type,omitempty"` // a name or a list of names
	Enum        []string     `json:"enum,omitempty"`
	Pattern     string       `json:"pattern,omitempty"`
	MinLength   int          `json:"minLength,omitempty"`
	Minimum     *int         `json:"minimum,omitempty"`
	MinItems    int          `json:"minItems,omitempty"`
	Default     any          `json:"default,omitempty"`
	Items       *jsonSchema  `json:"items,omitempty"`
	OneOf       []jsonSchema `json:"oneOf,omitempty"`
	Properties  *properties  `json:"properties,omitempty"`
	Required    []string     `json:"required,omitempty"`
	Additional  any          `json:"additionalProperties,omitempty"` // false, or the schema of each

	AllOf       []*jsonSchema          `json:"allOf,omitempty"`
	Not         *jsonSchema            `json:"not,omitempty"`
	If          *jsonSchema            `json:"if,omitempty"`
	Then        *jsonSchema            `json:"then,omitempty"`
	Else        *jsonSchema            `json:"else,omitempty"`
	Definitions map[string]*jsonSchema `json:"definitions,omitempty"`
}

// fragment is the definition for a part of a loop's spec.
const fragment = "#/definitions/fragment"

// tables are what the schema needs besides the fields of the struct, all by dotted key; "[]" stands for the items of
// a list.
type tables struct {
	Descriptions map[string]string
	Words        map[string][]string // the words that a key can have
	Leasts       map[string]int      // the smallest number of a key
	Required     []string            // the required keys
	Barred       map[string][]string // the keys that an object may not have here
	Empty        []string            // the commands that may be empty, which means that there is none
	Filled       []string            // the lists that may be missing, but not empty
}

// properties are the keys of an object in the contract's order.
type properties struct {
	names []string
	of    map[string]*jsonSchema
}

// MarshalJSON writes an object in its own order.
func (p *properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range p.names {
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(p.of[name])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schemaOf describes the documents that are read into a struct. defaults is such a struct with its defaults. The
// schema uses the same fields as the reader, and the same tables as the checks. It accepts no key or type that the
// reader refuses. It refuses nothing that the reader accepts, except null, which means "not given". Only the reader
// finds contradictions between keys. For a part of a loop's spec it refers to the definition fragment.
func schemaOf(defaults any, by tables) *jsonSchema {
	return schemer{by}.object(reflect.TypeOf(defaults), reflect.ValueOf(defaults), "")
}

// loopSchema describes the specs of loops that this version accepts. part has all keys and requires none; whole
// says what a complete spec requires. descriptions are by dotted key.
func loopSchema(descriptions map[string]string) (part, whole *jsonSchema) {
	by := tables{Descriptions: descriptions, Words: map[string][]string{}, Leasts: spec.Leasts, Required: append(required(), "metrics[].name")}
	for key := range spec.Words {
		by.Words[key] = enum(key)
	}
	part = schemaOf(spec.Defaults(), by)
	return part, &jsonSchema{AllOf: []*jsonSchema{{Ref: fragment}, part.demands()}}
}

// demands moves the requirements of a schema into a new schema, which it returns; nil if there are none.
func (s *jsonSchema) demands() *jsonSchema {
	out := &jsonSchema{Required: s.Required}
	s.Required = nil
	if s.Properties != nil {
		for _, name := range s.Properties.names {
			if inner := s.Properties.of[name].demands(); inner != nil {
				out.Properties = out.Properties.with(name, inner)
			}
		}
	}
	if out.Required == nil && out.Properties == nil {
		return nil
	}
	return out
}

// with returns the properties with one more key.
func (p *properties) with(name string, s *jsonSchema) *properties {
	if p == nil {
		p = &properties{of: map[string]*jsonSchema{}}
	}
	p.names = append(p.names, name)
	p.of[name] = s
	return p
}

// takes reports whether this version accepts a word as the value of a key, with at least one of the agents: some words
// need an agent that can do more than a command.
func takes(key, word string) bool {
	for _, use := range append([]string{spec.UseCommand}, agents.Telling()...) {
		var value any = word
		parts := strings.Split(key, ".")
		for _, part := range slices.Backward(parts) {
			value = map[string]any{part: value}
		}
		doc := value.(map[string]any)
		if parts[0] != "agent" {
			doc["agent"] = map[string]any{"use": use}
		}
		if _, err := spec.FromMap(doc); !problemsOf(err).Covers(key) {
			return true
		}
	}
	return false
}

type schemer struct{ tables }

// object describes a struct. defaults is its default value, invalid for an object with a name of the user's own.
func (b schemer) object(t reflect.Type, defaults reflect.Value, key string) *jsonSchema {
	s := &jsonSchema{Type: "object", Properties: &properties{of: map[string]*jsonSchema{}}, Additional: false, Description: b.Descriptions[key]}
	for i, name := range spec.Fields(t) {
		if slices.Contains(b.Barred[key], name) {
			continue
		}
		at := strings.TrimPrefix(key+"."+name, ".")
		var given reflect.Value
		if defaults.IsValid() {
			given = defaults.Field(i)
		}
		s.Properties.with(name, b.value(t.Field(i).Type, given, at))
		if slices.ContainsFunc(b.Required, func(r string) bool { return r == at || strings.HasPrefix(r, at+".") }) {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

// value describes the values of a key; given is its default.
func (b schemer) value(t reflect.Type, given reflect.Value, key string) *jsonSchema {
	if name, ok := strings.CutPrefix(key, "policies.*."); ok {
		return ruled(spec.Rules[slices.IndexFunc(spec.Rules, func(r spec.Rule) bool { return r.Name == name })])
	}
	s := &jsonSchema{Description: b.Descriptions[key]}
	if given.IsValid() && !given.IsZero() {
		s.Default = given.Interface()
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return b.value(t.Elem(), reflect.Value{}, key)
	case t == reflect.TypeFor[spec.Duration]():
		s.Type, s.Pattern = "string", `^[+]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	case t == reflect.TypeFor[spec.Size]():
		s.Type, s.Pattern = "string", spec.SizeForm
	case t == reflect.TypeFor[metric.Decimal]():
		s.Type, s.Pattern = []string{"number", "string"}, `^[-+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]+)?$`
	case t == reflect.TypeFor[metric.Threshold]():
		s.Type, s.Pattern = []string{"number", "string"}, `^[-+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]+)? *%?$`
	case t == reflect.TypeFor[spec.Argv]():
		least := 1
		if slices.Contains(b.Empty, key) {
			least = 0
		}
		s.OneOf = []jsonSchema{{Type: "string", MinLength: least}, {Type: "array", Items: &jsonSchema{Type: "string"}, MinItems: least}}
	case t == reflect.TypeFor[json.RawMessage]():
		s.AllOf = []*jsonSchema{{Ref: fragment}}
		for _, name := range b.Barred[key] {
			s.Properties = s.Properties.with(name, &jsonSchema{Not: &jsonSchema{}})
		}
	case t.Kind() == reflect.String:
		s.Type, s.Enum = "string", b.Words[key]
		if slices.Contains(b.Required, key) {
			s.MinLength = 1
		}
	case t.Kind() == reflect.Bool:
		s.Type = "boolean"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		s.Type = "integer"
		if n, bounded := b.Leasts[key]; bounded {
			s.Minimum = &n
		}
	case t.Kind() == reflect.Slice:
		s.Type, s.Items = "array", b.value(t.Elem(), reflect.Value{}, key+"[]")
		if slices.Contains(b.Required, key) || slices.Contains(b.Filled, key) {
			s.MinItems = 1
		}
	case t.Kind() == reflect.Map:
		s.Type, s.Additional = "object", b.value(t.Elem(), reflect.Value{}, key+".*")
	case t.Kind() == reflect.Struct:
		return b.object(t, given, key)
	case t.Kind() == reflect.Interface: // rules of a policy: the reader keeps them as they are
	default:
		panic("no schema for " + t.String()) // a field of a type that value does not know
	}
	return s
}

// enum returns the words that a key can have in this version; nil if it can have any value.
func enum(key string) []string {
	if of, known := spec.Words[key]; known {
		return slices.DeleteFunc(slices.Clone(of), func(word string) bool { return !strings.Contains(key, "[]") && !takes(key, word) })
	}
	return nil
}

// required returns the keys that every spec requires, whatever its kind.
func required() []string {
	uses := enum("agent.use")
	if uses == nil {
		uses = []string{spec.UseCommand, "another"}
	}
	var always map[string]bool
	for _, kind := range enum("kind") {
		for _, use := range uses {
			s := spec.Defaults()
			s.Kind, s.Agent.Use = kind, use
			missing := map[string]bool{}
			for _, p := range problemsOf(s.ValidateInput()) {
				if p.What == spec.MissingKey && (always == nil || always[p.Key]) {
					missing[p.Key] = true
				}
			}
			always = missing
		}
	}
	return slices.Sorted(maps.Keys(always))
}

// problemsOf returns the problems that a check has found.
func problemsOf(err error) spec.Problems {
	problems, _ := err.(spec.Problems)
	return problems
}

// ruled describes the setting of a policy rule.
func ruled(r spec.Rule) *jsonSchema {
	s := &jsonSchema{Description: r.Judges, Type: "integer", Minimum: new(1)}
	if r.Most > 0 {
		s.Default = r.Most
	}
	if r.Word != "" {
		s.Type, s.Enum, s.Minimum, s.Default = "string", []string{spec.Deny, spec.Allow}, nil, r.Word
	}
	return s
}
