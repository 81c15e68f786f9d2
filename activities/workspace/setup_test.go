package workspace_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/home/hostrecord"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// TestSetupRunsAgainWhereItHasToAndSaysWhy: what judge.keep names may change in the judge. Another lockfile means
// other dependencies. A tree that lost what setup made is made again.
func TestSetupRunsAgainWhereItHasToAndSaysWhy(t *testing.T) {
	l := actest.BeginWith(t, spec.Allow, func(_ string, doc map[string]any) {
		doc["setup"] = map[string]any{"command": "mkdir -p deps/cache && cat work/* >deps/all && date >deps/cache/when"}
		doc["judge"] = map[string]any{"keep": []any{"deps/cache/**"}}
	})
	judge := hostrecord.Record{Ref: l.Opened.Ref, Short: hostrecord.ShortName(l.Home, l.Opened.Ref)}.Judge(l.Home)
	times := func(tree string) int {
		var was struct{ Times int }
		text, err := os.ReadFile(filepath.Join(hostrecord.Steps(l.Home, l.Opened.Ref), "setup-"+tree, "setup.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &was))
		return was.Times
	}
	restore := func(head string, want int, told string) {
		t.Helper()
		said, err := restoreJudge(l, head)
		require.NoError(t, err)
		require.Equal(t, want, times("judge"), said)
		if told == "" {
			require.Empty(t, said)
		}
		require.Contains(t, said, told)
	}
	restore(l.Head, 1, "")
	for n := range 5 { // iterations whose tests leave something behind
		gittest.Write(t, judge+"/deps/cache/when", fmt.Sprint(n))
		gittest.Write(t, fmt.Sprint(judge, "/deps/cache/new", n), "x")
		gittest.Write(t, judge+"/deps/junk", "x")
		restore(l.Head, 1, "")
		require.NoFileExists(t, judge+"/deps/junk")
	}
	gittest.Write(t, judge+"/deps/all", "poison")
	restore(l.Head, 2, "setup.command ran again in the judge: deps/all, which setup made, was changed or removed")

	base := l.Head
	l.Iterate()
	gittest.Write(t, l.Opened.Desk+"/work/requirements.txt", "other==2\n")
	require.NotEmpty(t, l.CommitDesk("").Commit)
	restore(l.Head, 3, "setup.command ran again in the judge: another work/requirements.txt")
	require.Equal(t, "a\nb\nother==2\n", gittest.Read(t, judge+"/deps/all"))
	restore(base, 4, "another work/requirements.txt")
	require.Equal(t, "a\nb\n", gittest.Read(t, judge+"/deps/all"))
	l.Stop()
	restore(base, 4, "")
}

// restoreJudge brings the judge of a loop to head, and returns what the next step would report about setup.
func restoreJudge(l *actest.Loop, head string) (told string, err error) {
	ws, err := l.Workspace(l.Context(), l.Opened.Ref)
	if err != nil {
		return "", err
	}
	defer ws.Leave(ws.Judge)
	err = ws.Restore(l.Context(), ws.Judge, head)
	return ws.RepeatedSince(), err
}

// TestASetupThatFailsSaysSo: the workflow runs it again, in a fresh tree.
func TestASetupThatFailsSaysSo(t *testing.T) {
	once := filepath.Join(t.TempDir(), "once")
	l := actest.BeginWith(t, spec.Allow, func(_ string, doc map[string]any) {
		doc["setup"] = map[string]any{"command": "touch half; echo missing: left-pad; seq 1000; test -e " + once}
	})
	_, err := restoreJudge(l, l.Head)
	f := wire.Decode(err)
	require.NotNil(t, f, "%v", err)
	require.Equal(t, fault.Setup, f.Step)
	require.Contains(t, f.What, "missing: left-pad", "some programs say first what is wrong")
	require.Contains(t, f.What, "1000", "others last")
	record := hostrecord.Record{Ref: l.Opened.Ref, Short: hostrecord.ShortName(l.Home, l.Opened.Ref)}
	require.NoDirExists(t, record.Judge(l.Home))

	gittest.Write(t, once, "")
	_, err = restoreJudge(l, l.Head)
	require.NoError(t, err)
}
