package govern

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

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
	Binary  bool   // by content
	Size    int64  // in bytes, of what is there afterwards
	Escapes bool   // a symbolic link that leaves the tree
	Why     string // what git can't take: a nested repository, a FIFO
}

// Change is what the policies judge.
type Change struct {
	Files      []Diff
	Lines      int      // added and taken away
	TotalFiles int      // that the loop has touched with this change, where a rule asks (L5)
	TotalLines int      // by which the work would differ from the base, where a rule asks
	Secrets    []Secret // in added lines
	Unread     bool     // there is more than what was searched for secrets
}

// Verdict is what the policies say of a change: no violation and nothing to ask means that it may
// be committed.
type Verdict struct {
	Violations []act.Violation // what blocks first; capped
	Asks       []string        // new files that need approval (newFiles: ask), as they are
}

// The rules, by the name that a violation carries.
const (
	RuleSealed        = "sealed"
	RuleSecrets       = "secrets"
	RulePermission    = "permission" // of the role that made the change (E1)
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

// blocking are the rules whose violation stops any loop for a person; the others do so in Deliver
// and cost an Improve loop its iteration (order of judgement).
var blocking = []string{RuleSealed, RuleSecrets, RulePermission}

// maxViolations is how many violations are listed; one is enough to reject a change.
const maxViolations = 20

// Judge holds a change against the policy that the contract chose, before any command of the spec
// runs on it. Sealed wins over scope. Every rule that is broken is named, with file and line where
// it has one; what blocks comes first. Paths are shown by quote.
func Judge(s spec.Spec, sealed []loop.Seal, c Change, quote func(string) string) Verdict {
	j := judge{spec: s, rules: s.Rules(), quote: quote, seals: map[string]bool{}}
	for _, seal := range sealed {
		j.seals[seal.Path] = true
	}
	for _, f := range c.Files {
		j.file(f)
	}
	j.radius(c)
	j.secrets(c)
	slices.SortStableFunc(j.Violations, func(a, b act.Violation) int { return cmp.Compare(order(a), order(b)) })
	if len(j.Violations) > maxViolations {
		j.Violations = j.Violations[:maxViolations]
	}
	return j.Verdict
}

func order(v act.Violation) int {
	if v.Blocks {
		return slices.Index(blocking, v.Rule)
	}
	return len(blocking)
}

type judge struct {
	spec  spec.Spec
	rules spec.Policy
	seals map[string]bool // by quoted path
	quote func(string) string
	Verdict
}

func (j *judge) broken(rule, path string, line int, format string, args ...any) {
	if path != "" {
		path = j.quote(path)
	}
	j.Violations = append(j.Violations, act.Violation{
		Policy: j.spec.Guard.Policy, Rule: rule, Path: path, Line: line, Detail: fmt.Sprintf(format, args...),
		Blocks: slices.Contains(blocking, rule),
	})
}

// file judges one path.
func (j *judge) file(f Diff) {
	switch {
	case j.seals[j.quote(f.Path)] || spec.MatchAny(j.spec.Protect, f.Path):
		j.broken(RuleSealed, f.Path, 0, "it judges the work and may not change")
		return
	case path.Base(f.Path) == ".gitattributes" && j.above(path.Dir(f.Path)):
		j.broken(RuleSealed, f.Path, 0, "it decides how sealed files are checked out")
		return
	case f.Why != "" && f.Path != "." && j.above(f.Path):
		j.broken(RuleSealed, f.Path, 0, "sealed files are below it, and it is now %s", f.Why)
		return
	case f.Why != "":
		j.broken(RuleFileType, f.Path, 0, "%s", f.Why)
		return
	}
	if !j.spec.Match(f.Path) {
		j.broken(RuleScope, f.Path, 0, "outside the scope")
	}
	switch {
	case !f.Added || j.spec.NewFiles == spec.Allow:
	case j.spec.NewFiles == spec.Ask:
		j.Asks = append(j.Asks, f.Path)
	default:
		j.broken(RuleNewFiles, f.Path, 0, "new files need approval (newFiles: %s)", j.spec.NewFiles)
	}
	if f.Escapes {
		j.broken(RuleSymlink, f.Path, 0, "a link that leads out of the tree")
	}
	if f.Deleted {
		return
	}
	if f.Binary && j.rules.Binary == spec.Deny {
		j.broken(RuleBinary, f.Path, 0, "a binary file, which nobody can review")
	}
	if most := *j.rules.MaxFileBytes; f.Size > most {
		j.broken(RuleMaxFileBytes, f.Path, 0, "%d bytes; a file may have %d", f.Size, most)
	}
}

// above reports whether a sealed file is below the folder.
func (j *judge) above(dir string) bool {
	if dir == "." {
		return len(j.seals) > 0
	}
	inside := strings.TrimSuffix(strings.TrimPrefix(j.quote(dir), `"`), `"`) + "/" // quoted byte by byte
	for seal := range j.seals {
		if strings.HasPrefix(strings.TrimPrefix(seal, `"`), inside) {
			return true
		}
	}
	return false
}

func (j *judge) secrets(c Change) {
	if j.rules.Secrets == spec.Allow {
		return
	}
	for _, s := range c.Secrets {
		j.broken(RuleSecrets, s.Path, s.Line, "it looks like %s", s.Kind)
	}
	// What another rule keeps off the branch anyway need not stop the loop for a person.
	if c.Unread && len(j.Violations) == 0 {
		j.broken(RuleSecrets, "", 0, "the change is too long to be searched for secrets")
	}
}

// radius judges how far a change reaches, by itself and with all that the loop did before (L5).
func (j *judge) radius(c Change) {
	for _, limit := range []struct {
		rule, what string
		is         int
		most       *int
	}{
		{RuleMaxFiles, "files are changed", len(c.Files), j.rules.MaxFiles},
		{RuleMaxLines, "lines are changed", c.Lines, j.rules.MaxLines},
		{RuleMaxTotalFiles, "files are changed by the loop so far", c.TotalFiles, j.rules.MaxTotalFiles},
		{RuleMaxTotalLines, "lines differ from the base by now", c.TotalLines, j.rules.MaxTotalLines},
	} {
		if limit.most == nil {
			continue
		}
		if limit.is > *limit.most {
			j.broken(limit.rule, "", 0, "%d %s; %d may be", limit.is, limit.what, *limit.most)
		}
		if c.Unread && limit.rule == RuleMaxLines {
			j.broken(limit.rule, "", 0, "the change is too long for its lines to be counted; %d may be", *limit.most)
		}
	}
}
