package security_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
	"pawl/test/harness/world"
)

// The deed that all this is about: an agent that answers a gate itself, with everything that one
// could have found out.
func TestE6_AgentThatAnswersAGate(t *testing.T) {
	for use, code := range map[string]string{"required": "1", "off": "0"} {
		t.Run("sandbox "+use, func(t *testing.T) {
			if use == "off" {
				world.Slow(t, "it shows that the deed can be done")
			}
			needsSandbox(t)
			w, env := newTargets(t)
			other := stateOf(w, env["OTHER"].(string))
			require.Equal(t, "waiting", other.Status)
			env["HASH"], env["PAWL"] = other.Gate.Hash, world.Program(t)
			w.Script(`[ -n "$PAWL" ] || { echo "the other loop"; exit 0; } # once it is approved it runs this too
				mkdir home; TEMPORAL_ADDRESS=127.0.0.1:$ENGINE PAWL_HOME=$PWD/home timeout 60 "$PAWL" approve "$OTHER" --hash "$HASH" >"$WORLD/said" 2>&1 && echo 0 >"$WORLD/code" || echo 1 >"$WORLD/code"
				rm -rf home; ` + world.Raises)
			w.Set(doc{"agent": doc{"env": env}, "sandbox": doc{"use": use}})
			w.Run(0)
			require.Equal(t, code+"\n", w.Read("code"), w.Read("said"))
			if use == "required" {
				require.Equal(t, "waiting", stateOf(w, env["OTHER"].(string)).Status, "the gate is open as before")
			}
		})
	}
}

// On this machine's own network another program leads past the ports that are closed. An engine that asks who comes
// does not take the answer, and the contract has said which it is.
func TestE6_AgentThatAnswersAGateThroughAnotherProgram(t *testing.T) {
	world.Slow(t, "it answers the gate itself")
	for name, c := range map[string]struct {
		flags []string
		code  string
		says  string
	}{
		"an engine that asks":        {[]string{"--auth"}, "1", "answer nobody without pawl's token"},
		"an engine that asks nobody": {nil, "0", "an agent could answer its own gates"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.flags == nil {
				world.Slow(t, "it shows that the deed can be done")
			}
			needsSandbox(t)
			w, env := newTargets(t, c.flags...)
			other := stateOf(w, env["OTHER"].(string))
			require.Equal(t, "waiting", other.Status)
			env["HASH"], env["PAWL"], env["ENGINE"] = other.Gate.Hash, world.Program(t), leadsTo(t, env["ENGINE"].(string))
			w.Script(`[ -n "$PAWL" ] || { echo "the other loop"; exit 0; } # once it is approved it runs this too
				mkdir home; rm -f "$WORLD/said"; echo 1 >"$WORLD/code"
				try() {
					env TEMPORAL_TLS=$1 TEMPORAL_TLS_DISABLE_HOST_VERIFICATION=$1 TEMPORAL_ADDRESS=127.0.0.1:$ENGINE PAWL_HOME=$2 timeout 60 "$PAWL" approve "$OTHER" --hash "$HASH" >>"$WORLD/said" 2>&1 && echo 0 >"$WORLD/code"
				}
				try false $PWD/home || try true $PWD/home || try true $H
				rm -rf home; ` + world.Raises)
			w.Set(doc{"agent": doc{"env": env}, "sandbox": doc{"network": "open"}})
			s := w.Pawl("run", "--yes", w.SpecFile())
			require.Equal(t, 0, s.Code, s.Err)
			require.Contains(t, strings.Join(strings.Fields(s.Err), " "), c.says)
			require.Equal(t, c.code+"\n", w.Read("code"), w.Read("said"))
			if c.flags != nil {
				require.Contains(t, w.Read("said"), "Request unauthorized", "it was reached")
				require.Equal(t, "waiting", stateOf(w, env["OTHER"].(string)).Status, "the gate is open as before")
			}
		})
	}
}

// leadsTo is the port of a program on this machine that connects whoever comes with another port of it.
func leadsTo(t *testing.T, port string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer from.Close()
				to, err := net.Dial("tcp", "127.0.0.1:"+port)
				if err != nil {
					return
				}
				defer to.Close()
				go func() { _, _ = io.Copy(to, from); to.Close() }()
				_, _ = io.Copy(from, to)
			}()
		}
	}()
	_, at, _ := net.SplitHostPort(l.Addr().String())
	return at
}

