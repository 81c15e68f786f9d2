package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/secretscan"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

func at7(n int) *int { return &n }

func course(p spec.Policy) spec.Spec {
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
		diff   rules.Diff
		rule   string
		blocks bool
	}{
		{"inside the scope", rules.Diff{Path: "src/a.go"}, "", false},
		{"deleted inside the scope", rules.Diff{Path: "src/a.go", Deleted: true}, "", false},
		{"outside the scope", rules.Diff{Path: "README.md"}, "scope", false},
		{"new inside the scope", rules.Diff{Path: "src/new.go", Added: true}, "newFiles", false},
		{"a sealed file", rules.Diff{Path: "src/guard.sh"}, "sealed", true},
		{"a sealed file deleted", rules.Diff{Path: "src/guard.sh", Deleted: true}, "sealed", true},
		{"a new file among the protected", rules.Diff{Path: "src/golden/x", Added: true}, "sealed", true},
		{"attributes beside a sealed file", rules.Diff{Path: "src/eval/.gitattributes", Added: true}, "sealed", true},
		{"attributes above sealed files", rules.Diff{Path: ".gitattributes"}, "sealed", true},
		{"attributes beside no sealed file", rules.Diff{Path: "src/lib/.gitattributes"}, "", false},
		{"a repository around a sealed file", rules.Diff{Path: "src/eval", Why: "a nested git repository"}, "sealed", true},
		{"a repository around no sealed file", rules.Diff{Path: "src/lib", Why: "a nested git repository"}, "fileType", false},
		{"a folder of a name like a sealed file's", rules.Diff{Path: "src/ev", Why: "a FIFO"}, "fileType", false},
		{"the desk is gone", rules.Diff{Path: ".", Why: "it was removed"}, "fileType", false},
		{"a link out of the tree", rules.Diff{Path: "src/a.go", Escapes: true}, "symlink", false},
		{"a FIFO", rules.Diff{Path: "src/pipe", Why: "a FIFO"}, "fileType", false},
		{"a binary file, by default", rules.Diff{Path: "src/a.png", Binary: true}, "", false},
		{"a file of the size that is allowed", rules.Diff{Path: "src/a", Size: 10 << 20}, "", false},
		{"a file that is larger", rules.Diff{Path: "src/a", Size: 10<<20 + 1}, "maxFileBytes", false},
		{"a large file that goes", rules.Diff{Path: "src/a", Size: 10<<20 + 1, Deleted: true}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := rules.Judge(course(spec.Policy{}), sealed, rules.Change{Files: []rules.Diff{c.diff}}, as).Violations
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
		v := rules.Judge(course(spec.Policy{}), sealed, rules.Change{Files: []rules.Diff{{Path: "src/ö/.gitattributes"}}}, func(p string) string {
			return `"` + strings.ReplaceAll(p, "ö", `\303\266`) + `"`
		}).Violations
		require.Equal(t, "sealed", v[0].Rule)
	})
	t.Run("what blocks comes first, and the list is bounded", func(t *testing.T) {
		var diffs []rules.Diff
		for range 100 {
			diffs = append(diffs, rules.Diff{Path: "README.md"})
		}
		v := rules.Judge(course(spec.Policy{}), sealed, rules.Change{
			Files: append(diffs, rules.Diff{Path: "src/guard.sh"}), Secrets: []secretscan.Secret{{Path: "README.md", Line: 3, Kind: "a GitHub token"}},
		}, as).Violations
		require.Equal(t, "sealed", v[0].Rule)
		require.Equal(t, api.Violation{Policy: "strict", Rule: "secrets", Path: "README.md", Line: 3, Detail: "it looks like a GitHub token", Blocks: true}, v[1])
		require.Equal(t, "secrets: README.md:3, it looks like a GitHub token", v[1].String())
		require.Len(t, v, 20)
	})
	t.Run("every rule that a file breaks is named", func(t *testing.T) {
		v := rules.Judge(course(spec.Policy{Binary: spec.Deny}), sealed, rules.Change{Files: []rules.Diff{{Path: "x.png", Added: true, Binary: true, Size: 1 << 30}}}, as).Violations
		require.Equal(t, "scope newFiles binary maxFileBytes", names(v))
	})
}

