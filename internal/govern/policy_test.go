package govern_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

func TestP3_PoliciesJudgeTheDiff(t *testing.T) {
	s := spec.Spec{Scope: []string{"src/**"}, NewFiles: spec.Deny, Protect: []string{"src/golden/**"}}
	sealed := []loop.Seal{{Path: "src/guard.sh"}}
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
		{"a link out of the tree", govern.Diff{Path: "src/a.go", Escapes: true}, "symlink", false},
		{"a FIFO", govern.Diff{Path: "src/pipe", Why: "a FIFO"}, "fileType", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := govern.Judge(s, sealed, []govern.Diff{c.diff}, func(p string) string { return p })
			if c.rule == "" {
				require.Empty(t, v)
				return
			}
			require.Equal(t, c.rule, v[0].Rule)
			require.Equal(t, c.blocks, v[0].Blocks)
		})
	}
	t.Run("what blocks comes first, and the list is bounded", func(t *testing.T) {
		var diffs []govern.Diff
		for range 100 {
			diffs = append(diffs, govern.Diff{Path: "README.md"})
		}
		v := govern.Judge(s, sealed, append(diffs, govern.Diff{Path: "src/guard.sh"}), func(p string) string { return p })
		require.Equal(t, "sealed", v[0].Rule)
		require.Len(t, v, 20)
	})
}