// What is written to a home or beside everything is gone with the sandbox; what is written where the spec allows it
// stays.
func TestE6_HomeAndScratch(t *testing.T) {
	world.Slow(t, "internal/exec/sandbox writes to both")
	needsSandbox(t)
	w, env := newTargets(t)
	w.Script(`echo "alias ls=rm" >>"$HOME/.bashrc"; echo here >"$WORLD/scratch"; echo here >"$HOME/allowed/it"; setsid sleep 1000 & ` + world.Raises)
	w.Write("up/.bashrc", "rc\n")
	w.Write("up/allowed/it", "there\n")
	w.Set(doc{"agent": doc{"env": env}, "sandbox": doc{"use": "required", "allow": []string{"~/allowed"}}}) // and not the world's folder
	w.Run(0)
	require.Equal(t, "rc\n", w.Read("up/.bashrc"))
	require.NoFileExists(t, filepath.Join(w.Dir, "scratch"))
	require.Equal(t, "here\n", w.Read("up/allowed/it"))
}

func TestE6_TheContractSaysWhichProtectionsHold(t *testing.T) {
	world.Slow(t, "internal/client/launch and activities/contract have what a contract says")
	m := sandbox.Probe()
	w := world.New(t, world.Raises)
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	whole := w.Pawl("validate", "--full", w.SpecFile()).Out
	require.Contains(t, whole, "the agent works on a clone of its own")
	if m.Files != sandbox.ByNothing {
		require.Contains(t, whole, "sandbox, by "+string(m.Files))
	} else {
		require.Contains(t, whole, "NO SANDBOX FOR FILES")
	}
	w.Set(doc{"name": w.Loop + "-off", "sandbox": doc{"use": "off"}})
	s = w.Pawl("run", "--yes", w.SpecFile())
	require.Contains(t, s.Err, "no sandbox (sandbox.use is off)")
	w.Set(doc{"sandbox": doc{"use": "required"}})
	s = w.Pawl("run", "--yes", w.SpecFile())
	if m.Lacks(sandbox.Filtered, []int{1}) == "" {
		require.Equal(t, 0, s.Code, s.Err)
	} else {
		require.Equal(t, 2, s.Code, s.Err)
		require.Contains(t, s.Err, "PRECONDITION_FAILED")
	}
}

// TestE6_AConnectionThatTheProxyRefusesIsTold has an agent connect to what the proxy lets nobody through to. What the
// contract itself asked of the proxy is told of nobody.
func TestE6_AConnectionThatTheProxyRefusesIsTold(t *testing.T) {
	needsSandbox(t)
	w := world.New(t, `[ $PAWL_ITERATION = 2 ] || curl -s --noproxy '' http://169.254.169.254/latest/ >"$WORLD/answer"; `+world.Raises)
	w.Set(doc{"sandbox": doc{"use": "required"}, "limits": doc{"iterations": 2}})
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	const told = "the sandbox blocked connections to "
	require.Equal(t, 1, strings.Count(s.Err, told), s.Err)
	require.Contains(t, s.Err, told+"169.254.169.254:80 (169.254.169.254 ")
	require.Contains(t, w.Read("answer"), "pawl allows no connection to 169.254.169.254:80", "the agent is told, too")
	events, _ := w.Events()
	for _, e := range events {
		if strings.Contains(e.Reason, told) {
			require.Equal(t, []any{"warned", 1, "modify"}, []any{e.Type, e.Iteration, e.Phase})
		}
	}
}

// needsSandbox skips where the machine has none.
func needsSandbox(t *testing.T) {
	t.Helper()
	if lacks := sandbox.Probe().Lacks(sandbox.Filtered, []int{1}); lacks != "" {
		world.Lacks(t, "this machine lacks "+lacks)
	}
}

// newTargets makes a world with an engine and worker of its own, a key in the user's home and a
// second loop that waits for its contract to be approved, and returns what an agent that wants at
// them has found out.
func newTargets(t *testing.T, flags ...string) (*world.World, doc) {
	t.Helper()
	w := world.Alone(t, "")
	t.Parallel()
	w.Write("tmp/x", "")
	// With a temporary folder of its own, so that the home is a real one.
	u, err := world.StartUpWith(flags, w.Home, filepath.Join(w.Dir, "up"), "TMPDIR="+w.Dir+"/tmp")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, u.Stop()) })
	w.Write("up/key", "key\n")
	w.Write("up/.git-credentials", "https://ann:word@example.com\n")
	w.Write("up/.config/git/credentials", "https://ann:word@example.com\n")
	engine, ui, history := ports(w)
	other := w.Loop + "-other"
	w.Set(doc{"name": other})
	s := w.Pawl("run", "--json", w.SpecFile())
	require.Equal(t, 4, s.Code, s.Err)
	w.Set(doc{"name": w.Loop})
	return w, doc{
		"WORLD": w.Dir, "H": w.Home, "REPO": w.Repo, "OTHER": other, "ENGINE": engine, "UI": ui, "HISTORY": history,
		"UP": fmt.Sprint(u.Cmd.Process.Pid),
	}
}

