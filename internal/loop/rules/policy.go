package rules

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"pawl/internal/lib/list"
	"pawl/internal/lib/secretscan"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
)

// Diff is one changed path as the policies see it. A rename is a deletion and an addition.
type Diff struct {
	Path    string
	Added   bool  // it is not in the parent
	Deleted bool  // it is not in the change
	Binary  bool  // by content
	Size    int64 // in bytes, after the change
	Escapes bool  // a symbolic link that leaves the tree
	Link    bool  // a symbolic link
	// Executable says that its mode lets it be run, Script that it begins with #!.
	Executable, Script bool
	Why                string   // why git can't record it: a nested repository, a FIFO
	Own                bool     // it is not in the base commit: the loop itself added it
	Lines              []string // the directives that the change adds to, takes away or changes, of those that a seal has
}

// Change is what the policies judge.
type Change struct {
	Files      []Diff
	Lines      int                 // added and removed
	TotalFiles int                 // that the loop has touched, including this change, if a rule needs it (L5)
	TotalLines int                 // by which the work would differ from the base, if a rule needs it
	Secrets    []secretscan.Secret // in added lines
	Unread     bool                // the change is longer than the part that was searched for secrets
}

// Verdict is the policies' judgement of a change, which may be committed if there is neither violation nor question.
type Verdict struct {
	Violations []api.Violation // blocking violations first; capped
	Asks       []string        // new files that need approval (newFiles: ask), unquoted, the Runnable first
	Runnable   int             // how many of Asks a command could run
}

// maxViolations is how many violations are listed; one is enough to reject a change.
const maxViolations = 20

// Judge judges a change by the policy in the contract, before any command of the spec runs on it. The rules are those
// of spec.Rules. Sealed wins over scope. Every broken rule is named, with file and line if it has one; blocking
// violations come first. quote is how paths are shown.
func Judge(s spec.Spec, sealed []loop.Seal, c Change, quote func(string) string) Verdict {
	j := judge{spec: s, rules: s.Rules(), quote: quote, seals: map[string]string{}}
	for _, seal := range sealed {
		switch seal.Names {
		case "":
			j.seals[seal.Path] = seal.By
		case loop.SealThere, loop.SealNew, loop.SealAll, loop.SealLines:
			j.groups = append(j.groups, seal)
		}
	}
	for _, f := range c.Files {
		j.file(f)
	}
	j.Asks, j.Runnable = nearestFirst(j.asks)
	j.radius(c)
	j.secrets(c)
	slices.SortStableFunc(j.Violations, func(a, b api.Violation) int { return cmp.Compare(order(a), order(b)) })
	if len(j.Violations) > maxViolations {
		j.Violations = j.Violations[:maxViolations]
	}
	return j.Verdict
}

// order puts blocking violations first, in the table's order, and leaves the others as they are.
func order(v api.Violation) int {
	if v.Blocks {
		return index(v.Rule)
	}
	return len(spec.Rules)
}

func index(rule string) int {
	return slices.IndexFunc(spec.Rules, func(r spec.Rule) bool { return r.Name == rule })
}

type judge struct {
	spec   spec.Spec
	rules  spec.Policy
	asks   []Diff
	seals  map[string]string // by quoted path, what runs or reads the file
	groups []loop.Seal       // by a glob
	quote  func(string) string
	Verdict
}

func (j *judge) broken(rule, path string, line int, format string, args ...any) {
	if path != "" {
		path = secretscan.Redact(j.quote(path))
	}
	j.Violations = append(j.Violations, api.Violation{
		Policy: j.spec.Guard.Policy, Rule: rule, Path: path, Line: line, Detail: fmt.Sprintf(format, args...),
		Blocks: spec.Rules[index(rule)].Blocks,
	})
}

// file judges one path.
func (j *judge) file(f Diff) {
	program, sealed := j.seals[j.quote(f.Path)]
	switch {
	case sealed || spec.MatchAny(j.spec.Protect, f.Path):
		j.broken(spec.RuleSealed, f.Path, 0, "it judges the work and may not change%s", j.because(f.Path, program))
		return
	case j.grouped(f) != "":
		j.broken(spec.RuleSealed, f.Path, 0, "%s", j.grouped(f))
		return
	case path.Base(f.Path) == ".gitattributes" && j.above(path.Dir(f.Path)):
		j.broken(spec.RuleSealed, f.Path, 0, "it decides how sealed files are checked out")
		return
	case f.Why != "" && f.Path != "." && j.above(f.Path):
		j.broken(spec.RuleSealed, f.Path, 0, "sealed files are below it, and it is now %s", f.Why)
		return
	case f.Why != "":
		j.broken(spec.RuleFileType, f.Path, 0, "%s", f.Why)
		return
	}
	if !j.spec.Match(f.Path) {
		j.broken(spec.RuleScope, f.Path, 0, "outside the scope")
	}
	switch {
	case !f.Added || j.spec.NewFiles == spec.Allow:
	case j.spec.NewFiles == spec.Ask:
		j.asks = append(j.asks, f)
	default:
		j.broken(spec.RuleNewFiles, f.Path, 0, "new files need approval (newFiles: %s)", j.spec.NewFiles)
	}
	if f.Escapes {
		j.broken(spec.RuleSymlink, f.Path, 0, "a link that leads out of the tree")
	}
	if f.Deleted {
		return
	}
	if f.Binary && j.rules.Binary == spec.Deny {
		j.broken(spec.RuleBinary, f.Path, 0, "a binary file, which nobody can review")
	}
	if limit := int64(*j.rules.MaxFileBytes); f.Size > limit {
		j.broken(spec.RuleMaxFileBytes, f.Path, 0, "%d bytes; the limit is %d", f.Size, limit)
	}
}

