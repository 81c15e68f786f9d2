package secretscan

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
)

//go:embed gitleaks.toml
var gitleaks []byte

// rule is the part of a rule of gitleaks that says what a secret is. It leaves out which files gitleaks skips, because a
// change could put a secret into such a file, and what gitleaks allows everywhere, because placeholder knows that better.
type rule struct {
	ID          string   `toml:"id"`
	Regex       string   `toml:"regex"`
	Path        string   `toml:"path"`
	Entropy     float64  `toml:"entropy"`
	SecretGroup int      `toml:"secretGroup"`
	Keywords    []string `toml:"keywords"`
	Allowlists  []struct {
		Regexes []string `toml:"regexes"`
	} `toml:"allowlists"`
}

// passed are rules that are not used. assigned replaces generic-api-key, which would also stop loops for many texts
// that only have a similar name. The formats replace private-key and jwt. kubernetes-secret-yaml needs more than one
// line.
var passed = []string{"generic-api-key", "private-key", "jwt", "kubernetes-secret-yaml"}

// form says how credentials of one kind are found: those of a format, or of a rule.
type form struct {
	format
	hints   []string            // a credential stands in a line with one of them
	group   int                 // of find, in which the credential is; 0 is the first that is not empty
	entropy float64             // the credential has more than that
	allowed []lazyregexp.Regexp // what matches one of them is no secret
}

// all returns the forms of the formats and, after them, of the rules that are used, and the hints of all forms.
var all = sync.OnceValues(func() (forms []form, hints *words) {
	forms, hints = list.Map(formats, func(f format) form { return form{format: f, hints: []string{f.hint}, entropy: -1} }), &words{}
	var set struct {
		Rules []rule `toml:"rules"`
	}
	if err := toml.Unmarshal(gitleaks, &set); err != nil {
		panic(err) // a test reads this file
	}
	for _, r := range set.Rules {
		if r.Regex != "" && r.Path == "" && len(r.Keywords) > 0 && !slices.Contains(passed, r.ID) {
			forms = append(forms, r.form())
		}
	}
	for i, f := range forms {
		for _, hint := range f.hints {
			hints.add(hint, i)
		}
	}
	return forms, hints
})

// form returns how the secrets of a rule are found. Its kind is the rule's name as words. If the rule recognises a value
// by the name beside it, the value has no form of its own, and must also look random.
func (r rule) form() form {
	kind := "a " + strings.ReplaceAll(r.ID, "-", " ")
	if strings.ContainsRune("aeio", rune(r.ID[0])) {
		kind = "an" + kind[1:]
	}
	f := form{format{kind: kind, find: lazyregexp.New(r.Regex), random: strings.Contains(r.Regex, `(?:=|>|:{1,3}=`)}, r.Keywords, r.SecretGroup, r.Entropy, nil}
	for _, a := range r.Allowlists {
		f.allowed = append(f.allowed, list.Map(a.Regexes, lazyregexp.New)...)
	}
	return f
}

// in calls add for each credential of the form in a line.
func (f *form) in(line string, add func(Found)) {
	for _, m := range f.find().FindAllStringSubmatchIndex(line, -1) {
		start, end := f.place(m)
		text := line[start:end]
		if text == "" || entropy(text) <= f.entropy || placeholder(text) || f.random && !random(text) {
			continue
		}
		if !slices.ContainsFunc(f.allowed, func(re lazyregexp.Regexp) bool { return re().MatchString(text) }) {
			add(Found{f.kind, start, end, text})
		}
	}
}

// place returns where in a match the credential is; without any group it is the whole match.
func (f *form) place(m []int) (start, end int) {
	if g := f.group; g > 0 && 2*g+1 < len(m) && m[2*g] >= 0 {
		return m[2*g], m[2*g+1]
	}
	for g := 2; g+1 < len(m); g += 2 {
		if m[g] >= 0 && m[g] < m[g+1] {
			return m[g], m[g+1]
		}
	}
	return m[0], m[1]
}
