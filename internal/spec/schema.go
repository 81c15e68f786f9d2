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
	Ref         string      `json:"$ref,omitempty"`
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

	AllOf       []*Schema          `json:"allOf,omitempty"`
	Not         *Schema            `json:"not,omitempty"`
	If          *Schema            `json:"if,omitempty"`
	Then        *Schema            `json:"then,omitempty"`
	Else        *Schema            `json:"else,omitempty"`
	Definitions map[string]*Schema `json:"definitions,omitempty"`
}

// Fragment is the name of the definition that a part of a loop's spec goes by.
const Fragment = "fragment"

// Tables are what the schema of a spec goes by beside the fields of its struct, all by dotted key; "[]"
// stands for the items of a list.
type Tables struct {
	Descriptions map[string]string
	Words        map[string][]string // that a key can have
	Leasts       map[string]int      // the smallest numbers
	Required     []string            // the keys without which it is not complete
	Barred       map[string][]string // the keys that an object may not have here
	Empty        []string            // the commands that may be empty, which says that there is none
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

// SchemaOf describes the documents that are read into a struct: defaults is one with its defaults. It goes
// by the same fields as the reader, the tables that its values are checked by, and the defaults. The
// schema lets nothing pass that the reader refuses for its keys or types, and refuses nothing that the
// reader takes but null, which is "not given"; contradictions between keys are left to the reader. A
// part of a loop's spec goes by the definition Fragment.
func SchemaOf(defaults any, by Tables) *Schema {
	return schemer{by}.object(reflect.TypeOf(defaults), reflect.ValueOf(defaults), "")
}

// LoopSchema describes the specs of loops that this version takes: fragment has all their keys and asks
// for none, whole says what one has to have that is no fragment. descriptions are by dotted key.
func LoopSchema(descriptions map[string]string) (fragment, whole *Schema) {
	by := Tables{Descriptions: descriptions, Words: map[string][]string{}, Leasts: leasts, Required: append(required(), "metrics[].name")}
	for key := range words {
		by.Words[key] = enum(key)
	}
	fragment = SchemaOf(Defaults(), by)
	return fragment, &Schema{AllOf: []*Schema{{Ref: "#/definitions/" + Fragment}, fragment.demands()}}
}

// demands takes what a schema requires out of it, into one of its own; nil where it requires nothing.
func (s *Schema) demands() *Schema {
	out := &Schema{Required: s.Required}
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

// with adds a key.
func (p *Properties) with(name string, s *Schema) *Properties {
	if p == nil {
		p = &Properties{of: map[string]*Schema{}}
	}
	p.names = append(p.names, name)
	p.of[name] = s
	return p
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

type schemer struct{ Tables }

// object describes a struct. defaults is its value where nobody has written anything, invalid for
// an object with a name of the user's own.
func (b schemer) object(t reflect.Type, defaults reflect.Value, key string) *Schema {
	s := &Schema{Type: "object", Properties: &Properties{of: map[string]*Schema{}}, Additional: false, Description: b.Descriptions[key]}
	names, index := fields(t)
	for _, name := range names {
		if slices.Contains(b.Barred[key], name) {
			continue
		}
		at := join(key, name)
		var given reflect.Value
		if defaults.IsValid() {
			given = defaults.Field(index[name])
		}
		s.Properties.with(name, b.value(t.Field(index[name]).Type, given, at))
		if slices.ContainsFunc(b.Required, func(r string) bool { return r == at || strings.HasPrefix(r, at+".") }) {
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
	s := &Schema{Description: b.Descriptions[key]}
	if given.IsValid() && !given.IsZero() {
		s.Default = given.Interface()
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return b.value(t.Elem(), reflect.Value{}, key)
	case t == durationType:
		s.Type, s.Pattern = "string", `^[+]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	case t == sizeType:
		s.Type, s.Pattern = "string", sizeForm
	case t == decimalType:
		s.Type, s.Pattern = []string{"number", "string"}, `^[-+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]+)?$`
	case t == thresholdType:
		s.Type, s.Pattern = []string{"number", "string"}, `^[-+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]+)? *%?$`
	case t == argvType:
		least := 1
		if slices.Contains(b.Empty, key) {
			least = 0
		}
		s.OneOf = []Schema{{Type: "string", MinLength: least}, {Type: "array", Items: &Schema{Type: "string"}, MinItems: least}}
	case t == rawType:
		s.AllOf = []*Schema{{Ref: "#/definitions/" + Fragment}}
		for _, name := range b.Barred[key] {
			s.Properties = s.Properties.with(name, &Schema{Not: &Schema{}})
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
		if slices.Contains(b.Required, key) {
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
		return slices.DeleteFunc(slices.Clone(of), func(word string) bool { return !strings.Contains(key, "[]") && !takes(key, word) })
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