// because returns why a file is sealed by its name, "" if that is not known.
func (j *judge) because(file, program string) string {
	if program != "" {
		return " (" + program + " runs or reads it)"
	}
	if i := slices.IndexFunc(j.spec.Protect, func(glob string) bool { return spec.MatchAny([]string{glob}, file) }); i >= 0 {
		return " (protect has " + j.spec.Protect[i] + ")"
	}
	return ""
}

// reader returns which program does something with what a glob seals, or the glob if that is not known.
func reader(g loop.Seal, verb string) string {
	if g.By == "" {
		return g.Path
	}
	return g.By + " " + verb + " it"
}

// grouped returns why a change touches a file that a glob seals, "" if it does not.
func (j *judge) grouped(f Diff) string {
	for _, g := range j.groups {
		added := f.Added && g.OfNewFiles()
		existed := !f.Added && !f.Own && g.OfFiles()
		lines := slices.DeleteFunc(slices.Clone(f.Lines), func(d string) bool { return !slices.Contains(g.Lines, d) })
		switch {
		case !added && !existed && len(lines) == 0:
		case !spec.MatchAny([]string{g.Path}, f.Path) || spec.MatchAny(g.Except, f.Path):
		case added:
			return "a new file of this name would change how the work is judged (" + reader(g, "would run or read") + "); if the loop has to add it, name it in the scope"
		case !existed:
			return "its lines of `" + strings.Join(lines, "`, `") + "` decide how the work is judged (" + reader(g, "reads") + "); if the loop has to change them, name the file in the scope"
		default:
			return "it judges the work and may not change (" + reader(g, "runs or reads") + "); if the loop has to change it, name it in the scope"
		}
	}
	return ""
}

// Based reports whether the judgement of a changed path depends on whether the base commit has it.
func Based(sealed []loop.Seal, path string) bool {
	return slices.ContainsFunc(sealed, func(s loop.Seal) bool {
		return s.Names != "" && s.OfFiles() && spec.MatchAny([]string{s.Path}, path)
	})
}

// Lines returns the directives of which no line may change in a changed file, nil if there are none.
func Lines(sealed []loop.Seal, path string) []string {
	seal, _ := list.First(sealed, func(s loop.Seal) bool { return len(s.Lines) > 0 && spec.MatchAny([]string{s.Path}, path) })
	return seal.Lines
}

// above reports whether a sealed file is below the folder, or may be below it if a glob seals files.
func (j *judge) above(dir string) bool {
	if dir == "." {
		return len(j.seals)+len(j.groups) > 0
	}
	for _, g := range j.groups {
		if fixed, _ := doublestar.SplitPattern(g.Path); g.OfFiles() && (fixed+"/" == dir+"/" || strings.HasPrefix(fixed, dir+"/")) {
			return true
		}
	}
	inside := strings.TrimSuffix(strings.TrimPrefix(j.quote(dir), `"`), `"`) + "/" // quoted byte by byte
	return slices.ContainsFunc(slices.Collect(maps.Keys(j.seals)), func(seal string) bool {
		return strings.HasPrefix(strings.TrimPrefix(seal, `"`), inside)
	})
}

func (j *judge) secrets(c Change) {
	if j.rules.Secrets == spec.Allow {
		return
	}
	for _, s := range c.Secrets {
		if s.Line == 0 {
			j.broken(spec.RuleSecrets, s.Path, 0, "its name looks like it contains %s", s.Kind)
			continue
		}
		j.broken(spec.RuleSecrets, s.Path, s.Line, "it looks like %s", s.Kind)
	}
	// If another rule keeps the change off the branch anyway, this need not stop the loop for a person.
	if c.Unread && len(j.Violations) == 0 {
		j.broken(spec.RuleSecrets, "", 0, "the change is too long to be searched for secrets")
	}
}

// radius judges how large a change is, alone and together with all earlier changes of the loop (L5).
func (j *judge) radius(c Change) {
	reach := map[string]struct {
		is   int
		what string
	}{
		spec.RuleMaxFiles:      {len(c.Files), "files are changed"},
		spec.RuleMaxLines:      {c.Lines, "lines are changed"},
		spec.RuleMaxTotalFiles: {c.TotalFiles, "files are changed by the loop so far"},
		spec.RuleMaxTotalLines: {c.TotalLines, "lines differ from the base by now"},
	}
	for _, rule := range spec.Rules {
		limit, ok := rule.Limit(j.rules)
		if r := reach[rule.Name]; ok && r.is > limit {
			j.broken(rule.Name, "", 0, "%d %s; the limit is %d", r.is, r.what, limit)
		}
		if ok && c.Unread && rule.Name == spec.RuleMaxLines {
			j.broken(rule.Name, "", 0, "the change is too long for its lines to be counted; the limit is %d", limit)
		}
	}
}
