package govern

import (
	"fmt"

	"pawl/internal/act"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// Diff is one changed path as the policies see it. Renames count as what they are: a deletion
// and an addition, each judged by itself.
type Diff struct {
	Path    string
	Added   bool   // it is not in the parent
	Deleted bool   // it is not in the change
	Escapes bool   // a symbolic link that leaves the tree
	Why     string // what git can't take: a nested repository, a FIFO
}

// The rules of the default policy, by the name that a violation carries.
const (
	RuleSealed   = "sealed"
	RuleScope    = "scope"
	RuleNewFiles = "newFiles"
	RuleSymlink  = "symlink"
	RuleFileType = "fileType"
)

// maxViolations is how many violations are listed; one is enough to reject a change.
const maxViolations = 20

// Judge holds a change against the policies of the contract, before any command of the spec
// runs on it. Sealed wins over scope. The violations that block come first; path is shown by
// quote. No violation means that the change may be committed.
func Judge(s spec.Spec, sealed []loop.Seal, changes []Diff, quote func(string) string) []act.Violation {
	seals := map[string]bool{}
	for _, seal := range sealed {
		seals[seal.Path] = true
	}
	var blocking, others []act.Violation
	for _, c := range changes {
		v := act.Violation{Path: quote(c.Path)}
		switch {
		case seals[quote(c.Path)] || spec.MatchAny(s.Protect, c.Path):
			v.Rule, v.Detail, v.Blocks = RuleSealed, "it judges the work and may not change", true
			blocking = append(blocking, v)
			continue
		case c.Why != "":
			v.Rule, v.Detail = RuleFileType, c.Why
		case !s.Match(c.Path):
			v.Rule, v.Detail = RuleScope, "outside the scope"
		case c.Added && s.NewFiles != spec.Allow:
			v.Rule, v.Detail = RuleNewFiles, fmt.Sprintf("new files need approval (newFiles: %s)", s.NewFiles)
		case c.Escapes:
			v.Rule, v.Detail = RuleSymlink, "a link that leads out of the tree"
		default:
			continue
		}
		others = append(others, v)
	}
	all := append(blocking, others...)
	if len(all) > maxViolations {
		all = all[:maxViolations]
	}
	return all
}
