package draft

import (
	_ "embed" // the templates
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"pawl/internal/spec"
)

// Options say what a spec is to be for.
type Options struct {
	Kind   string // improve or deliver
	Agent  Agent
	HasKey bool   // the agent's key is in the environment
	OnPath bool   // the agent is there
	Schema string // a file, for editors; "" leaves its line out
	Goal   string // "" is one that fits what was found
}

//go:embed improve.yaml.tmpl
var improveText string

//go:embed deliver.yaml.tmpl
var deliverText string

var templates = map[string]*template.Template{
	spec.KindImprove: parse(improveText),
	spec.KindDeliver: parse(deliverText),
}

// Kinds are the kinds of loops that there is a template for.
func Kinds() []string { return []string{spec.KindImprove, spec.KindDeliver} }

func parse(text string) *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"yaml": quote, "list": quoteAll}).Parse(text))
}

// Spec returns a commented spec file for a repository, as YAML.
func Spec(r Repository, o Options) string {
	var b strings.Builder
	err := templates[o.Kind].Execute(&b, struct {
		Repository
		Options
	}{r, o})
	if err != nil {
		panic(err) // the templates are ours, and so are the fields
	}
	return b.String()
}

// plain is what YAML takes for a text as it stands, whatever follows.
var plain = regexp.MustCompile(`^[A-Za-z/.][A-Za-z0-9 _/.=-]*$`)

// words are plain and no texts.
var words = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}

// quote writes a text as a YAML scalar.
func quote(s string) string {
	switch {
	case plain.MatchString(s) && strings.TrimSpace(s) == s && !slices.Contains(words, strings.ToLower(s)):
		return s
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		b, err := json.Marshal(s)
		if err != nil {
			panic(err) // a text
		}
		return string(b)
	}
	if strings.Contains(s, "'") && strings.TrimSpace(s) == s {
		return "|-\n    " + s // as it stands, on a line of its own
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// quoteAll writes texts as a YAML list on one line.
func quoteAll(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err) // a text
		}
		quoted[i] = string(b)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
