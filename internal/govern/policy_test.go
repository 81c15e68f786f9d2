package govern_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/act"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/secret"
	"pawl/internal/spec"
)

func at7(n int) *int { return &n }

func rules(p spec.Policy) spec.Spec {
	return spec.Spec{
		Scope: []string{"src/**"}, NewFiles: spec.Deny, Protect: []string{"src/golden/**"},
		Guard: spec.Guard{Policy: "strict"}, Policies: map[string]spec.Policy{"strict": p},
	}
}

var sealed = []loop.Seal{{Path: "src/guard.sh"}, {Path: "src/eval/score.sh"}, {Path: `"src/\303\266/x"`}}

func as(p string) string { return p }

func TestP3_PoliciesJudgeTheDiff(t *testing.T) {
	for _, c := range []struct {
		name   string
		diff   govern.Diff
		rule   string
		blocks bool
	}{
		{"inside the scope", govern.Diff{Path: "src/a.go"}, "", false},
		{"deleted inside the scope", govern.Diff{Path: "src/a.go", Deleted: true}, "", false},
		{"outside the scope", govern.Diff{Path: "README.md"}, "scope", false},
		{"new inside the scope", govern.Diff{Path: "src/new.go", Added: true}, "newFiles", false},
		{"a sealed file", govern.Diff{Path: "src/guard.sh"}, "sealed", true},
		{"a sealed file deleted", govern.Diff{Path: "src/guard.sh", Deleted: true}, "sealed", true},
		{"a new file among the protected", govern.Diff{Path: "src/golden/x", Added: true}, "sealed", true},
		{"attributes beside a sealed file", govern.Diff{Path: "src/eval/.gitattributes", Added: true}, "sealed", true},
		{"attributes above sealed files", govern.Diff{Path: ".gitattributes"}, "sealed", true},
		{"attributes beside no sealed file", govern.Diff{Path: "src/lib/.gitattributes"}, "", false},
		{"a repository around a sealed file", govern.Diff{Path: "src/eval", Why: "a nested git repository"}, "sealed", true},
		{"a repository around no sealed file", govern.Diff{Path: "src/lib", Why: "a nested git repository"}, "fileType", false},
		{"a folder of a name like a sealed file's", govern.Diff{Path: "src/ev", Why: "a FIFO"}, "fileType", false},
		{"the desk is gone", govern.Diff{Path: ".", Why: "it was removed"}, "fileType", false},
		{"a link out of the tree", govern.Diff{Path: "src/a.go", Escapes: true}, "symlink", false},
		{"a FIFO", govern.Diff{Path: "src/pipe", Why: "a FIFO"}, "fileType", false},
		{"a binary file, by default", govern.Diff{Path: "src/a.png", Binary: true}, "", false},
		{"a file of the size that is allowed", govern.Diff{Path: "src/a", Size: 10 << 20}, "", false},
		{"a file that is larger", govern.Diff{Path: "src/a", Size: 10<<20 + 1}, "maxFileBytes", false},
		{"a large file that goes", govern.Diff{Path: "src/a", Size: 10<<20 + 1, Deleted: true}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := govern.Judge(rules(spec.Policy{}), sealed, govern.Change{Files: []govern.Diff{c.diff}}, as).Violations
			if c.rule == "" {
				require.Empty(t, v)
				return
			}
			require.Equal(t, []string{"strict", c.rule, c.diff.Path}, []string{v[0].Policy, v[0].Rule, v[0].Path})
			require.Equal(t, c.blocks, v[0].Blocks)
			require.NotEmpty(t, v[0].Detail)
		})
	}
	t.Run("a name that git quotes", func(t *testing.T) {
		v := govern.Judge(rules(spec.Policy{}), sealed, govern.Change{Files: []govern.Diff{{Path: "src/ö/.gitattributes"}}}, func(p string) string {
			return `"` + strings.ReplaceAll(p, "ö", `\303\266`) + `"`
		}).Violations
		require.Equal(t, "sealed", v[0].Rule)
	})
	t.Run("what blocks comes first, and the list is bounded", func(t *testing.T) {
		var diffs []govern.Diff
		for range 100 {
			diffs = append(diffs, govern.Diff{Path: "README.md"})
		}
		v := govern.Judge(rules(spec.Policy{}), sealed, govern.Change{
			Files: append(diffs, govern.Diff{Path: "src/guard.sh"}), Secrets: []secret.Secret{{Path: "README.md", Line: 3, Kind: "a GitHub token"}},
		}, as).Violations
		require.Equal(t, "sealed", v[0].Rule)
		require.Equal(t, act.Violation{Policy: "strict", Rule: "secrets", Path: "README.md", Line: 3, Detail: "it looks like a GitHub token", Blocks: true}, v[1])
		require.Equal(t, "secrets: README.md:3, it looks like a GitHub token", v[1].String())
		require.Len(t, v, 20)
	})
	t.Run("every rule that a file breaks is named", func(t *testing.T) {
		v := govern.Judge(rules(spec.Policy{Binary: spec.Deny}), sealed, govern.Change{Files: []govern.Diff{{Path: "x.png", Added: true, Binary: true, Size: 1 << 30}}}, as).Violations
		require.Equal(t, "scope newFiles binary maxFileBytes", names(v))
	})
}

