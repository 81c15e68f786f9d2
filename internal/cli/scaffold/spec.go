package scaffold

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"text/template"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
	"pawl/internal/lib/must"
	"pawl/internal/spec/agents"
	"pawl/internal/spec/kind"
)

// Agents lists the programs that init looks for, in this order: the values of agent.use whose sign-in pawl can find.
var Agents = slices.DeleteFunc(slices.Clone(agents.Table), func(p agents.Program) bool { return !p.Use || !p.Signs() })

// Options says what kind of spec to write.
type Options struct {
	Agent  agents.Program
	OnPath bool // the agent's program is installed
	// Command starts an agent that pawl does not know, "" for Agent.
	Command string
	Goal    string // if "", a goal that fits the metric; a steward has none
	Name    string // the name of a steward
}

// Spec returns a commented spec file of a kind for a repository, as YAML.
func Spec(k kind.Kind, r Repository, o Options) string {
	var b strings.Builder
	if !k.Loop {
		r.Protect = append(slices.Clone(r.Protect), path.Join(r.Folder, File(k))) // no loop may change it
	}
	draft := template.Must(template.New(k.Name).Funcs(template.FuncMap{"yaml": quote, "list": quoteAll}).Parse(k.Draft))
	err := draft.Execute(&b, struct {
		Repository
		Options
	}{r, o})
	if err != nil {
		panic(err) // both the templates and the fields are part of pawl
	}
	return b.String()
}

// File returns the name of the spec file of a kind. Commands look for a spec under this name.
func File(k kind.Kind) string {
	if k.Loop {
		return "pawl.yaml"
	}
	return k.Name + ".yaml"
}

// plain matches a text that YAML reads as a string without quotes, whatever comes after it.
var plain = lazyregexp.New(`^[A-Za-z/.][A-Za-z0-9 _/.=-]*$`)

// words lists the texts that match plain, but that YAML does not read as strings.
var words = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}

// quote writes a text as a YAML scalar, as Prettier does: the check of a repository may look at its spec, too. deep is how
// deep its key is.
func quote(s string, deep int) string {
	switch {
	case plain().MatchString(s) && strings.TrimSpace(s) == s && !slices.Contains(words, strings.ToLower(s)):
		return s
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return string(must.Have(json.Marshal(s))) // a text
	}
	if strings.Contains(s, "'") && strings.TrimSpace(s) == s {
		return "|-\n" + strings.Repeat("  ", deep+1) + s
	}
	if !strings.ContainsAny(s, `"\`) {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// quoteAll writes texts as the YAML list after a key, as Prettier does: on one line if there is room.
func quoteAll(values []string, deep int) string {
	quoted := list.Map(values, func(s string) string { return string(must.Have(json.Marshal(s))) }) // a text
	indent := strings.Repeat("  ", deep+1)
	if line := strings.Join(quoted, ", "); len(indent)+len(`protect: []`)+len(line) <= 82 {
		return " [" + line + "]"
	}
	return "\n" + indent + "- " + strings.Join(quoted, "\n"+indent+"- ")
}
