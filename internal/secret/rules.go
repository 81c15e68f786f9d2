package secret

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"pawl/internal/list"
)

//go:embed gitleaks.toml
var gitleaks []byte

// ruleSet is the part of gitleaks' configuration that says what a secret is. It leaves out which files gitleaks
// skips, because a change could put a secret into such a file, and what gitleaks allows everywhere, because
// placeholder knows that better.
type ruleSet struct {
	Rules []*rule `toml:"rules"`
	words *words  // the hints of all formats and, after them, the keywords of all rules
}

type rule struct {
	ID          string       `toml:"id"`
	Regex       string       `toml:"regex"`
	Path        string       `toml:"path"`
	Entropy     float64      `toml:"entropy"`
	SecretGroup int          `toml:"secretGroup"`
	Keywords    []string     `toml:"keywords"`
	Allowlists  []*allowlist `toml:"allowlists"`
	compiled    sync.Once
	re          *regexp.Regexp
}

// allowlist is what a rule finds that is no secret.
type allowlist struct {
	Regexes  []string `toml:"regexes"`
	compiled sync.Once
	re       []*regexp.Regexp
}

// passed are rules that are not used. assigned replaces generic-api-key, which would also stop loops for many texts
// that only have a similar name. The formats replace private-key and jwt. kubernetes-secret-yaml needs more than one
// line.
var passed = []string{"generic-api-key", "private-key", "jwt", "kubernetes-secret-yaml"}

// all returns the rules that are used.
var all = sync.OnceValue(func() *ruleSet {
	var set ruleSet
	if err := toml.Unmarshal(gitleaks, &set); err != nil {
		panic(err) // a test reads this file
	}
	set.Rules = slices.DeleteFunc(set.Rules, func(r *rule) bool {
		return r.Regex == "" || r.Path != "" || len(r.Keywords) == 0 || slices.Contains(passed, r.ID)
	})
	set.words = &words{}
	for i, f := range formats {
		set.words.add(f.hint, i)
	}
	for i, r := range set.Rules {
		for _, w := range r.Keywords {
			set.words.add(w, len(formats)+i)
		}
	}
	return &set
})

// in calls add for each secret that a rule finds in a line.
func (r *rule) in(line string, add func(Found)) {
	r.compiled.Do(func() { r.re = regexp.MustCompile(r.Regex) })
	for _, m := range r.re.FindAllStringSubmatchIndex(line, -1) {
		start, end := r.group(m)
		text := line[start:end]
		if text == "" || entropy(text) <= r.Entropy || placeholder(text) || r.contextual() && !random(text) {
			continue
		}
		if !slices.ContainsFunc(r.Allowlists, func(a *allowlist) bool { return a.allows(text) }) {
			add(Found{r.kind(), start, end, text})
		}
	}
}

// group returns where in a match the secret is: the group that the rule names, else the first group that is not
// empty, else the whole match.
func (r *rule) group(m []int) (start, end int) {
	if g := r.SecretGroup; g > 0 && 2*g+1 < len(m) && m[2*g] >= 0 {
		return m[2*g], m[2*g+1]
	}
	for g := 2; g+1 < len(m); g += 2 {
		if m[g] >= 0 && m[g] < m[g+1] {
			return m[g], m[g+1]
		}
	}
	return m[0], m[1]
}

// contextual reports whether a rule recognises a value by the name beside it, because the value has no form of its
// own. Such a value must also look random.
func (r *rule) contextual() bool { return strings.Contains(r.Regex, `(?:=|>|:{1,3}=`) }

// kind returns the rule's name as words.
func (r *rule) kind() string {
	name := strings.ReplaceAll(r.ID, "-", " ")
	if strings.ContainsRune("aeio", rune(name[0])) {
		return "an " + name
	}
	return "a " + name
}

func (a *allowlist) allows(text string) bool {
	a.compiled.Do(func() { a.re = list.Map(a.Regexes, regexp.MustCompile) })
	return slices.ContainsFunc(a.re, func(re *regexp.Regexp) bool { return re.MatchString(text) })
}
