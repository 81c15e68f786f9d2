package git_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/test/gittest"
)

func TestRefNameIsAlwaysARef(t *testing.T) {
	for _, c := range []struct{ loop, want string }{
		{"tests", "tests"}, {"tests.2", "tests.2"}, {"nightly-2026-11-20T02:00:00Z", "nightly-2026-11-20T02-00-00Z"},
		{"a/b", "a-b"}, {".hidden", "-hidden"}, {"a..b", "a-.b"}, {"end.", "end-"}, {"x.lock", "x-lock"}, {"", "loop"}, {"@", "loop"},
		{"x@{1}", "x@-1}"}, {"sp ace~^:?*[\\", "sp-ace-------"}, {"-x", "-x"}, {"ü", "ü"}, {"\xff", "-"}, {"\x00\n\x7f", "---"},
	} {
		assert.Equal(t, c.want, git.RefName(c.loop), "%q", c.loop)
	}
	names := append([]string{strings.Repeat("long ", 100), strings.Repeat("é", 300), strings.Repeat(".", 300), "...lock", "a.lock.lock"}, gittest.WeirdNames...)
	for _, loop := range names {
		name := git.RefName(loop)
		assert.NotContains(t, name, "/")
		assert.LessOrEqual(t, len(name), 200)
		assert.NoError(t, exec.Command("git", "check-ref-format", "refs/heads/pawl/"+name).Run(), "%q became %q", loop, name)
	}
	assert.NotEqual(t, git.RefName(strings.Repeat("x", 300)), git.RefName(strings.Repeat("x", 301)), "long names stay different")
}

func FuzzRefName(f *testing.F) {
	for _, n := range gittest.WeirdNames {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, loop string) {
		name := git.RefName(loop)
		require.NoError(t, git.CheckRef("refs/heads/pawl/"+name), "%q became %q", loop, name)
	})
}

// CheckRef must agree with git: otherwise something that is not a ref reaches a command line.
func TestOnlyWhatGitTakesForARefPasses(t *testing.T) {
	for _, n := range append([]string{"a/b", "a//b", "a/", "/a", "a/.b", "a.lock/b", "a@{b", "a..b", "b."}, gittest.WeirdNames...) {
		ref := "refs/heads/" + n
		theirs := exec.Command("git", "check-ref-format", ref).Run() == nil
		ours := git.CheckRef(ref) == nil
		if ours {
			assert.True(t, theirs, "%q", ref)
		}
		if theirs && n != "\x01\x1b[31mred\x7f" {
			assert.True(t, ours, "%q", ref)
		}
	}
	for _, ref := range []string{"HEAD", "", "-x", "heads/x", "refs/", "refs/x\x00y"} {
		assert.Error(t, git.CheckRef(ref), "%q", ref)
	}
}

func TestQuoteIsGitsOwn(t *testing.T) {
	dir, _ := gittest.UserRepo(t, nil)
	for _, n := range gittest.WeirdNames {
		gittest.Write(t, filepath.Join(dir, "d", n), "x")
	}
	gittest.Git(t, dir, "add", "-A")
	shown := map[string]bool{}
	for _, line := range strings.Split(gittest.Git(t, dir, "ls-files"), "\n") {
		shown[line] = true
	}
	require.Len(t, shown, len(gittest.WeirdNames))
	for _, n := range gittest.WeirdNames {
		assert.True(t, shown[git.Quote("d/"+n)], "%q is shown as %s", n, git.Quote("d/"+n))
	}
}
