package activities_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec"
	"pawl/internal/workspace"
)

// TestSetupRunsAgainWhereItHasToAndSaysWhy: what judge.keep names may change in the judge, another lockfile
// means other dependencies, and a tree that lost what setup made is made anew.
func TestSetupRunsAgainWhereItHasToAndSaysWhy(t *testing.T) {
	at := func(user string) (key, address string) { return "path", user }
	l := begunWith(t, spec.Allow, at, `, "setup": {"command": "mkdir -p deps/cache && cat work/* >deps/all && date >deps/cache/when"}, "judge": {"keep": ["deps/cache/**"]}`)
	judge := workspace.Judge(l.a.Home, l.o.Ref)
	times := func(tree string) int {
		var was struct{ Times int }
		text, err := os.ReadFile(filepath.Join(workspace.Steps(l.a.Home, l.o.Ref), "setup-"+tree, "setup.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &was))
		return was.Times
	}
	restore := func(head string, want int, told string) {
		t.Helper()
		said, err := l.a.RestoreJudge(ctx, l.o.Ref, head)
		require.NoError(t, err)
		require.Equal(t, want, times("judge"), said)
		if told == "" {
			require.Empty(t, said)
		}
		require.Contains(t, said, told)
	}
	restore(l.head, 1, "")
	for n := range 5 { // iterations whose tests leave something behind
		write(t, judge+"/deps/cache/when", fmt.Sprint(n))
		write(t, fmt.Sprint(judge, "/deps/cache/new", n), "x")
		write(t, judge+"/deps/junk", "x")
		restore(l.head, 1, "")
		require.NoFileExists(t, judge+"/deps/junk")
	}
	write(t, judge+"/deps/all", "poison")
	restore(l.head, 2, "setup.command ran again in the judge: deps/all, which setup made, was changed or removed")

	base := l.head
	l.begin()
	write(t, l.o.Desk+"/work/requirements.txt", "other==2\n")
	require.NotEmpty(t, l.commit("").Commit)
	restore(l.head, 3, "setup.command ran again in the judge: another work/requirements.txt")
	require.Equal(t, "a\nb\nother==2\n", string(must(os.ReadFile(judge+"/deps/all"))))
	restore(base, 4, "another work/requirements.txt")
	require.Equal(t, "a\nb\n", string(must(os.ReadFile(judge+"/deps/all"))))
	l.a.Stop()
	restore(base, 4, "")
}
