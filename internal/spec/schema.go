package spec

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Schema is a JSON Schema (draft 7, which editors support best), with the parts that describe a spec.
type Schema struct {
	Schema      string      `json:"$schema,omitempty"`
	Ref         string      `json:"$ref,omitempty"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description,omitempty"`
	Type        any         `json:"type,omitempty"` // a name or a list of names
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

// Fragment is the name of the definition for a part of a loop's spec.
const Fragment = "fragment"

// Tables are what the schema needs besides the fields of the struct, all by dotted key; "[]" stands for the items of
// a list.
type Tables struct {
	Descriptions map[string]string
	Words        map[string][]string // the words that a key can have
	Leasts       map[string]int      // the smallest number of a key
	Required     []string            // the required keys
	Barred       map[string][]string // the keys that an object may not have here
	Empty        []string            // the commands that may be empty, which means that there is none
	Filled       []string            // the lists that may be missing, but not empty
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

// SchemaOf describes the documents that are read into a struct. defaults is such a struct with its defaults. The
// schema uses the same fields as the reader, and the same tables as the checks. It accepts no key or type that the
// reader refuses. It refuses nothing that the reader accepts, except null, which means "not given". Only the reader
// finds contradictions between keys. For a part of a loop's spec it refers to the definition Fragment.
func SchemaOf(defaults any, by Tables) *Schema {
	return schemer{by}.object(reflect.TypeOf(defaults), reflect.ValueOf(defaults), "")
}

// LoopSchema describes the specs of loops that this version accepts. fragment has all keys and requires none; whole
// says what a complete spec requires. descriptions are by dotted key.
func LoopSchema(descriptions map[string]string) (fragment, whole *Schema) {
	by := Tables{Descriptions: descriptions, Words: map[string][]string{}, Leasts: leasts, Required: append(required(), "metrics[].name")}
	for key := range words {
		by.Words[key] = enum(key)
	}
	fragment = SchemaOf(Defaults(), by)
	return fragment, &Schema{AllOf: []*Schema{{Ref: "#/definitions/" + Fragment}, fragment.demands()}}
}

// demands moves the requirements of a schema into a new schema, which it returns; nil if there are none.
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

// with returns the properties with one more key.
func (p *Properties) with(name string, s *Schema) *Properties {
	if p == nil {
		p = &Properties{of: map[string]*Schema{}}
	}
	p.names = append(p.names, name)
	p.of[name] = s
	return p
}

// takes reports whether this version accepts a word as the value of a key.
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

// object describes a struct. defaults is its default value, invalid for an object with a name of the user's own.
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

// value describes the values of a key; given is its default.
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
		if slices.Contains(b.Required, key) || slices.Contains(b.Filled, key) {
			s.MinItems = 1
		}
	case t.Kind() == reflect.Map:
		s.Type, s.Additional = "object", b.value(t.Elem(), reflect.Value{}, key+".*")
	case t.Kind() == reflect.Struct:
		return b.object(t, given, key)
	case t.Kind() == reflect.Interface: // rules of a policy: the reader keeps them as they are
	default:
		panic("spec: no schema for " + t.String()) // a field of a type that value does not know
	}
	return s
}

// enum returns the words that a key can have in this version; nil if it can have any value.
func enum(key string) []string {
	if of, known := words[key]; known {
		return slices.DeleteFunc(slices.Clone(of), func(word string) bool { return !strings.Contains(key, "[]") && !takes(key, word) })
	}
	return nil
}

// required returns the keys that every spec requires, whatever its kind.
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
