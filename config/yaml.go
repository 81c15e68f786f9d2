package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"pawl/internal/spec"
)

// yamlReader turns YAML nodes into values. It walks the nodes itself, since decoding into a map
// would lose the lines, the decimals of numbers ("0.10") and keys that are given twice.
type yamlReader struct {
	doc  *document
	file string
	left int                 // nodes that may still be read: aliases must not multiply without end
	open map[*yaml.Node]bool // what is being read: an alias of it has no end
}

func readYAML(text []byte, file string, doc *document) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	switch err := dec.Decode(&root); {
	case errors.Is(err, io.EOF):
		return // an empty file: everything that is required is missing
	case err != nil:
		doc.unread(yamlProblem(err, text, file))
		return
	}
	switch err := dec.Decode(new(yaml.Node)); {
	case errors.Is(err, io.EOF):
	case err != nil:
		doc.unread(yamlProblem(err, text, file))
		return
	default:
		doc.unread(spec.Problem{File: file, What: "holds more than one document", Want: "one spec"})
		return
	}
	r := yamlReader{doc: doc, file: file, left: spec.MaxValues, open: map[*yaml.Node]bool{}}
	v := r.value(root.Content[0], "", 0)
	if r.left <= 0 {
		doc.wrong = nil // of a part of it
		doc.unread(tooMany(file))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		doc.values = v
	case nil:
	default:
		doc.unread(spec.Problem{File: file, Line: root.Content[0].Line, What: "is not an object", Want: "the keys of a spec, such as goal: …"})
	}
}

func (r *yamlReader) wrong(n *yaml.Node, key, what, want string) {
	r.doc.wrong = append(r.doc.wrong, spec.Problem{File: r.file, Line: n.Line, Key: key, What: what, Want: want})
}

func (r *yamlReader) value(n *yaml.Node, key string, depth int) any {
	if r.left--; r.left <= 0 {
		return nil
	}
	if depth > spec.MaxDepth {
		if outer := []rune(key); len(outer) > 40 {
			key = string(outer[:39]) + "…"
		}
		r.wrong(n, key, fmt.Sprintf("is nested more than %d deep", spec.MaxDepth), "a spec that a person can read")
		return nil
	}
	if key != "" {
		r.doc.at[key] = position{r.file, n.Line}
	}
	if tag := n.ShortTag(); !spec.PlainTag(tag) && tag != "!!merge" && n.Kind != yaml.AliasNode {
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
			r.wrong(n, key, "is an alias of what it stands in", "an alias of something else")
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
	return scalar(n)
}

// object reads a mapping into object. What a merge key ("<<") brings in yields to what is there.
func (r *yamlReader) object(n *yaml.Node, object map[string]any, key string, depth int) {
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if name.Kind == yaml.AliasNode {
			name = name.Alias
		}
		if name.Kind != yaml.ScalarNode {
			r.wrong(name, key, "has a key that is not a name", "keys such as verify")
			continue
		}
		if name.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		at := spec.Join(key, name.Value)
		if _, twice := object[name.Value]; twice {
			r.wrong(name, at, "is given twice", "one of the two")
			continue
		}
		object[name.Value] = r.value(value, at, depth+1)
		r.doc.at[at] = position{r.file, name.Line}
	}
	for i := 0; i < len(merged) && i < spec.MaxValues; i++ {
		m := merged[i]
		for m.Kind == yaml.AliasNode {
			m = m.Alias
		}
		if m.Kind == yaml.SequenceNode { // the earlier ones win, as in an object
			merged = append(merged, m.Content...)
			continue
		}
		if m.Kind != yaml.MappingNode || depth > spec.MaxDepth {
			r.wrong(m, key, "merges something that is not an object", "an alias of an object")
			continue
		}
		inherited := map[string]any{}
		r.object(m, inherited, key, depth+1)
		for name, value := range inherited {
			if _, there := object[name]; !there {
				object[name] = value
			}
		}
	}
}

// scalar is a text, number, boolean or nothing, as YAML has it. Numbers keep their decimals;
// dates are texts.
func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int", "!!float":
		if number, ok := spec.PlainNumber(n.Value); ok {
			return number
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

// text reads the value of --set or of a variable: a list or an object in flow form, a quoted
// text, or a scalar. Anything else is the text itself, so that a command with a colon or a
// hash sign in it needs no quotes.
func text(s string) any {
	s = strings.TrimSpace(s)
	if s != "" && strings.ContainsRune(`[{"'`, rune(s[0])) {
		var root yaml.Node
		if yaml.Unmarshal([]byte(s), &root) == nil && len(root.Content) == 1 {
			n := root.Content[0]
			if n.Kind == yaml.ScalarNode || n.Style&yaml.FlowStyle != 0 {
				r := yamlReader{doc: &document{at: map[string]position{}}, left: spec.MaxValues, open: map[*yaml.Node]bool{}}
				if v := r.value(n, "", 0); len(r.doc.wrong) == 0 && r.left > 0 {
					return v
				}
			}
		}
		return s
	}
	return scalar(&yaml.Node{Kind: yaml.ScalarNode, Value: s})
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)

// yamlProblem takes the line out of the library's message.
func yamlProblem(err error, text []byte, file string) spec.Problem {
	first, _, _ := strings.Cut(err.Error(), "\n")
	p := spec.Problem{File: file, Want: "valid YAML"}
	m := yamlLine.FindStringSubmatch(first)
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
