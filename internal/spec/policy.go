package spec

import (
	"fmt"
	"maps"
	"slices"
)

// Policy is a named rule set that every change is held against before any command of the spec
// runs on it. Scope, new files and sealed files are rules of every policy and stand in the spec
// itself; these are the others. A limit that is nil does not hold.
type Policy struct {
	MaxFiles      *int   `json:"maxFiles,omitempty"`      // files in one change; a rename is two
	MaxLines      *int   `json:"maxLines,omitempty"`      // lines added and taken away in one change
	MaxTotalFiles *int   `json:"maxTotalFiles,omitempty"` // files that all changes of the loop touch, undone ones too (L5)
	MaxTotalLines *int   `json:"maxTotalLines,omitempty"` // lines by which the work differs from the base
	MaxFileBytes  *int64 `json:"maxFileBytes,omitempty"`  // size of each file that is added or changed
	Secrets       string `json:"secrets,omitempty"`       // deny or allow, in added lines
	Binary        string `json:"binary,omitempty"`        // deny or allow, by content
}

// DefaultMaxFileBytes is the one limit of the policy that holds where the spec names none.
const DefaultMaxFileBytes = 10 << 20

// Rules returns the policy that guard.policy chooses, with every rule that it leaves out as the
// policy `default` has it: secrets denied, binary files allowed, no file larger than
// DefaultMaxFileBytes, no limit on files and lines.
func (s Spec) Rules() Policy {
	p := s.Policies[s.Guard.Policy]
	if p.Secrets == "" {
		p.Secrets = Deny
	}
	if p.Binary == "" {
		p.Binary = Allow
	}
	if p.MaxFileBytes == nil {
		size := int64(DefaultMaxFileBytes)
		p.MaxFileBytes = &size
	}
	return p
}

// policyNames are the names that guard.policy may have.
func (s Spec) policyNames() []string {
	names := slices.Sorted(maps.Keys(s.Policies))
	if _, given := s.Policies[PolicyDefault]; !given {
		names = append([]string{PolicyDefault}, names...)
	}
	return names
}

// check adds what is wrong with the policy's values.
func (p Policy) check(key string, add func(key, what, want string)) {
	for _, limit := range []struct {
		name  string
		value *int
	}{{"maxFiles", p.MaxFiles}, {"maxLines", p.MaxLines}, {"maxTotalFiles", p.MaxTotalFiles}, {"maxTotalLines", p.MaxTotalLines}} {
		if limit.value != nil && *limit.value < 1 {
			add(join(key, limit.name), fmt.Sprintf("is %d", *limit.value), "1 or more, or leave it out for no limit")
		}
	}
	if p.MaxFileBytes != nil && *p.MaxFileBytes < 1 {
		add(join(key, "maxFileBytes"), fmt.Sprintf("is %d", *p.MaxFileBytes), "1 or more, in bytes")
	}
	for _, word := range [][2]string{{"secrets", p.Secrets}, {"binary", p.Binary}} {
		if word[1] != "" && word[1] != Deny && word[1] != Allow {
			add(join(key, word[0]), "is "+show(word[1]), "deny or allow")
		}
	}
}
