package repository_test

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// web serves the world's folder by HTTP to anybody with the password, and returns the URL.
func web(w *world.World) string {
	w.T.Helper()
	core := w.Git("--exec-path")
	backend := &cgi.Handler{
		Path: filepath.Join(core, "git-http-backend"), InheritEnv: []string{"PATH"},
		Env: []string{"GIT_PROJECT_ROOT=" + w.Dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=ann", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + w.Dir},
	}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "hush" {
			rw.Header().Set("WWW-Authenticate", `Basic realm="project"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(rw, r)
	}))
	w.T.Cleanup(s.Close)
	return s.URL
}

func TestP0_ARepositoryByItsURL(t *testing.T) {
	for name, serve := range map[string]func(*world.World) string{
		"file":   func(w *world.World) string { return "file://" + w.Dir },
		"daemon": func(w *world.World) string { return w.Daemon("--enable=receive-pack") },
		"web, with a credential helper": func(w *world.World) string {
			url := web(w)
			w.Write("user/.git-credentials", strings.Replace(url, "://", "://ann:hush@", 1)+"\n")
			w.Configures("[credential]\nhelper = store\n")
			return url
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "file" {
				world.Slow(t, "the same over another protocol")
			}
			t.Parallel()
			w := world.Alone(t, world.Raises)
			w.Shares()
			url := serve(w) + "/project.git"
			w.Spec["repo"] = doc{"url": url}
			r := w.Run(0)
			require.Equal(t, "pawl/"+w.Loop, r.Result.Branch)
			require.Equal(t, "11", w.Has("refs/heads/pawl/"+w.Loop, "work/n"))
			require.Equal(t, "10", w.Has("refs/heads/main", "work/n"))
			require.Equal(t, []string{"0 yes baseline", "1 yes raise the number"}, w.RowsThere())
			require.Equal(t, "Ann <ann@example.com>", w.There("log", "-1", "--format=%an <%ae>", "refs/heads/pawl/"+w.Loop))
			_, said := w.Events()
			require.NotContains(t, said.Out, "push_refused")
			require.NotContains(t, said.Out, "hush")
			require.Empty(t, w.PawlRefs(), "the working copy has nothing to do with it")

			w.Done("approve", w.Loop, "--hash", r.Result.Proposal.Hash)
			w.Done("apply", w.Loop)
			require.Equal(t, "11", w.Has("refs/heads/main", "work/n"))
			require.Equal(t, w.There("rev-parse", "refs/heads/pawl/"+w.Loop+"^{tree}"), w.There("rev-parse", "main^{tree}"))
			require.Equal(t, "raise the number", w.There("log", "-1", "--format=%s", "main"))
			require.Contains(t, w.Done("show", w.Loop).Out, "applied to main")
			w.Done("apply", w.Loop) // a second apply changes nothing
		})
	}
}

func TestP0_AURLThatCannotBeWorkedWith(t *testing.T) {
	for _, c := range world.Sample(2, []struct {
		name  string
		serve func(*world.World) string
		says  []string
	}{
		{"credentials that nobody has", func(w *world.World) string { return web(w) + "/project.git" }, []string{"PRECONDITION_FAILED", "wants credentials", "credential helper"}},
		{"a wrong password", func(w *world.World) string {
			url := web(w)
			w.Configures("[url \"" + strings.Replace(url, "://", "://ann:sesame@", 1) + "\"]\ninsteadOf = " + url + "\n")
			return url + "/project.git"
		}, []string{"PRECONDITION_FAILED", "wants credentials"}},
		{"a password in the URL", func(w *world.World) string { return "http://ann:sesame@127.0.0.1:1/project.git" }, []string{"INVALID_SPEC", "repo.url", "credential helper"}},
		{"nobody there", func(w *world.World) string { return "http://" + world.FreeAddress(w.T) + "/project.git" }, []string{"PRECONDITION_FAILED", "can't be reached"}},
		{"no such repository", func(w *world.World) string { return "file://" + w.Dir + "/nothing.git" }, []string{"PRECONDITION_FAILED", "is no repository"}},
		{"one that takes no push", func(w *world.World) string { return w.Daemon() + "/project.git" }, []string{"PRECONDITION_FAILED", "may not push"}},
		{"one without a commit", func(w *world.World) string {
			w.Git("init", "--quiet", "--bare", filepath.Join(w.Dir, "empty.git"))
			return "file://" + w.Dir + "/empty.git"
		}, []string{"PRECONDITION_FAILED", "no commit yet"}},
		{"a branch in the way", func(w *world.World) string {
			w.There("branch", "pawl", "main")
			return "file://" + w.Dir + "/project.git"
		}, []string{"PRECONDITION_FAILED", "the branch pawl is in the way"}},
		{"no such base", func(w *world.World) string {
			w.Set(doc{"repo": doc{"base": "release"}})
			return "file://" + w.Dir + "/project.git"
		}, []string{"PRECONDITION_FAILED", "there is no branch release"}},
	}) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := world.Alone(t, world.Raises)
			w.Shares()
			url := c.serve(w)
			w.Set(doc{"repo": doc{"url": url}})
			for _, command := range [][]string{{"validate", w.SpecFile()}, {"run", "--yes", w.SpecFile()}} {
				s := w.Pawl(command...)
				require.Equal(t, 2, s.Code, s.Err)
				for _, text := range c.says {
					require.Contains(t, s.Err, text)
				}
				require.NotContains(t, s.Out+s.Err, "sesame")
				world.Plain(t, s.Err)
			}
			require.NotContains(t, world.ReadFile(filepath.Join(w.Home, "logs", "pawl.log")), "sesame")
		})
	}
}

// TestAHookOfTheRemoteHasTheLastWord lets the remote refuse the loop's branch and the move of the user's branch. The
// loop continues and says so once, and the remote has its ledger.
func TestAHookOfTheRemoteHasTheLastWord(t *testing.T) {
	world.Slow(t, "internal/git/userrepo has pushes that are refused")
	w := world.New(t, world.Raises).Set(doc{"limits": doc{"iterations": 3}})
	bare := w.Shares()
	hook := filepath.Join(bare, "hooks", "update")
	require.NoError(t, os.WriteFile(hook, []byte("#!/bin/sh\ncase $1 in refs/heads/*) echo POLICY: ask Ann, ticket $$; exit 1;; esac\n"), 0o755))
	r := w.Run(0)
	require.Len(t, w.RowsThere(), 4)
	require.Equal(t, "refs/heads/main", w.There("for-each-ref", "--format=%(refname)", "refs/heads"))
	_, said := w.Events()
	require.Equal(t, 1, strings.Count(said.Out, `"push_refused"`), "it is told once")
	require.Contains(t, said.Out, "it says: POLICY: ask Ann")

	w.Done("approve", w.Loop, "--hash", r.Result.Proposal.Hash)
	s := w.Refused("PRECONDITION_FAILED", "apply", w.Loop)
	require.Contains(t, s.Err, "does not take the branch main")
	require.Contains(t, s.Err, "it says: POLICY: ask Ann")
	require.Equal(t, "10", w.Has("main", "work/n"))
	require.NoError(t, os.Remove(hook))
	w.Done("apply", w.Loop)
	require.Equal(t, "13", w.Has("main", "work/n"))
	require.Equal(t, "13", w.Has("refs/heads/pawl/"+w.Loop, "work/n"))
}

// TestARemoteThatGoesAwayInTheMiddle has a remote that is away for an iteration. When it is back, it gets what happened
// meanwhile.
func TestARemoteThatGoesAwayInTheMiddle(t *testing.T) {
	world.Slow(t, "TestAHookOfTheRemoteHasTheLastWord refuses pushes")
	w := world.New(t, `[ $PAWL_ITERATION = 2 ] && mv "$WORLD/project.git" "$WORLD/away"
		[ $PAWL_ITERATION = 3 ] && mv "$WORLD/away" "$WORLD/project.git"
		`+world.Raises).Set(doc{"limits": doc{"iterations": 3}, "sandbox": doc{"use": "off"}})
	w.Shares()
	w.Run(0)
	require.Equal(t, []string{"0 yes baseline", "1 yes raise the number", "2 yes raise the number", "3 yes raise the number"}, w.RowsThere())
	require.Equal(t, "13", w.Has("refs/heads/pawl/"+w.Loop, "work/n"))
	_, said := w.Events()
	require.Equal(t, 1, strings.Count(said.Out, `"push_refused"`), said.Out)
}

// TestABaseThatMovesInTheRemote expects a new proposal, which nobody has approved.
func TestABaseThatMovesInTheRemote(t *testing.T) {
	world.Slow(t, "TestA7_ABaseThatConflictsIsForAPerson moves it here")
	w := world.New(t, world.Raises)
	bare := w.Shares()
	r := w.Run(0)
	w.Done("approve", w.Loop, "--hash", r.Result.Proposal.Hash)
	clone := filepath.Join(w.Dir, "clone")
	w.Git("clone", "--quiet", bare, clone)
	w.Write("clone/more", "more\n")
	w.Git("-C", clone, "add", "more")
	w.Git("-C", clone, "commit", "--quiet", "-m", "more")
	w.Git("-C", clone, "push", "--quiet", "origin", "main")
	w.Refused("BASE_MOVED", "apply", w.Loop)
	require.Equal(t, "10", w.Has("main", "work/n"))
	w.Done("approve", w.Loop, "--hash", w.Proposal().Hash)
	w.Done("apply", w.Loop, "--how", "merge")
	require.Equal(t, []string{"11", "more"}, []string{w.Has("main", "work/n"), w.Has("main", "more")})
	require.Equal(t, "more", w.Has("refs/heads/pawl/"+w.Loop, "more"))
}

// TestTwoHostsCannotGoOnWithOneLoop has two hosts that know nothing of each other and share not even a Temporal. The
// second resumes the loop from the ledger in the repository. The first, which was only slow, can't record anything
// more.
func TestTwoHostsCannotGoOnWithOneLoop(t *testing.T) {
	world.Slow(t, "workflows move loops between hosts")
	t.Parallel()
	w := world.Alone(t, world.Raises).Set(doc{"limits": doc{"iterations": 3}, "approvals": doc{"plan": "auto"}, "breakpoints": []string{"verify"}})
	w.Shares()
	one, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up1"))
	require.NoError(t, err)
	defer func() { require.NoError(t, one.Stop()) }()
	w.Done("start", w.SpecFile())
	w.Waits("paused")
	w.Done("continue", w.Loop)
	w.Until("the second breakpoint is in the ledger", func() bool {
		var st world.State
		world.Decode(t, w.Has("refs/pawl-ledger/"+w.Loop, "state.json"), &st)
		return st.Status == "paused" && st.Iteration == 2 && st.Gate != nil
	})
	ledger := w.There("rev-parse", "refs/pawl-ledger/"+w.Loop)
	w.Until("every append is there", func() bool { return w.Show().Ledger == ledger })

	first, second := w.Home, filepath.Join(w.Dir, "home2")
	two, err := world.StartUp(second, filepath.Join(w.Dir, "up2"))
	require.NoError(t, err)
	defer func() { require.NoError(t, two.Stop()) }()
	w.Home = second
	w.Done("start", w.SpecFile(), "--ledger", ledger)
	w.Until("the second iteration waits where it was", func() bool { return w.Pawl("continue", w.Loop).Code == 0 })
	w.Until("the third iteration's breakpoint", func() bool { st := w.Show(); return st.Status == "paused" && st.Iteration == 3 })

	w.Home = first
	w.Done("continue", w.Loop)
	st := w.Waits("failed")
	require.Equal(t, "LEDGER_AHEAD", st.ErrorCode)

	w.Home = second
	w.Done("continue", w.Loop)
	w.Waits("completed")
	require.Equal(t, []string{"0 yes baseline", "1 yes raise the number", "2 yes raise the number", "3 yes raise the number"}, w.RowsThere())
	require.Equal(t, "13", w.Has("refs/heads/pawl/"+w.Loop, "work/n"))

	// What people say about the proposal counts on both hosts.
	hash := w.Proposal().Hash
	w.Done("approve", w.Loop, "--hash", hash)
	w.Home = first
	w.Done("apply", w.Loop, "--hash", hash)
	require.Equal(t, "13", w.Has("main", "work/n"))
	w.Home = second
	require.Contains(t, w.Done("apply", w.Loop).Out, "main")
}

// TestALoopMovesToAnotherHost has two hosts with the same Temporal. The loop's host dies. A person ends the workflow
// and starts the loop from its ledger, and the other host resumes it.
func TestALoopMovesToAnotherHost(t *testing.T) {
	c := world.NewCluster(t)
	w := world.Alone(t, `echo "$PAWL_ITERATION" >>"$WORLD/at"; [ $PAWL_ITERATION = 2 ] && until [ -e "$WORLD/go" ]; do sleep 0.05; done; `+world.Raises).
		Set(doc{"limits": doc{"iterations": 3}}).Auto().On(c)
	w.Shares()
	w.Begin()
	w.At(2)
	require.NoError(t, c.Worker.Stop(syscall.SIGKILL))
	ledger := w.There("rev-parse", "refs/pawl-ledger/"+w.Loop)

	other := c.Another(t)
	require.NoError(t, other.StartWorker(c.Address))
	w.Temporal("workflow", "terminate", "--workflow-id", w.Loop, "--reason", "the host is gone")
	w.Write("go", "")

	w.Write("from.json", `{"ledger":"`+ledger+`"}`)
	w.Set(doc{"goal": "something else"})
	w.Temporal("workflow", "start", "--type", "Improve", "--task-queue", "pawl", "--workflow-id", w.Loop, "--input-file", w.JSONFile(), "--input-file", filepath.Join(w.Dir, "from.json"))
	require.Contains(t, w.Fails().Message, "not the one of the contract")
	w.Set(doc{"goal": "climb"})
	require.Equal(t, 0, w.Starter("start", w.SpecFile(), "--ledger", ledger).Code)
	st := w.Stands("completed")
	require.Equal(t, []string{"0 yes baseline", "1 yes raise the number", "2 yes raise the number", "3 yes raise the number"}, w.RowsThere())
	require.Equal(t, "13", w.Has("refs/heads/pawl/"+w.Loop, "work/n"))
	require.Equal(t, st.Head, w.There("rev-parse", "refs/heads/pawl/"+w.Loop))

	over := w.There("rev-parse", "refs/pawl-ledger/"+w.Loop)
	require.Equal(t, 0, w.Starter("start", w.SpecFile(), "--ledger", over).Code)
	require.Contains(t, w.Fails().Message, "has ended")
	require.Equal(t, 2, w.Starter("start", w.SpecFile(), "--ledger", "HEAD").Code)

	before := w.There("for-each-ref")
	require.Contains(t, before, over)
	require.NoError(t, c.StartWorker(c.Address))
	w.Until("the first host has given its trees up", func() bool {
		_, err := os.Stat(filepath.Join(c.Home, "loops", w.Loop, "desk"))
		return err != nil
	})
	require.Equal(t, before, w.There("for-each-ref"))
	require.NoError(t, other.Worker.Stop(syscall.SIGINT))
}
