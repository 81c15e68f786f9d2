package spec

import (
	"fmt"
	"maps"
	"slices"
)

// Policy is a named set of rules. Every change has to pass it before any command of the spec runs on the change. It
// has one field for each rule of Rules that has a setting. There is no limit if the field is nil.
type Policy struct {
	MaxFiles      *int   `json:"maxFiles,omitempty"`
	MaxLines      *int   `json:"maxLines,omitempty"`
	MaxTotalFiles *int   `json:"maxTotalFiles,omitempty"`
	MaxTotalLines *int   `json:"maxTotalLines,omitempty"`
	MaxFileBytes  *int   `json:"maxFileBytes,omitempty"`
	Secrets       string `json:"secrets,omitempty"`
	Binary        string `json:"binary,omitempty"`
}

// The names of the rules in specs and violations.
const (
	RuleSealed        = "sealed"
	RuleSecrets       = "secrets"
	RuleScope         = "scope"
	RuleNewFiles      = "newFiles"
	RuleSymlink       = "symlink"
	RuleFileType      = "fileType"
	RuleBinary        = "binary"
	RuleMaxFileBytes  = "maxFileBytes"
	RuleMaxFiles      = "maxFiles"
	RuleMaxLines      = "maxLines"
	RuleMaxTotalFiles = "maxTotalFiles"
	RuleMaxTotalLines = "maxTotalLines"
)

// Rule is one rule that a change has to pass.
type Rule struct {
	Name   string
	Judges string // what it judges, in the words of docs/reference/spec.md
	Blocks bool   // a violation stops a loop of any kind for a person, unless limits.onSealed says otherwise; the other rules stop only Deliver loops

	// In a policy a rule has a limit, a word (deny or allow), or no setting.
	limit func(*Policy) **int
	word  func(*Policy) *string
	Most  int    // the default of the limit; 0 is no limit
	Unit  string // what a limit counts, in the singular: "file in all"
	Word  string // the default of the word
}

// Rules lists all rules. If a change violates several, those with Blocks come first, in this order.
// internal/loop/rules/policy.go carries out each rule.
var Rules = []Rule{
	{Name: RuleSealed, Blocks: true,
		Judges: "[files that judge the work](sealed.md), and those of `protect`. They must not be changed, renamed, deleted, replaced by a link, made executable, put into another repository, or affected by a `.gitattributes`. New files whose names would change how the work is judged are not allowed either"},
	{Name: RuleSecrets, Blocks: true, word: func(p *Policy) *string { return &p.Secrets }, Word: Deny,
		Judges: "added lines, and names of added files, that look like a credential: private keys, tokens of well-known services, random values assigned to a name such as `password`. A line that only moves does not count as added"},
	{Name: RuleScope, Judges: "files outside of `scope`"},
	{Name: RuleNewFiles, Judges: "added files, if `newFiles` does not allow them"},
	{Name: RuleSymlink, Judges: "links that lead out of the repository"},
	{Name: RuleFileType, Judges: "what git cannot hold: nested repositories, FIFOs, sockets, devices"},
	{Name: RuleBinary, word: func(p *Policy) *string { return &p.Binary }, Word: Allow,
		Judges: "files that are binary by content"},
	{Name: RuleMaxFileBytes, limit: func(p *Policy) **int { return &p.MaxFileBytes }, Most: 10 << 20, Unit: "byte a file",
		Judges: "the size of each file that is added or changed"},
	{Name: RuleMaxFiles, limit: func(p *Policy) **int { return &p.MaxFiles }, Unit: "file",
		Judges: "files in one change; a rename is two"},
	{Name: RuleMaxLines, limit: func(p *Policy) **int { return &p.MaxLines }, Unit: "line",
		Judges: "lines added and deleted in one change, also in binary files"},
	{Name: RuleMaxTotalFiles, limit: func(p *Policy) **int { return &p.MaxTotalFiles }, Unit: "file in all",
		Judges: "files that all changes of the loop have touched, undone changes included"},
	{Name: RuleMaxTotalLines, limit: func(p *Policy) **int { return &p.MaxTotalLines }, Unit: "line in all",
		Judges: "lines in which the work differs from the base"},
}

// Limit returns the rule's limit in a policy; ok is false if there is none.
func (r Rule) Limit(p Policy) (limit int, ok bool) {
	if r.limit == nil || *r.limit(&p) == nil {
		return 0, false
	}
	return **r.limit(&p), true
}

// Says returns the rule's word in a policy, deny or allow; "" if the rule has none.
func (r Rule) Says(p Policy) string {
	if r.word == nil {
		return ""
	}
	return *r.word(&p)
}

// Setting returns what a policy can set for the rule, in words; "" if it has no setting.
func (r Rule) Setting() string {
	switch {
	case r.limit != nil:
		return "a limit, 1 or more"
	case r.word != nil:
		return Deny + " or " + Allow
	}
	return ""
}

// Rules returns the policy that guard.policy chooses, with the defaults of the rules that it leaves out.
func (s Spec) Rules() Policy {
	p := s.Policies[s.Guard.Policy]
	for _, r := range Rules {
		switch {
		case r.limit != nil && *r.limit(&p) == nil && r.Most > 0:
			*r.limit(&p) = &r.Most
		case r.word != nil && *r.word(&p) == "":
			*r.word(&p) = r.Word
		}
	}
	return p
}

// policyNames returns the names that guard.policy may have.
func (s Spec) policyNames() []string {
	names := slices.Sorted(maps.Keys(s.Policies))
	if _, given := s.Policies[PolicyDefault]; !given {
		names = append([]string{PolicyDefault}, names...)
	}
	return names
}

func (p Policy) check(key string, add func(key, text, want string)) {
	for _, r := range Rules {
		if limit, ok := r.Limit(p); ok && limit < 1 {
			add(join(key, r.Name), fmt.Sprintf("is %d", limit), "1 or more, or leave it out for the default")
		}
		if word := r.Says(p); word != "" && word != Deny && word != Allow {
			add(join(key, r.Name), "is "+Show(word), r.Setting())
		}
	}
}
