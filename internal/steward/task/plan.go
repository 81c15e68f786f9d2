package task

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"pawl/internal/lib/list"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/issue"
)

// MaxPlan is the largest size of a PLAN.md in bytes.
const MaxPlan = 256 << 10

// PlanFile is the file that problems of a plan name.
const PlanFile = "PLAN.md"

// front is the front matter of PLAN.md.
type front struct {
	Tier  Tier            `json:"tier,omitempty"`
	Cost  *metric.Decimal `json:"cost,omitempty"` // in US dollars, as the plan's author expects it
	Steps []Step          `json:"steps"`
}

// ParsePlan reads a PLAN.md: YAML between two lines of ---, then Markdown. It returns the plan, with its steps
// InOrder and the SHA-256 of the file, which an approval names. If the author gives a cost, it is the median of Cost,
// with N 0. The error is spec.Problems with all problems (S3).
func ParsePlan(file []byte) (Plan, error) {
	switch {
	case len(file) > MaxPlan:
		return Plan{}, problem(fmt.Sprintf("is %d bytes long", len(file)), fmt.Sprintf("at most %d", MaxPlan))
	case !utf8.Valid(file):
		return Plan{}, problem("is not valid UTF-8", "text")
	}
	matter, _ := issue.FrontMatter(string(file))
	if matter == "" {
		return Plan{}, problem("does not begin with front matter between two lines of ---", "--- on the first line, tier, cost and steps in YAML, --- again, and the plan in Markdown")
	}
	doc, lines, wrong := spec.YAML([]byte(matter), true)
	var f front
	if doc != nil {
		f, wrong = spec.FillMap(doc, f, wrong, func(f *front) spec.Problems {
			var c spec.Checker
			checkTier(&c, f.Tier)
			if f.Cost != nil && f.Cost.Sign() < 0 {
				c.Add("cost", "is "+f.Cost.String(), "an amount in US dollars, 0 or more")
			}
			f.Steps = InOrder(f.Steps)
			checkSteps(&c, "steps", f.Steps)
			return c.Problems
		})
	}
	if len(wrong) > 0 {
		for i, p := range wrong {
			wrong[i].File, wrong[i].Line = PlanFile, cmp.Or(p.Line, lineOf(lines, p.Key), 1)
		}
		slices.SortStableFunc(wrong, func(a, b spec.Problem) int { return a.Line - b.Line })
		return Plan{}, Called("plan", wrong).Capped()
	}
	p := Plan{Hash: fmt.Sprintf("%x", sha256.Sum256(file)), Tier: f.Tier, Steps: f.Steps}
	if f.Cost != nil {
		p.Cost = &Cost{Median: f.Cost}
	}
	return p, nil
}

// RenderPlan writes the PLAN.md of a task that has its own steps, always the same bytes. ParsePlan reads them.
func RenderPlan(t Task) ([]byte, error) {
	f := front{Tier: t.Tier, Steps: t.Steps()}
	raw, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("the steps of task %s: %w", t.ID, err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var doc map[string]any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("the steps of task %s: %w", t.ID, err)
	}
	var b bytes.Buffer
	b.WriteString("---\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(node(doc)); err != nil {
		return nil, fmt.Errorf("the steps of task %s as YAML: %w", t.ID, err)
	}
	b.WriteString("---\n\n# " + cleanLine(t.Title) + "\n")
	body := strings.TrimSpace(t.Body)
	if first, rest, _ := strings.Cut(body, "\n"); strings.HasPrefix(first, "# ") && cleanLine(first[2:]) == cleanLine(t.Title) {
		body = strings.TrimSpace(rest) // the heading repeats the title
	}
	if body != "" {
		b.WriteString("\n" + strings.ToValidUTF8(body, "\uFFFD") + "\n")
	}
	return b.Bytes(), nil
}

func problem(text, want string) error {
	return spec.Problems{{File: PlanFile, Line: 1, What: text, Want: want}}
}

// lineOf returns the line of a key, or else the line of what contains it.
func lineOf(lines map[string]int, key string) int {
	for key != "" && lines[key] == 0 {
		key = key[:max(strings.LastIndex(key, "."), strings.LastIndex(key, "["), 0)]
	}
	return lines[key]
}

// node converts a JSON value to YAML. Its keys are sorted, with those in atTheEnd last.
func node(value any) *yaml.Node {
	switch v := value.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		rank := func(name string) int { return slices.Index(atTheEnd, name) + 1 }
		for _, name := range slices.SortedFunc(maps.Keys(v), func(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) }) {
			key := node(name)
			if strings.Contains(name, "\n") {
				key.Style = yaml.DoubleQuotedStyle
			}
			n.Content = append(n.Content, key, node(v[name]))
		}
		return n
	case []any:
		return &yaml.Node{Kind: yaml.SequenceNode, Content: list.Map(v, node)}
	case string:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
		if v == "<<" || strings.TrimLeft(v, " \n") != v || strings.ContainsFunc(v, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
}

// atTheEnd are the keys that come after all others, in this order.
var atTheEnd = []string{"after", "milestone", "spec", "steps"}