// TestEveryRuleIsCarriedOut breaks all rules of the table at once.
func TestEveryRuleIsCarriedOut(t *testing.T) {
	one := 1
	p := spec.Policy{Binary: spec.Deny, MaxFileBytes: &one, MaxFiles: &one, MaxLines: &one, MaxTotalFiles: &one, MaxTotalLines: &one}
	broken := map[string]bool{}
	for _, v := range govern.Judge(rules(p), sealed, govern.Change{
		Files: []govern.Diff{
			{Path: "src/guard.sh"}, {Path: "README", Added: true, Binary: true, Size: 2, Escapes: true}, {Path: "pipe", Why: "a FIFO"},
		},
		Lines: 2, TotalFiles: 2, TotalLines: 2, Secrets: []secret.Secret{{Path: "src/a", Line: 1, Kind: "a token"}},
	}, as).Violations {
		broken[v.Rule] = true
	}
	for _, r := range spec.Rules {
		require.True(t, broken[r.Name], "nothing carries out %s", r.Name)
	}
	require.Len(t, broken, len(spec.Rules))
}

func names(list []act.Violation) string {
	var out []string
	for _, v := range list {
		out = append(out, v.Rule)
	}
	return strings.Join(out, " ")
}

// TestL5_TheChangeRadiusIsJudged judges the change alone, and together with everything that the loop did.
func TestL5_TheChangeRadiusIsJudged(t *testing.T) {
	p := spec.Policy{MaxFiles: at7(2), MaxLines: at7(10), MaxTotalFiles: at7(3), MaxTotalLines: at7(20)}
	two := []govern.Diff{{Path: "src/a"}, {Path: "src/b"}}
	for _, c := range []struct {
		name   string
		policy spec.Policy
		change govern.Change
		rules  string
	}{
		{"as much as may be", p, govern.Change{Files: two, Lines: 10, TotalFiles: 3, TotalLines: 20}, ""},
		{"a file too many", p, govern.Change{Files: append(two, govern.Diff{Path: "src/c"})}, "maxFiles"},
		{"a line too many", p, govern.Change{Files: two, Lines: 11}, "maxLines"},
		{"a file too many by now", p, govern.Change{Files: two, TotalFiles: 4}, "maxTotalFiles"},
		{"a line too many by now", p, govern.Change{Files: two, TotalLines: 21}, "maxTotalLines"},
		{"more than can be read", p, govern.Change{Files: two, Unread: true}, "maxLines"},
		{"more than can be searched", spec.Policy{}, govern.Change{Files: two, Unread: true}, "secrets"},
		{"no limits", spec.Policy{}, govern.Change{Files: two, Lines: 1e6, TotalFiles: 1e6, TotalLines: 1e6}, ""},
		{"secrets are allowed", spec.Policy{Secrets: spec.Allow}, govern.Change{Files: two, Secrets: []secret.Secret{{Path: "src/a"}}, Unread: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := govern.Judge(rules(c.policy), nil, c.change, as).Violations
			require.Equal(t, c.rules, names(v))
			for _, broken := range v {
				require.Equal(t, broken.Rule == "secrets", broken.Blocks)
				require.Empty(t, broken.Path)
				require.Contains(t, broken.String(), "the change")
			}
		})
	}
}