// newTargetsIn is newTargets in one of the ways in which commands are confined.
func newTargetsIn(t *testing.T, way string) (*world.World, doc) {
	t.Helper()
	if way == byRoot || way == byNobody {
		return newTargets(t)
	}
	w, told := newVictim(t, way)
	env := doc{"WORLD": w.Dir}
	for _, name := range []string{"H", "REPO", "OTHER", "ENGINE", "UI", "HISTORY", "UP"} {
		env[name] = told[name]
	}
	return w, env
}

// ports are those of the engine, its UI, and one that is not the frontend's.
func ports(w *world.World) (engine, ui, history string) {
	w.T.Helper()
	var at struct {
		Port  int
		UI    string
		Ports []int
	}
	require.NoError(w.T, json.Unmarshal([]byte(w.Read("home/engine/engine.json")), &at))
	page, err := url.Parse(at.UI)
	require.NoError(w.T, err)
	return fmt.Sprint(at.Port), page.Port(), fmt.Sprint(at.Ports[2])
}

// stateOf asks for the state of another loop.
func stateOf(w *world.World, id string) world.State {
	w.T.Helper()
	s := w.Pawl("show", "--json", id)
	require.Equal(w.T, 0, s.Code, s.Err)
	var st world.State
	world.Decode(w.T, s.Out, &st)
	return st
}

// TestE6_TheContractSaysWhatPathsInTheSpecOpen has an agent read what a variable names, and what lies beside that.
func TestE6_TheContractSaysWhatPathsInTheSpecOpen(t *testing.T) {
	world.Slow(t, "internal/client/launch and activities/contract have what a contract says")
	needsSandbox(t)
	dir := t.TempDir()
	named, beside := filepath.Join(dir, "named"), filepath.Join(dir, "beside")
	for _, at := range []string{named, beside} {
		require.NoError(t, os.Mkdir(at, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(at, "f"), []byte("f\n"), 0o644))
	}
	w := world.New(t, `cat "$NOTES/f" >"$WORLD/named"; cat "$NOTES/../beside/f" >"$WORLD/beside"; `+world.Raises)
	w.Set(doc{"agent": doc{"env": doc{"WORLD": w.Dir, "NOTES": named}}, "sandbox": doc{"use": "required"}})
	s := w.Pawl("validate", "--full", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Out, "agent and commands can read "+named+", since the spec names it or a program in it")
	require.Equal(t, 1, strings.Count(s.Out+s.Err, "since the spec names it"), "%s", s.Err)
	w.Run(0)
	require.Equal(t, "f\n", w.Read("named"))
	require.Empty(t, w.Read("beside"))
}

// TestE6_ARequiredSandboxThatDoesNotHoldStartsNothing: an ordinary user can make no cgroup on most machines, so the trial of a
// limit fails.
func TestE6_ARequiredSandboxThatDoesNotHoldStartsNothing(t *testing.T) {
	needsSandbox(t)
	t.Parallel()
	w := world.Alone(t, world.Raises)
	w.Set(doc{"sandbox": doc{"use": "auto"}, "limits": doc{"memory": "1GiB"}})
	w.Ordinary()
	const fails = "MEMORY IS NOT BOUNDED"
	s := w.Pawl("run", "--yes", w.SpecFile())
	if !strings.Contains(s.Err, fails) {
		world.Lacks(t, "here an ordinary user's commands are held to limits.memory")
	}
	require.Equal(t, 0, s.Code, s.Err)
	require.Equal(t, "11", w.Kept("work/n"))
	w.Set(doc{"name": w.Loop + "-required", "sandbox": doc{"use": "required"}})
	s = w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 2, s.Code, s.Err)
	require.Contains(t, s.Err+s.Out, "the spec requires a sandbox, but this machine lacks a part of it: "+fails)
	require.NotContains(t, w.Git("for-each-ref"), w.Loop+"-required")
}
