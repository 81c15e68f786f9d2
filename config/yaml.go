package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"pawl/internal/spec"
)

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