func TestA7_NewFilesAreAskedForWhereTheSpecSaysSo(t *testing.T) {
	s := rules(spec.Policy{})
	s.NewFiles = spec.Ask
	v := govern.Judge(s, sealed, govern.Change{Files: []govern.Diff{{Path: "src/a"}, {Path: "src/new", Added: true}, {Path: "src/eval/.gitattributes", Added: true}}}, as)
	require.Equal(t, []string{"src/new"}, v.Asks)
	require.Equal(t, "sealed", names(v.Violations))
}

func TestP3_LinesAreJudgedInFilesThatMayChangeOtherwise(t *testing.T) {
	s := rules(spec.Policy{})
	s.Scope, s.NewFiles = []string{"**"}, spec.Allow
	seals := []loop.Seal{{Path: "**/go.mod", Names: loop.SealNew, Lines: []string{"ignore", "replace"}}, {Path: "**/go.work", Names: loop.SealLines, Lines: []string{"use"}, Except: []string{"sub/go.work"}}}
	for _, c := range []struct {
		diff govern.Diff
		says string
	}{
		{govern.Diff{Path: "go.mod"}, ""},
		{govern.Diff{Path: "go.mod", Lines: []string{"use"}}, ""},
		{govern.Diff{Path: "go.mod", Lines: []string{"ignore", "use"}}, "its lines of `ignore` decide how the work is judged (**/go.mod); if the loop has to change them, name the file in the scope"},
		{govern.Diff{Path: "go.mod", Deleted: true, Lines: []string{"replace"}}, "its lines of `replace` decide how the work is judged (**/go.mod); if the loop has to change them, name the file in the scope"},
		{govern.Diff{Path: "a/go.mod", Added: true}, "a new file of this name would change how the work is judged (**/go.mod); if the loop has to add it, name it in the scope"},
		{govern.Diff{Path: "go.work", Lines: []string{"use"}}, "its lines of `use` decide how the work is judged (**/go.work); if the loop has to change them, name the file in the scope"},
		{govern.Diff{Path: "sub/go.work", Lines: []string{"use"}}, ""},
		{govern.Diff{Path: "go.work", Added: true}, ""},
	} {
		said := ""
		if v := govern.Judge(s, seals, govern.Change{Files: []govern.Diff{c.diff}}, as).Violations; len(v) > 0 {
			said = v[0].Detail
		}
		require.Equal(t, c.says, said, "%+v", c.diff)
	}
	require.Equal(t, []string{"use"}, govern.Lines(seals, "a/go.work"))
	require.Empty(t, govern.Lines(seals, "a/go.sum"))
}

