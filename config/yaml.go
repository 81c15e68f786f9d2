package config

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"pawl/internal/lazyregexp"
	"pawl/internal/spec"
)

func readYAML(text []byte, file string, doc *document) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	switch err := dec.Decode(&root); {
	case errors.Is(err, io.EOF):
		return // an empty file: all required keys are missing
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
	v, at, wrong, err := spec.ReadYAML(root.Content[0], false)
	if err != nil {
		doc.unread(tooMany(file))
		return
	}
	for key, line := range at {
		doc.at[key] = position{file, line}
	}
	for _, p := range wrong {
		p.File = file
		doc.wrong = append(doc.wrong, p)
	}
	switch v := v.(type) {
	case map[string]any:
		doc.values = v
	case nil:
	default:
		doc.unread(spec.Problem{File: file, Line: root.Content[0].Line, What: "is not an object", Want: "the keys of a spec, such as goal: …"})
	}
}

// text reads the value of --set or of a variable: a list or an object in flow form, a quoted text, or a scalar.
// Anything else is the text itself, so a command with a colon or a hash sign needs no quotes.
func text(s string) any {
	s = strings.TrimSpace(s)
	if s != "" && strings.ContainsRune(`[{"'`, rune(s[0])) {
		var root yaml.Node
		if yaml.Unmarshal([]byte(s), &root) == nil && len(root.Content) == 1 {
			n := root.Content[0]
			if n.Kind == yaml.ScalarNode || n.Style&yaml.FlowStyle != 0 {
				if v, _, wrong, err := spec.ReadYAML(n, false); err == nil && len(wrong) == 0 {
					return v
				}
			}
		}
		return s
	}
	return spec.YAMLScalar(&yaml.Node{Kind: yaml.ScalarNode, Value: s})
}

var yamlLine = lazyregexp.New(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)

// yamlProblem separates the line from the library's message.
func yamlProblem(err error, text []byte, file string) spec.Problem {
	first, _, _ := strings.Cut(err.Error(), "\n")
	p := spec.Problem{File: file, Want: "valid YAML"}
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
