package git_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/git"
	"pawl/test/harness/gittest"
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

// TestQuoteIsGitsOwn, but for what can't be seen: that is escaped, whatever git does.
func TestQuoteIsGitsOwn(t *testing.T) {
	dir, _ := gittest.UserRepo(t, nil)
	for _, n := range gittest.WeirdNames {
		gittest.Write(t, filepath.Join(dir, "d", n), "x")
	}
	gittest.Git(t, dir, "add", "-A")
	escapes := strings.Split(gittest.Git(t, dir, "-c", "core.quotePath=true", "ls-files"), "\n")
	shows := strings.Split(gittest.Git(t, dir, "-c", "core.quotePath=false", "ls-files"), "\n")
	names := strings.Split(strings.TrimRight(gittest.Git(t, dir, "ls-files", "-z"), "\x00"), "\x00")
	require.Len(t, names, len(gittest.WeirdNames))
	for i, name := range names {
		want := shows[i]
		if !utf8.ValidString(name) || strings.Contains(name, "\u202e") {
			want = escapes[i]
		}
		assert.Equal(t, want, git.Quote(name), "%q", name)
		assert.Equal(t, want, git.Requoted(escapes[i]), "%q in a contract of an older version", name)
		assert.Equal(t, want, git.Requoted(want), "%q", name)
	}
	for name, want := range map[string]string{
		"src/grün.txt": "src/grün.txt", "日本/🦊": "日本/🦊", "gru\u0308n": "gru\u0308n", "ü\"": `"ü\""`,
		"a\u00a0b": `"a\302\240b"`, "a\u200bb": `"a\342\200\213b"`, "\ufffd": `"\357\277\275"`, "ü\xff": `"ü\377"`,
	} {
		assert.Equal(t, want, git.Quote(name))
	}
}
