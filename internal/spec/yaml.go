package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/metric"
)

// YAML reads a text that is one object, as ReadYAML does, and an empty text as one without keys. If the text is
// anything else, object is nil, and wrong says why.
func YAML(text []byte, literal bool) (object map[string]any, lines map[string]int, wrong Problems) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	err := dec.Decode(&root)
	if errors.Is(err, io.EOF) {
		return map[string]any{}, nil, nil
	}
	if err == nil {
		if err = dec.Decode(new(yaml.Node)); err == nil {
			return nil, nil, Problems{{What: "holds more than one document", Want: "one"}}
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, nil, Problems{yamlProblem(err, text)}
	}
	v, lines, wrong, err := ReadYAML(root.Content[0], literal)
	if err != nil {
		return nil, nil, Problems{TooMany()}
	}
	switch v := v.(type) {
	case map[string]any:
		return v, lines, wrong
	case nil:
		return map[string]any{}, lines, wrong
	}
	return nil, lines, append(wrong, Problem{Line: root.Content[0].Line, What: "is not an object", Want: "keys with values, such as goal: …"})
}

var yamlLine = lazyregexp.New(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)

// yamlProblem separates the line from the library's message.
func yamlProblem(err error, text []byte) Problem {
	first, _, _ := strings.Cut(err.Error(), "\n")
	p := Problem{Want: "valid YAML"}
	m := yamlLine().FindStringSubmatch(first)
	p.Line, _ = strconv.Atoi(m[1])
	p.What = "not valid YAML: " + m[2]
	for i, line := range bytes.Split(text, []byte("\n")) {
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if i+1 == p.Line && bytes.ContainsRune(indent, '\t') {
			p.What, p.Want = "not valid YAML: the line is indented with a tab", "spaces"
		}
	}
	return p
}

// ReadYAML returns the values of a YAML document in the types that FromMap reads. It walks the nodes, because
// decoding into a map would lose the lines, the decimals of numbers ("0.10") and keys that are given twice. In a
// literal document every value must mean what it shows: aliases are problems, and so are numbers that only YAML reads
// as numbers. lines has the line of each key; wrong has the problems, with lines. The error is ErrTooMany or nil.
func ReadYAML(n *yaml.Node, literal bool) (value any, lines map[string]int, wrong Problems, err error) {
	r := yamlReader{literal: literal, lines: map[string]int{}, left: MaxValues, open: map[*yaml.Node]bool{}}
	value = r.value(n, "", 0)
	if r.left <= 0 {
		return nil, nil, nil, ErrTooMany
	}
	return value, r.lines, r.problems, nil
}

type yamlReader struct {
	literal  bool
	lines    map[string]int
	problems Problems
	left     int                 // how many more nodes may be read: aliases must not multiply without end
	open     map[*yaml.Node]bool // the nodes that are being read: an alias of one of them would never end
}

func (r *yamlReader) wrong(n *yaml.Node, key, text, want string) {
	r.problems = append(r.problems, Problem{Line: n.Line, Key: key, What: text, Want: want})
}

func (r *yamlReader) value(n *yaml.Node, key string, depth int) any {
	if r.left--; r.left <= 0 {
		return nil
	}
	if depth > MaxDepth {
		if outer := []rune(key); len(outer) > 40 {
			key = string(outer[:39]) + "…"
		}
		r.wrong(n, key, fmt.Sprintf("is nested more than %d deep", MaxDepth), "a spec that a person can read")
		return nil
	}
	if key != "" {
		r.lines[key] = n.Line
	}
	if r.literal && (n.Kind == yaml.AliasNode || n.Anchor != "") {
		r.wrong(n, key, "uses an anchor or an alias", "the value itself")
		return nil
	}
	if tag := n.ShortTag(); !plainTags[tag] && tag != "!!merge" && n.Kind != yaml.AliasNode {
		r.wrong(n, key, "has the tag "+tag, "a plain value")
		return nil
	}
	if n.Anchor != "" && n.Kind != yaml.AliasNode {
		r.open[n] = true
		defer delete(r.open, n)
	}
	switch n.Kind {
	case yaml.AliasNode:
		if r.open[n.Alias] {
			r.wrong(n, key, "is an alias of the value that contains it", "an alias of something else")
			return nil
		}
		return r.value(n.Alias, key, depth+1)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = r.value(item, fmt.Sprintf("%s[%d]", key, i), depth+1)
		}
		return list
	case yaml.MappingNode:
		object := map[string]any{}
		r.object(n, object, key, depth)
		return object
	}
	v := YAMLScalar(n)
	if _, given := v.(json.Number); r.literal && !given && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float") {
		r.wrong(n, key, "is "+Show(n.Value), "a decimal number, or a text in quotes")
		return nil
	}
	return v
}

// object reads a mapping into object. The keys of a merge key ("<<") do not replace keys that are there.
func (r *yamlReader) object(n *yaml.Node, object map[string]any, key string, depth int) {
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if name.Kind == yaml.AliasNode {
			name = name.Alias
		}
		merges := name.ShortTag() == "!!merge"
		if name.Kind != yaml.ScalarNode || r.literal && merges {
			r.wrong(name, key, "has a key that is not a name", "keys such as verify")
			continue
		}
		if merges {
			merged = append(merged, value)
			continue
		}
		childKey := Join(key, name.Value)
		if _, duplicate := object[name.Value]; duplicate {
			r.wrong(name, childKey, "is given twice", "one of the two")
			continue
		}
		object[name.Value] = r.value(value, childKey, depth+1)
		r.lines[childKey] = name.Line
	}
	for i := 0; i < len(merged) && i < MaxValues; i++ {
		m := merged[i]
		for m.Kind == yaml.AliasNode {
			m = m.Alias
		}
		if m.Kind == yaml.SequenceNode { // the earlier ones take precedence, as in an object
			merged = append(merged, m.Content...)
			continue
		}
		if m.Kind != yaml.MappingNode || depth > MaxDepth {
			r.wrong(m, key, "merges something that is not an object", "an alias of an object")
			continue
		}
		inherited := map[string]any{}
		r.object(m, inherited, key, depth+1)
		for name, value := range inherited {
			if _, ok := object[name]; !ok {
				object[name] = value
			}
		}
	}
}

// plainTags has the tags of YAML's own schemas that stand for values of a spec.
var plainTags = map[string]bool{"!!null": true, "!!bool": true, "!!int": true, "!!float": true, "!!str": true, "!!timestamp": true, "!!seq": true, "!!map": true}

// octal matches what YAML reads as an octal number: 0644 is 420.
var octal = lazyregexp.New(`^[-+]?0[0-9]+$`)

// YAMLScalar returns the string, number, boolean or nil of a YAML node. A decimal number is a json.Number in its
// written form. A number that only YAML reads as one (octal, with a base or with underscores) is an int64 or float64.
// Dates are strings.
func YAMLScalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int", "!!float":
		if _, err := metric.ParseDecimal(n.Value); err == nil && !strings.Contains(n.Value, "_") && !octal().MatchString(n.Value) {
			return json.Number(n.Value)
		}
		var i int64
		if n.Decode(&i) == nil {
			return i
		}
		var f float64
		if n.Decode(&f) == nil {
			return f
		}
	}
	return n.Value
}
