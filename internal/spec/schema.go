package spec

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Schema is a JSON Schema (draft 7, which editors know best): as much of it as describes a spec.
type Schema struct {
	Schema      string      `json:"$schema,omitempty"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description,omitempty"`
	Type        any         `json:"type,omitempty"` // a name or a list of them
	Enum        []string    `json:"enum,omitempty"`
	Pattern     string      `json:"pattern,omitempty"`
	MinLength   int         `json:"minLength,omitempty"`
	Minimum     *int        `json:"minimum,omitempty"`
	MinItems    int         `json:"minItems,omitempty"`
	Default     any         `json:"default,omitempty"`
	Items       *Schema     `json:"items,omitempty"`
	OneOf       []Schema    `json:"oneOf,omitempty"`
	Properties  *Properties `json:"properties,omitempty"`
	Required    []string    `json:"required,omitempty"`
	Additional  any         `json:"additionalProperties,omitempty"` // false, or the schema of each
}

// Properties are the keys of an object in the contract's order.
type Properties struct {
	names []string
	of    map[string]*Schema
}

// MarshalJSON writes an object in its own order.
func (p *Properties) MarshalJSON() ([]byte, error) {
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

// JSONSchema describes the specs that this version takes. It goes by the same fields as the reader,
// the tables that Validate checks by, and the defaults. descriptions are by dotted key. The schema lets nothing pass that the
// reader refuses for its keys or types, and refuses nothing that the reader takes but null, which
// is "not given"; contradictions between keys are left to the reader.
func JSONSchema(descriptions map[string]string) *Schema {
	b := schemer{descriptions, required()}
	root := b.object(reflect.TypeFor[Spec](), reflect.ValueOf(Defaults()), "")
	root.Schema = "http://json-schema.org/draft-07/schema#"
	root.Title = "The spec of a pawl loop"
	return root
}

// takes says whether a word is carried out as the value of a key.
func takes(key, word string) bool {
	var value any = word
	parts := strings.Split(key, ".")
	for _, part := range slices.Backward(parts) {
		value = map[string]any{part: value}
	}
	_, err := FromMap(value.(map[string]any))
	problems, _ := err.(Problems)
	return !problems.Covers(key)
}

type schemer struct {
	descriptions map[string]string
	required     []string
}

// object describes a struct. defaults is its value where nobody has written anything, invalid for
// an object with a name of the user's own.
func (b schemer) object(t reflect.Type, defaults reflect.Value, key string) *Schema {
	s := &Schema{Type: "object", Properties: &Properties{of: map[string]*Schema{}}, Additional: false, Description: b.descriptions[key]}
	names, index := fields(t)
	for _, name := range names {
		at := join(key, name)
		var given reflect.Value
		if defaults.IsValid() {
			given = defaults.Field(index[name])
		}
		s.Properties.names = append(s.Properties.names, name)
		s.Properties.of[name] = b.value(t.Field(index[name]).Type, given, at)
		if slices.ContainsFunc(b.required, func(r string) bool { return r == at || strings.HasPrefix(r, at+".") }) {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

// value describes what a key can have; given is its default.
func (b schemer) value(t reflect.Type, given reflect.Value, key string) *Schema {
	if name, ok := strings.CutPrefix(key, "policies.*."); ok {
		return Rules[slices.IndexFunc(Rules, func(r Rule) bool { return r.Name == name })].schema()
	}
	s := &Schema{Description: b.descriptions[key]}
	if given.IsValid() && !given.IsZero() {
		s.Default = given.Interface()
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return b.value(t.Elem(), reflect.Value{}, key)
	case t == durationType:
		s.Type, s.Pattern = "string", `^[+]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	case t == decimalType:
		s.Type, s.Pattern = []string{"number", "string"}, `^[-+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]+)?$`
	case t == argvType:
		s.OneOf = []Schema{{Type: "string", MinLength: 1}, {Type: "array", Items: &Schema{Type: "string"}, MinItems: 1}}
	case t.Kind() == reflect.String:
		s.Type, s.Enum = "string", enum(key)
		if slices.Contains(b.required, key) {
			s.MinLength = 1
		}
	case t.Kind() == reflect.Bool:
		s.Type = "boolean"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		s.Type = "integer"
		if n, bounded := leasts[key]; bounded {
			s.Minimum = &n
		}
	case t.Kind() == reflect.Slice:
		s.Type, s.Items = "array", b.value(t.Elem(), reflect.Value{}, key+"[]")
		if slices.Contains(b.required, key) {
			s.MinItems = 1
		}
	case t.Kind() == reflect.Map:
		s.Type, s.Additional = "object", b.value(t.Elem(), reflect.Value{}, key+".*")
	case t.Kind() == reflect.Struct:
		return b.object(t, given, key)
	case t.Kind() == reflect.Interface: // rules of a policy, which the reader keeps as they are
	default:
		panic("spec: no schema for " + t.String()) // a field of Spec that nobody thought of
	}
	return s
}

// enum are the words that a key can have in this version; nil where it can have any.
func enum(key string) []string {
	if of, known := words[key]; known {
		return slices.DeleteFunc(slices.Clone(of), func(word string) bool { return key != "breakpoints[]" && !takes(key, word) })
	}
	return nil
}

// required are the keys without which no spec is complete, of whatever kind.
func required() []string {
	uses := enum("agent.use")
	if uses == nil {
		uses = []string{UseCommand, "another"}
	}
	var always map[string]bool
	for _, kind := range enum("kind") {
		for _, use := range uses {
			s := Defaults()
			s.Kind, s.Agent.Use = kind, use
			missing := map[string]bool{}
			for _, p := range s.check() {
				if p.What == missingKey && (always == nil || always[p.Key]) {
					missing[p.Key] = true
				}
			}
			always = missing
		}
	}
	return slices.Sorted(maps.Keys(always))
}
