package repository_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// A7: pawl does not change the user's branch. It proposes what is kept, on a branch of its own.
func TestA7_UserWorksOnWhileTheLoopRuns(t *testing.T) {
	w := world.New(t, world.WaitsFor("go"))
	c := w.Start("run", "--json", "--yes", w.SpecFile())
	w.At(1)
	w.Write("repo/work/n", "50\n")
	w.Commit("meanwhile")
	w.Write("repo/work/n", "51\n")
	w.Write("repo/untracked", "")
	w.Before = w.Snapshot()
	w.Write("go", "")
	s := c.Wait()
	require.Equal(t, 0, s.Code, s.Err)
	require.Equal(t, "11", w.Kept("work/n"), "the loop works on what was there when it began")
	require.Equal(t, "50", w.Git("show", "main:work/n"))
}

// A loop's branch that is checked out can't be pushed to. pawl says so, and nothing is lost.
func TestPushThatIsRefused(t *testing.T) {
	world.Slow(t, "TestAHookOfTheRemoteHasTheLastWord refuses pushes")
	w := world.New(t, world.WaitsFor("go-$PAWL_ITERATION")).Set(doc{"limits": doc{"iterations": 2}})
	c := w.Start("run", "--yes", w.SpecFile())
	w.At(1)
	w.Write("go-1", "")
	w.At(2)
	w.Until("the first keep is pushed, which nobody waits for", func() bool { return w.Kept("work/n") == "11" })
	w.Git("checkout", "--quiet", "pawl/"+w.Loop)
	w.Before = w.Snapshot()
	w.Write("go-2", "")
	s := c.Wait()
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Err, "a push was refused")
	require.Contains(t, s.Err, "checked out")
	require.Equal(t, "11", w.Kept("work/n"))
	require.Equal(t, "12", w.Show().Best.String())
	w.Git("checkout", "--quiet", "main")
	w.Before = w.Snapshot()
	fetches(w, s)
	require.Equal(t, "12", w.Kept("work/n"))
}

// fetches gets a loop's branch and ledger into the repository with the command in the report.
func fetches(w *world.World, s world.Said) {
	w.T.Helper()
	require.Contains(w.T, s.Out, "not there")
	command := regexp.MustCompile(`git -C .* fetch .*`).FindString(s.Out)
	require.NotEmpty(w.T, command, s.Out)
	w.Shell(command)
	require.NoError(w.T, os.RemoveAll(filepath.Join(w.Repo, ".git", "FETCH_HEAD")))
	require.NotEmpty(w.T, w.Results(w.Loop))
}

// If the user moves or removes the loop's branch, the report leads to pawl's own repository, during the loop and after it.
func TestTheReportLeadsToTheLoopsWork(t *testing.T) {
	world.Slow(t, "TestA7_UserWorksOnWhileTheLoopRuns reads a report")
	w := world.New(t, world.WaitsFor("go"))
	c := w.Start("run", "--yes", w.SpecFile())
	w.At(1)
	w.Git("branch", "--force", "pawl/"+w.Loop, w.Git("commit-tree", "-m", "mine", "-p", "main", "main^{tree}"))
	w.Write("go", "")
	report := func(out string) {
		t.Helper()
		require.Contains(t, out, "Kept changes:\n  ", out)
		for _, command := range regexp.MustCompile(`git -C .* (show|log|diff) .*`).FindAllString(out, -1) {
			w.Shell(command)
			require.NotContains(t, command, w.Repo, "its branch is another's")
		}
	}
	ended := c.Wait()
	require.Contains(t, ended.Out, "somebody has moved the branch pawl/"+w.Loop+" there: rename it")
	require.NotContains(t, ended.Out, "The loop continues")
	report(ended.Out)
	report(w.Pawl("report", w.Loop).Out)

	w.Shell(regexp.MustCompile(`git -C \S+ branch -m \S+ [^)\s]+`).FindString(ended.Out))
	gone := w.Pawl("report", w.Loop)
	require.Contains(t, gone.Out, "there is no branch pawl/"+w.Loop)
	report(gone.Out)
	fetches(w, gone)
	require.NotContains(t, w.Pawl("report", w.Loop).Out, "not there")
}

// The repository disappears during the loop. The loop still ends, and its ledger can be read.
func TestRepositoryThatGoesAway(t *testing.T) {
	w := world.New(t, world.WaitsFor("go"))
	c := w.Start("run", "--yes", w.SpecFile())
	w.At(1)
	require.NoError(t, os.Rename(w.Repo, w.Repo+".away"))
	w.Write("go", "")
	s := c.Wait()
	require.NoError(t, os.Rename(w.Repo+".away", w.Repo))
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Err, "a push was refused")
	require.Equal(t, "11", w.Show().Best.String())
	fetches(w, s)
	require.Equal(t, "11", w.Kept("work/n"))
}

func TestTwoLoopsInOneRepositoryAtOnce(t *testing.T) {
	world.Slow(t, "TestTwoLoopsOfOneName starts two")
	w := world.New(t, `touch "$WORLD/at-$PAWL_LOOP"; until [ -e "$WORLD/go" ]; do sleep 0.05; done; `+world.Raises)
	delete(w.Spec, "name")
	file := w.SpecFile()
	one := w.Start("run", "--json", "--yes", "--id", w.Loop+"-one", file)
	two := w.Start("run", "--json", "--yes", "--id", w.Loop+"-two T02:00:00Z", file)
	same := w.Start("run", "--json", "--yes", "--id", w.Loop+"-two-T02:00:00Z", file)
	w.Until("all are at work", func() bool {
		return w.Exists("at-"+w.Loop+"-one") && w.Exists("at-"+w.Loop+"-two T02:00:00Z") && w.Exists("at-"+w.Loop+"-two-T02:00:00Z")
	})
	w.Write("go", "")
	for _, c := range []*world.Command{one, two, same} {
		s := c.Wait()
		require.Equal(t, 0, s.Code, s.Err)
	}
	for _, name := range []string{"-one", "-two-T02-00-00Z", "-two-T02-00-00Z.2"} {
		require.Equal(t, "11", w.Git("show", "refs/heads/pawl/"+w.Loop+name+":work/n"))
		require.Len(t, w.Results(w.Loop+name), 2)
	}
}