// TestEveryRuleIsCarriedOut breaks all rules of the table at once.
func TestEveryRuleIsCarriedOut(t *testing.T) {
	one := 1
	p := spec.Policy{Binary: spec.Deny, MaxFileBytes: &one, MaxFiles: &one, MaxLines: &one, MaxTotalFiles: &one, MaxTotalLines: &one}
	broken := map[string]bool{}
	for _, v := range rules.Judge(course(p), sealed, rules.Change{
		Files: []rules.Diff{
			{Path: "src/guard.sh"}, {Path: "README", Added: true, Binary: true, Size: 2, Escapes: true}, {Path: "pipe", Why: "a FIFO"},
		},
		Lines: 2, TotalFiles: 2, TotalLines: 2, Secrets: []secretscan.Secret{{Path: "src/a", Line: 1, Kind: "a token"}},
	}, as).Violations {
		broken[v.Rule] = true
	}
	for _, r := range spec.Rules {
		require.True(t, broken[r.Name], "nothing carries out %s", r.Name)
	}
	require.Len(t, broken, len(spec.Rules))
}

func names(list []api.Violation) string {
	var out []string
	for _, v := range list {
		out = append(out, v.Rule)
	}
	return strings.Join(out, " ")
}

// TestL5_TheChangeRadiusIsJudged judges the change alone, and together with everything that the loop did.
func TestL5_TheChangeRadiusIsJudged(t *testing.T) {
	p := spec.Policy{MaxFiles: at7(2), MaxLines: at7(10), MaxTotalFiles: at7(3), MaxTotalLines: at7(20)}
	two := []rules.Diff{{Path: "src/a"}, {Path: "src/b"}}
	for _, c := range []struct {
		name   string
		policy spec.Policy
		change rules.Change
		rules  string
	}{
		{"as much as may be", p, rules.Change{Files: two, Lines: 10, TotalFiles: 3, TotalLines: 20}, ""},
		{"a file too many", p, rules.Change{Files: append(two, rules.Diff{Path: "src/c"})}, "maxFiles"},
		{"a line too many", p, rules.Change{Files: two, Lines: 11}, "maxLines"},
		{"a file too many by now", p, rules.Change{Files: two, TotalFiles: 4}, "maxTotalFiles"},
		{"a line too many by now", p, rules.Change{Files: two, TotalLines: 21}, "maxTotalLines"},
		{"more than can be read", p, rules.Change{Files: two, Unread: true}, "maxLines"},
		{"more than can be searched", spec.Policy{}, rules.Change{Files: two, Unread: true}, "secrets"},
		{"no limits", spec.Policy{}, rules.Change{Files: two, Lines: 1e6, TotalFiles: 1e6, TotalLines: 1e6}, ""},
		{"secrets are allowed", spec.Policy{Secrets: spec.Allow}, rules.Change{Files: two, Secrets: []secretscan.Secret{{Path: "src/a"}}, Unread: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := rules.Judge(course(c.policy), nil, c.change, as).Violations
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
	s := course(spec.Policy{})
	s.NewFiles = spec.Ask
	v := rules.Judge(s, sealed, rules.Change{Files: []rules.Diff{{Path: "src/a"}, {Path: "src/new", Added: true}, {Path: "src/eval/.gitattributes", Added: true}}}, as)
	require.Equal(t, []string{"src/new"}, v.Asks)
	require.Equal(t, "sealed", names(v.Violations))
}

func TestP3_LinesAreJudgedInFilesThatMayChangeOtherwise(t *testing.T) {
	s := course(spec.Policy{})
	s.Scope, s.NewFiles = []string{"**"}, spec.Allow
	seals := []loop.Seal{{Path: "**/go.mod", Names: loop.SealNew, Lines: []string{"ignore", "replace"}}, {Path: "**/go.work", Names: loop.SealLines, Lines: []string{"use"}, Except: []string{"sub/go.work"}}}
	for _, c := range []struct {
		diff rules.Diff
		says string
	}{
		{rules.Diff{Path: "go.mod"}, ""},
		{rules.Diff{Path: "go.mod", Lines: []string{"use"}}, ""},
		{rules.Diff{Path: "go.mod", Lines: []string{"ignore", "use"}}, "its lines of `ignore` decide how the work is judged (**/go.mod); if the loop has to change them, name the file in the scope"},
		{rules.Diff{Path: "go.mod", Deleted: true, Lines: []string{"replace"}}, "its lines of `replace` decide how the work is judged (**/go.mod); if the loop has to change them, name the file in the scope"},
		{rules.Diff{Path: "a/go.mod", Added: true}, "a new file of this name would change how the work is judged (**/go.mod); if the loop has to add it, name it in the scope"},
		{rules.Diff{Path: "go.work", Lines: []string{"use"}}, "its lines of `use` decide how the work is judged (**/go.work); if the loop has to change them, name the file in the scope"},
		{rules.Diff{Path: "sub/go.work", Lines: []string{"use"}}, ""},
		{rules.Diff{Path: "go.work", Added: true}, ""},
	} {
		said := ""
		if v := rules.Judge(s, seals, rules.Change{Files: []rules.Diff{c.diff}}, as).Violations; len(v) > 0 {
			said = v[0].Detail
		}
		require.Equal(t, c.says, said, "%+v", c.diff)
	}
	require.Equal(t, []string{"use"}, rules.Lines(seals, "a/go.work"))
	require.Empty(t, rules.Lines(seals, "a/go.sum"))
}

func TestP3_ARefusalSaysWhatRunsOrReadsTheFile(t *testing.T) {
	s := course(spec.Policy{})
	s.Scope, s.NewFiles, s.Protect = []string{"**"}, spec.Allow, []string{"docs/**"}
	make, pytest, golang := "make in guard.command", "pytest in test.command", "go in test.command"
	seals := []loop.Seal{
		{Path: "Makefile", By: make}, {Path: "GNUmakefile", Names: loop.SealNew, By: make}, {Path: "**/conftest.py", Names: loop.SealThere, By: pytest},
		{Path: "**/go.mod", Names: loop.SealLines, Lines: []string{"replace"}, By: golang}, {Path: "hidden.sh", Untold: true},
	}
	for diff, says := range map[*rules.Diff]string{
		{Path: "Makefile"}:                           "it judges the work and may not change (make in guard.command runs or reads it)",
		{Path: "GNUmakefile", Added: true}:           "a new file of this name would change how the work is judged (make in guard.command would run or read it); if the loop has to add it, name it in the scope",
		{Path: "a/conftest.py"}:                      "it judges the work and may not change (pytest in test.command runs or reads it); if the loop has to change it, name it in the scope",
		{Path: "go.mod", Lines: []string{"replace"}}: "its lines of `replace` decide how the work is judged (go in test.command reads it); if the loop has to change them, name the file in the scope",
		{Path: "docs/a.md"}:                          "it judges the work and may not change (protect has docs/**)",
		{Path: "hidden.sh"}:                          "it judges the work and may not change",
	} {
		v := rules.Judge(s, seals, rules.Change{Files: []rules.Diff{*diff}}, as).Violations
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
		diff rules.Diff
		want string
	}{
		"a test of the base":                  {rules.Diff{Path: "tests/a.py"}, "tests/a.py"},
		"a test of the base that is gone":     {rules.Diff{Path: "tests/a.py", Deleted: true}, "tests/a.py"},
		"a new test":                          {rules.Diff{Path: "tests/b.py", Added: true, Own: true}, ""},
		"a test that the loop has added":      {rules.Diff{Path: "tests/b.py", Own: true}, ""},
		"new settings":                        {rules.Diff{Path: "x/conftest.py", Added: true, Own: true}, "x/conftest.py"},
		"settings of the base":                {rules.Diff{Path: "x/conftest.py"}, "x/conftest.py"},
		"settings that the scope names":       {rules.Diff{Path: "spec/conftest.py", Added: true}, ""},
		"a new go.mod":                        {rules.Diff{Path: "x/go.mod", Added: true}, "x/go.mod"},
		"the go.mod of the base":              {rules.Diff{Path: "go.mod"}, ""},
		"attributes of tests":                 {rules.Diff{Path: "tests/.gitattributes", Added: true}, "tests/.gitattributes"},
		"attributes of something else":        {rules.Diff{Path: "src/.gitattributes", Added: true}, ""},
		"a new file of a glob of old ones":    {rules.Diff{Path: "tests/c.py", Added: true}, ""},
		"a nested repository where tests are": {rules.Diff{Path: "tests", Why: "a nested repository"}, "tests"},
		"something else":                      {rules.Diff{Path: "src/x.py"}, ""},
	} {
		s := spec.Spec{Scope: []string{"**"}, NewFiles: spec.Allow}
		v := rules.Judge(s, seals, rules.Change{Files: []rules.Diff{c.diff}}, func(p string) string { return p })
		got := ""
		for _, violation := range v.Violations {
			require.Equal(t, spec.RuleSealed, violation.Rule, name)
			require.True(t, violation.Blocks, name)
			got = violation.Path
		}
		require.Equal(t, c.want, got, name)
	}
	require.True(t, rules.Based(seals, "tests/x"))
	require.False(t, rules.Based(seals, "go.mod"), "nothing has to be looked up for it")
}
