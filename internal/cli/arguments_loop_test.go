package cli_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/git/userrepo"
	"pawl/test/harness/gittest"
)

// inRepository makes the loop of the fake one of the repository in which the command is typed.
func (b *bench) inRepository(t *testing.T, others ...string) {
	t.Helper()
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "-q", "-b", "main")
	t.Chdir(dir)
	root, err := userrepo.Root(t.Context(), ".")
	require.NoError(t, err)
	b.temporal.repo, b.temporal.others = root, others
}

func TestACommandWithoutAnIDIsAboutThisFoldersLoop(t *testing.T) {
	for args, sent := range map[string]string{
		"show":                              "",
		"log":                               "",
		"pause":                             "loop-1 pause",
		"halt":                              "loop-1 halt",
		"approve --hash " + testHash:        "loop-1 approve",
		"steer --note more":                 "loop-1 steer",
		"reject":                            "loop-1 reject",
		"mode answer":                       "loop-1 setMode",
		"approve loop-1 --hash " + testHash: "loop-1 approve",
	} {
		t.Run(args, func(t *testing.T) {
			b := newBench(t, waiting())
			b.inRepository(t)
			require.Equal(t, 0, b.run(nil, strings.Fields(args)...), b.stderr.String())
			named := strings.Contains(args, "loop-1")
			require.Equal(t, !named, strings.Contains(b.stderr.String(), "loop-1, this folder's only"), b.stderr.String())
			if _, name, ok := strings.Cut(sent, " "); ok {
				require.Len(t, b.temporal.taken(), 1)
				require.Equal(t, name, b.temporal.taken()[0].name)
			}
		})
	}
}

// Of several loops the latest is meant, but nothing is sent to it that can't be undone.
func TestOfSeveralLoopsTheLatestIsMeantUnlessItWouldEnd(t *testing.T) {
	b := newBench(t, waiting())
	b.inRepository(t, "loop-0")
	require.Equal(t, 0, b.run(nil, "pause"), b.stderr.String())
	require.Contains(t, b.stderr.String(), "loop-1, the latest of this folder's 2 unfinished loops")

	for _, args := range []string{"halt", "reject", "mode answer", "answer yes"} {
		b := newBench(t, waiting())
		b.inRepository(t, "loop-0")
		require.Equal(t, 2, b.run(nil, strings.Fields(args)...), args)
		require.Contains(t, b.stderr.String(), "this can't be undone, and there are loop-1, loop-0", args)
		require.Empty(t, b.temporal.taken(), args)
	}
}

func TestHaltWithoutAnIDAsksAtATerminal(t *testing.T) {
	for typed, taken := range map[string]int{"y\n": 1, "n\n": 0, "\n": 0} {
		b := newBench(t, waiting())
		b.inRepository(t)
		b.atTerminal()
		b.run(strings.NewReader(typed), "halt")
		require.Contains(t, b.stderr.String(), "End loop-1 for good?")
		require.Len(t, b.temporal.taken(), taken, typed)
	}
}

func TestALoopOfAnotherRepositoryIsNotMeant(t *testing.T) {
	b := newBench(t, waiting())
	b.inRepository(t)
	b.temporal.repo = "/elsewhere"
	require.Equal(t, 2, b.run(nil, "pause"))
	require.Contains(t, b.stderr.String(), "this folder's repository has no unfinished loop")
	require.Empty(t, b.temporal.taken())
}

func TestALoopIsFoundBeforeItHasOpenedAndByTheURLOfARemote(t *testing.T) {
	const url = "https://example.com/team/shop"
	for name, c := range map[string]struct{ repo, address string }{
		"it opens": {}, "it works on a URL": {url, url}, "it opens a URL": {"", url},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, waiting())
			b.inRepository(t)
			gittest.Git(t, b.temporal.repo, "remote", "add", "origin", "git@example.com:team/shop.git")
			b.temporal.repo, b.temporal.address = c.repo, cmp.Or(c.address, b.temporal.repo)
			require.Equal(t, 0, b.run(nil, "pause"), b.stderr.String())
			require.Contains(t, b.stderr.String(), "loop-1, this folder's only unfinished loop")
			require.Equal(t, 0, b.run(nil, "list", "--here"), b.stderr.String())
			require.Contains(t, b.stdout.String(), "loop-1")
		})
	}
}