func TestP3_ARefusalSaysWhatRunsOrReadsTheFile(t *testing.T) {
	s := rules(spec.Policy{})
	s.Scope, s.NewFiles, s.Protect = []string{"**"}, spec.Allow, []string{"docs/**"}
	make, pytest, golang := "make in guard.command", "pytest in test.command", "go in test.command"
	seals := []loop.Seal{
		{Path: "Makefile", By: make}, {Path: "GNUmakefile", Names: loop.SealNew, By: make}, {Path: "**/conftest.py", Names: loop.SealThere, By: pytest},
		{Path: "**/go.mod", Names: loop.SealLines, Lines: []string{"replace"}, By: golang}, {Path: "hidden.sh", Untold: true},
	}
	for diff, says := range map[*govern.Diff]string{
		{Path: "Makefile"}:                           "it judges the work and may not change (make in guard.command runs or reads it)",
		{Path: "GNUmakefile", Added: true}:           "a new file of this name would change how the work is judged (make in guard.command would run or read it); if the loop has to add it, name it in the scope",
		{Path: "a/conftest.py"}:                      "it judges the work and may not change (pytest in test.command runs or reads it); if the loop has to change it, name it in the scope",
		{Path: "go.mod", Lines: []string{"replace"}}: "its lines of `replace` decide how the work is judged (go in test.command reads it); if the loop has to change them, name the file in the scope",
		{Path: "docs/a.md"}:                          "it judges the work and may not change (protect has docs/**)",
		{Path: "hidden.sh"}:                          "it judges the work and may not change",
	} {
		v := govern.Judge(s, seals, govern.Change{Files: []govern.Diff{*diff}}, as).Violations
		require.NotEmpty(t, v, diff.Path)
		require.Equal(t, says, v[0].Detail)
		require.Equal(t, diff.Path, v[0].Path)
	}
}

func TestP3_GroupsAreJudgedByWhatTheBaseHas(t *testing.T) {
	open := []string{"spec/**"}
	seals := []loop.Seal{
		{Path: "tests/**", Names: loop.SealThere, Except: open}, {Path: "**/conftest.py", Names: loop.SealAll, Except: open}, {Path: "**/go.mod", Names: loop.SealNew, Except: open},
		{Path: "/opt/measure", Names: loop.SealOutside},
	}
	for name, c := range map[string]struct {
		diff govern.Diff
		want string
	}{
		"a test of the base":                  {govern.Diff{Path: "tests/a.py"}, "tests/a.py"},
		"a test of the base that is gone":     {govern.Diff{Path: "tests/a.py", Deleted: true}, "tests/a.py"},
		"a new test":                          {govern.Diff{Path: "tests/b.py", Added: true, Own: true}, ""},
		"a test that the loop has added":      {govern.Diff{Path: "tests/b.py", Own: true}, ""},
		"new settings":                        {govern.Diff{Path: "x/conftest.py", Added: true, Own: true}, "x/conftest.py"},
		"settings of the base":                {govern.Diff{Path: "x/conftest.py"}, "x/conftest.py"},
		"settings that the scope names":       {govern.Diff{Path: "spec/conftest.py", Added: true}, ""},
		"a new go.mod":                        {govern.Diff{Path: "x/go.mod", Added: true}, "x/go.mod"},
		"the go.mod of the base":              {govern.Diff{Path: "go.mod"}, ""},
		"attributes of tests":                 {govern.Diff{Path: "tests/.gitattributes", Added: true}, "tests/.gitattributes"},
		"attributes of something else":        {govern.Diff{Path: "src/.gitattributes", Added: true}, ""},
		"a new file of a glob of old ones":    {govern.Diff{Path: "tests/c.py", Added: true}, ""},
		"a nested repository where tests are": {govern.Diff{Path: "tests", Why: "a nested repository"}, "tests"},
		"something else":                      {govern.Diff{Path: "src/x.py"}, ""},
	} {
		s := spec.Spec{Scope: []string{"**"}, NewFiles: spec.Allow}
		v := govern.Judge(s, seals, govern.Change{Files: []govern.Diff{c.diff}}, func(p string) string { return p })
		got := ""
		for _, violation := range v.Violations {
			require.Equal(t, spec.RuleSealed, violation.Rule, name)
			require.True(t, violation.Blocks, name)
			got = violation.Path
		}
		require.Equal(t, c.want, got, name)
	}
	require.True(t, govern.Based(seals, "tests/x"))
	require.False(t, govern.Based(seals, "go.mod"), "nothing has to be looked up for it")
}
