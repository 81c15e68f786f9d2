package test

import (
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The repository of these tests is a bare one beside the world's, which is reached by a URL alone.

// shares puts what the world's repository has into a bare one, and has the loop work for that.
func (w *world) shares() string {
	w.t.Helper()
	bare := filepath.Join(w.dir, "project.git")
	w.git("clone", "--quiet", "--bare", w.repo, bare)
	w.configures("[user]\nname = Ann\nemail = ann@example.com\n")
	w.spec["repo"] = doc{"url": "file://" + bare}
	return bare
}

// configures adds to the user's git configuration: the worker's, and that of the test itself.
func (w *world) configures(text string) {
	w.t.Helper()
	for _, file := range []string{"user/.gitconfig", ".gitconfig"} {
		w.write(file, w.read(file)+text)
	}
}

// there runs git in the shared repository.
func (w *world) there(args ...string) string {
	w.t.Helper()
	return w.git(append([]string{"--git-dir", filepath.Join(w.dir, "project.git")}, args...)...)
}

// has returns what a file is at a ref of the shared repository.
func (w *world) has(ref, name string) string {
	w.t.Helper()
	return w.there("show", ref+":"+name)
}

// rowsThere are the descriptions of the loop's results in the shared repository.
func (w *world) rowsThere() (rows []string) {
	w.t.Helper()
	for _, line := range strings.Split(w.has("refs/pawl-ledger/"+w.loop, "loop-results.tsv"), "\n") {
		f := strings.Split(line, "\t")
		rows = append(rows, f[0]+" "+f[4]+" "+f[5])
	}
	return rows
}

// daemon serves the world's folder by git's own protocol and returns the URL of its repositories.
func (w *world) daemon(options ...string) string {
	w.t.Helper()
	core := w.git("--exec-path")
	if _, err := os.Stat(filepath.Join(core, "git-daemon")); err != nil {
		if os.Getenv("PAWL_TEST_ALL") != "" {
			w.t.Fatal(err)
		}
		w.t.Skip("there is no git daemon: ", err)
	}
	address := freeAddress(w.t)
	host, port, _ := net.SplitHostPort(address)
	// Not `git daemon`, which would leave the daemon behind.
	cmd := exec.Command(filepath.Join(core, "git-daemon"), append(options, "--reuseaddr", "--export-all", "--listen="+host, "--port="+port, "--base-path="+w.dir, w.dir)...)
	cmd.Env = environ(w.home, w.dir)
	tieToParent(cmd)
	require.NoError(w.t, cmd.Start())
	w.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	w.until("git serves", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "git://" + address
}

// web serves the world's folder by HTTP to whoever has the password, and returns the URL.
func (w *world) web() string {
	w.t.Helper()
	core := w.git("--exec-path")
	backend := &cgi.Handler{
		Path: filepath.Join(core, "git-http-backend"), InheritEnv: []string{"PATH"},
		Env: []string{"GIT_PROJECT_ROOT=" + w.dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=ann", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + w.dir},
	}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "hush" {
			rw.Header().Set("WWW-Authenticate", `Basic realm="project"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(s.Close)
	return s.URL
}

func TestP0_ARepositoryByItsURL(t *testing.T) {
	for name, serve := range map[string]func(*world) string{
		"file":   func(w *world) string { return "file://" + w.dir },
		"daemon": func(w *world) string { return w.daemon("--enable=receive-pack") },
		"web, with a credential helper": func(w *world) string {
			url := w.web()
			w.write("user/.git-credentials", strings.Replace(url, "://", "://ann:hush@", 1)+"\n")
			w.configures("[credential]\nhelper = store\n")
			return url
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOfItsOwn(t, raises)
			w.shares()
			url := serve(w) + "/project.git"
			w.spec["repo"] = doc{"url": url}
			r := w.run(0)
			require.Equal(t, "pawl/"+w.loop, r.Result.Branch)
			require.Equal(t, "11", w.has("refs/heads/pawl/"+w.loop, "work/n"))
			require.Equal(t, "10", w.has("refs/heads/main", "work/n"))
			require.Equal(t, []string{"0 yes baseline", "1 yes raise the number"}, w.rowsThere())
			require.Equal(t, "Ann <ann@example.com>", w.there("log", "-1", "--format=%an <%ae>", "refs/heads/pawl/"+w.loop))
			_, said := w.events()
			require.NotContains(t, said.out, "push_refused")
			require.NotContains(t, said.out, "hush")
			require.Empty(t, w.pawlRefs(), "the working copy has nothing to do with it")

			w.done("approve", w.loop, "--hash", r.Result.Proposal.Hash)
			w.done("apply", w.loop)
			require.Equal(t, "11", w.has("refs/heads/main", "work/n"))
			require.Equal(t, w.there("rev-parse", "refs/heads/pawl/"+w.loop), w.there("rev-parse", "main"))
			require.Contains(t, w.done("show", w.loop).out, "applied to main")
			w.done("apply", w.loop) // and once more: nothing happens
		})
	}
}

func TestP0_AURLThatCannotBeWorkedWith(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(*world) string
		says  []string
	}{
		{"credentials that nobody has", func(w *world) string { return w.web() + "/project.git" }, []string{"PRECONDITION_FAILED", "wants credentials", "credential helper"}},
		{"a wrong password", func(w *world) string {
			url := w.web()
			w.configures("[url \"" + strings.Replace(url, "://", "://ann:sesame@", 1) + "\"]\ninsteadOf = " + url + "\n")
			return url + "/project.git"
		}, []string{"PRECONDITION_FAILED", "wants credentials"}},
		{"a password in the URL", func(w *world) string { return "http://ann:sesame@127.0.0.1:1/project.git" }, []string{"INVALID_SPEC", "repo.url", "credential helper"}},
		{"nobody there", func(w *world) string { return "http://" + freeAddress(w.t) + "/project.git" }, []string{"PRECONDITION_FAILED", "can't be reached"}},
		{"no such repository", func(w *world) string { return "file://" + w.dir + "/nothing.git" }, []string{"PRECONDITION_FAILED", "is no repository"}},
		{"one that takes no push", func(w *world) string { return w.daemon() + "/project.git" }, []string{"PRECONDITION_FAILED", "may not push"}},
		{"one without a commit", func(w *world) string {
			w.git("init", "--quiet", "--bare", filepath.Join(w.dir, "empty.git"))
			return "file://" + w.dir + "/empty.git"
		}, []string{"PRECONDITION_FAILED", "no commit yet"}},
		{"a branch in the way", func(w *world) string {
			w.there("branch", "pawl", "main")
			return "file://" + w.dir + "/project.git"
		}, []string{"PRECONDITION_FAILED", "the branch pawl is in the way"}},
		{"no such base", func(w *world) string {
			w.set(doc{"repo": doc{"base": "release"}})
			return "file://" + w.dir + "/project.git"
		}, []string{"PRECONDITION_FAILED", "there is no branch release"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOfItsOwn(t, raises)
			w.shares()
			url := c.serve(w)
			w.set(doc{"repo": doc{"url": url}})
			for _, command := range [][]string{{"validate", w.specFile()}, {"run", "--yes", w.specFile()}} {
				s := w.pawl(command...)
				require.Equal(t, 2, s.code, s.err)
				for _, text := range c.says {
					require.Contains(t, s.err, text)
				}
				require.NotContains(t, s.out+s.err, "sesame")
				plain(t, s.err)
			}
			require.NotContains(t, readFile(filepath.Join(w.home, "logs", "pawl.log")), "sesame")
		})
	}
}

// TestAHookOfTheRemoteHasTheLastWord lets the remote refuse the loop's branch, and the move of the
// user's: the loop goes on and says so once, and its ledger is there.
func TestAHookOfTheRemoteHasTheLastWord(t *testing.T) {
	w := newWorld(t, raises).set(doc{"limits": doc{"iterations": 3}})
	bare := w.shares()
	hook := filepath.Join(bare, "hooks", "update")
	require.NoError(t, os.WriteFile(hook, []byte("#!/bin/sh\ncase $1 in refs/heads/*) exit 1;; esac\n"), 0o755))
	r := w.run(0)
	require.Len(t, w.rowsThere(), 4)
	require.Equal(t, "refs/heads/main", w.there("for-each-ref", "--format=%(refname)", "refs/heads"))
	_, said := w.events()
	require.Equal(t, 1, strings.Count(said.out, `"push_refused"`), "it is told once")

	w.done("approve", w.loop, "--hash", r.Result.Proposal.Hash)
	s := w.refusedWith("PRECONDITION_FAILED", "apply", w.loop)
	require.Contains(t, s.err, "does not take the branch main")
	require.Equal(t, "10", w.has("main", "work/n"))
	require.NoError(t, os.Remove(hook))
	w.done("apply", w.loop)
	require.Equal(t, "13", w.has("main", "work/n"))
	require.Equal(t, "13", w.has("refs/heads/pawl/"+w.loop, "work/n"))
}

// TestARemoteThatGoesAwayInTheMiddle is away for an iteration. What happened meanwhile is there when
// it has come back.
func TestARemoteThatGoesAwayInTheMiddle(t *testing.T) {
	w := newWorld(t, `[ $PAWL_ITERATION = 2 ] && mv "$WORLD/project.git" "$WORLD/away"
		[ $PAWL_ITERATION = 3 ] && mv "$WORLD/away" "$WORLD/project.git"
		`+raises).set(doc{"limits": doc{"iterations": 3}, "sandbox": doc{"use": "off"}})
	w.shares()
	w.run(0)
	require.Equal(t, []string{"0 yes baseline", "1 yes raise the number", "2 yes raise the number", "3 yes raise the number"}, w.rowsThere())
	require.Equal(t, "13", w.has("refs/heads/pawl/"+w.loop, "work/n"))
	_, said := w.events()
	require.Equal(t, 1, strings.Count(said.out, `"push_refused"`), said.out)
}

// TestABaseThatMovesInTheRemote gives a new proposal, which nobody has approved.
func TestABaseThatMovesInTheRemote(t *testing.T) {
	w := newWorld(t, raises)
	bare := w.shares()
	r := w.run(0)
	w.done("approve", w.loop, "--hash", r.Result.Proposal.Hash)
	clone := filepath.Join(w.dir, "clone")
	w.git("clone", "--quiet", bare, clone)
	w.write("clone/more", "more\n")
	w.git("-C", clone, "add", "more")
	w.git("-C", clone, "commit", "--quiet", "-m", "more")
	w.git("-C", clone, "push", "--quiet", "origin", "main")
	w.refusedWith("BASE_MOVED", "apply", w.loop)
	require.Equal(t, "10", w.has("main", "work/n"))
	w.done("approve", w.loop, "--hash", w.proposal().Hash)
	w.done("apply", w.loop, "--how", "merge")
	require.Equal(t, []string{"11", "more"}, []string{w.has("main", "work/n"), w.has("main", "more")})
	require.Equal(t, "more", w.has("refs/heads/pawl/"+w.loop, "more"))
}

// TestTwoHostsCannotGoOnWithOneLoop has two hosts that know nothing of each other, not even a
// Temporal in common. The second takes the loop up from the ledger in the repository; the first,
// which was only slow, can't record anything more.
func TestTwoHostsCannotGoOnWithOneLoop(t *testing.T) {
	t.Parallel()
	w := newWorldOfItsOwn(t, raises).set(doc{"limits": doc{"iterations": 3}, "approvals": doc{"plan": "auto"}, "breakpoints": []string{"verify"}})
	w.shares()
	one, err := startUp(w.home, filepath.Join(w.dir, "up1"))
	require.NoError(t, err)
	defer func() { require.NoError(t, one.stop()) }()
	w.done("start", w.specFile())
	w.waits("paused")
	w.done("continue", w.loop)
	w.until("the second breakpoint is in the ledger", func() bool {
		var st state
		decode(t, w.has("refs/pawl-ledger/"+w.loop, "state.json"), &st)
		return st.Status == "paused" && st.Iteration == 2 && st.Gate != nil
	})
	ledger := w.there("rev-parse", "refs/pawl-ledger/"+w.loop)
	w.until("every append is there", func() bool { return w.show().Ledger == ledger })

	first, second := w.home, filepath.Join(w.dir, "home2")
	two, err := startUp(second, filepath.Join(w.dir, "up2"))
	require.NoError(t, err)
	defer func() { require.NoError(t, two.stop()) }()
	w.home = second
	w.done("start", w.specFile(), "--ledger", ledger)
	w.until("the third iteration's breakpoint", func() bool { st := w.show(); return st.Status == "paused" && st.Iteration == 3 })

	w.home = first
	w.done("continue", w.loop)
	st := w.waits("failed")
	require.Equal(t, "LEDGER_AHEAD", st.ErrorCode)

	w.home = second
	w.done("continue", w.loop)
	w.waits("completed")
	require.Equal(t, []string{"0 yes baseline", "1 yes raise the number", "2 no interrupted: the run before this one was lost", "3 yes raise the number"}, w.rowsThere())
	require.Equal(t, "12", w.has("refs/heads/pawl/"+w.loop, "work/n"))

	// What people say of the proposal counts on both.
	hash := w.proposal().Hash
	w.done("approve", w.loop, "--hash", hash)
	w.home = first
	w.done("apply", w.loop, "--hash", hash)
	require.Equal(t, "12", w.has("main", "work/n"))
	w.home = second
	require.Contains(t, w.done("apply", w.loop).out, "main")
}

// TestALoopMovesToAnotherHost has two hosts with a Temporal in common. The one that has the loop
// dies; a person ends its workflow and starts it from its ledger, and the other host takes it up.
func TestALoopMovesToAnotherHost(t *testing.T) {
	c := newCluster(t)
	w := newWorldOfItsOwn(t, `echo "$PAWL_ITERATION" >>"$WORLD/at"; [ $PAWL_ITERATION = 2 ] && until [ -e "$WORLD/go" ]; do sleep 0.05; done; `+raises).
		set(doc{"limits": doc{"iterations": 3}}).auto().on(c)
	w.shares()
	w.begin()
	w.at(2)
	require.NoError(t, c.worker.stop(syscall.SIGKILL))
	ledger := w.there("rev-parse", "refs/pawl-ledger/"+w.loop)

	other := c.another(t)
	require.NoError(t, other.startWorker(c.address))
	w.temporal("workflow", "terminate", "--workflow-id", w.loop, "--reason", "the host is gone")
	w.write("go", "")

	w.write("from.json", `{"ledger":"`+ledger+`"}`)
	w.set(doc{"goal": "something else"})
	w.temporal("workflow", "start", "--type", "Improve", "--task-queue", "pawl", "--workflow-id", w.loop, "--input-file", w.jsonFile(), "--input-file", filepath.Join(w.dir, "from.json"))
	require.Contains(t, w.fails().Message, "not the one of the contract")
	w.set(doc{"goal": "climb"})
	require.Equal(t, 0, w.starter("start", w.specFile(), "--ledger", ledger).code)
	st := w.stands("completed")
	require.Equal(t, []string{"0 yes baseline", "1 yes raise the number", "2 no interrupted: the run before this one was lost", "3 yes raise the number"}, w.rowsThere())
	require.Equal(t, "12", w.has("refs/heads/pawl/"+w.loop, "work/n"))
	require.Equal(t, st.Head, w.there("rev-parse", "refs/heads/pawl/"+w.loop))

	over := w.there("rev-parse", "refs/pawl-ledger/"+w.loop)
	require.Equal(t, 0, w.starter("start", w.specFile(), "--ledger", over).code)
	require.Contains(t, w.fails().Message, "has ended")
	require.Equal(t, 2, w.starter("start", w.specFile(), "--ledger", "HEAD").code)

	before := w.there("for-each-ref")
	require.Contains(t, before, over)
	require.NoError(t, c.startWorker(c.address))
	w.until("the first host has given its trees up", func() bool {
		_, err := os.Stat(filepath.Join(c.home, "loops", w.loop, "desk"))
		return err != nil
	})
	require.Equal(t, before, w.there("for-each-ref"))
	require.NoError(t, other.worker.stop(syscall.SIGINT))
}
