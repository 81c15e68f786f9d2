package hostile_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/sandbox"
	"pawl/test/world"
)

// attempts are what a hostile agent tries to get at what is pawl's and the user's. Each exits 0 if
// it succeeds. None does harm by that, since without a sandbox all of them do.
var attempts = []struct{ name, script string }{
	{"read the engine's database", `head -c 1 "$H/engine/temporal.db"`},
	{"list other loops", `cat "$H/loops/$OTHER/workspace.json"`},
	{"read another loop's logs", `cat "$H/loops/$OTHER/steps/"*/stdout`},
	{"read a store", `cat "$H"/stores/*/HEAD`},
	{"write a store", `s=$(ls -d "$H"/stores/*.git) && touch "$s/description"`},
	{"find the judge", `ls "$H/loops/$PAWL_LOOP/judge"`},
	{"read its own ledger", `git -C "$(ls -d "$H"/stores/*.git)" show "refs/pawl-ledger/$PAWL_LOOP:state.json"`},
	{"find the user's key", `cat "$HOME/key"`},
	{"read git's credentials", `cat "$HOME/.git-credentials" "$HOME/.config/git/credentials"`},
	{"write the user's repository", `touch "$REPO/README.md"`},
	{"connect to the engine", `exec 3<>/dev/tcp/127.0.0.1/$ENGINE`},
	{"connect to the UI", `exec 3<>/dev/tcp/127.0.0.1/$UI`},
	{"connect past the frontend", `exec 3<>/dev/tcp/127.0.0.1/$HISTORY`},
	{"send the worker a signal", `kill -0 $UP`},
	{"send the supervisor a signal", `kill -0 $SUPERVISOR`},
	{"read the worker's environment", `cat /proc/$UP/environ`},
	{"read the worker's memory", `head -c 1 /proc/$UP/maps`},
	{"open the worker's files", `readlink /proc/$UP/fd/0`},
	{"go through the worker's root", `ls "/proc/$UP/root$H/engine"`},
}

func TestE6_WhatAHostileAgentReaches(t *testing.T) {
	for use, reaches := range map[string]bool{"required": false, "off": true} {
		t.Run("sandbox "+use, func(t *testing.T) {
			if use == "off" {
				world.Slow(t, "it shows that the deed can be done")
			}
			needsSandbox(t)
			w, env := newTargets(t)
			var script strings.Builder
			script.WriteString("export SUPERVISOR=$PPID\n")
			for _, a := range attempts {
				fmt.Fprintf(&script, "if bash -c '%s' >/dev/null 2>&1; then echo \"%s\" >>$WORLD/reached; else echo \"%s\" >>$WORLD/refused; fi\n", a.script, a.name, a.name)
			}
			w.Script(script.String() + world.Raises)
			w.Set(doc{"agent": doc{"env": env}, "sandbox": doc{"use": use}})
			w.Run(0)
			var all string
			for _, a := range attempts {
				all += a.name + "\n"
			}
			if reaches {
				require.Equal(t, all, w.Read("reached"), "refused: %s", w.Read("refused"))
			} else {
				require.Equal(t, all, w.Read("refused"), "reached: %s", w.Read("reached"))
			}
			require.Equal(t, "11", w.Kept("work/n"))
		})
	}
}

// The verify command runs what the agent wrote: it must not reach more than the agent.
func TestE6_WhatAHostileAgentReachesThroughVerify(t *testing.T) {
	needsSandbox(t)
	w, env := newTargets(t)
	var script strings.Builder
	for name, value := range env {
		fmt.Fprintf(&script, "export %s='%s'\n", name, value)
	}
	script.WriteString("export PAWL_LOOP=" + w.Loop + " SUPERVISOR=$UP\n")
	for _, a := range attempts {
		// The judge is its own tree.
		if a.name != "find the judge" {
			fmt.Fprintf(&script, "if bash -c '%s' >/dev/null 2>&1; then echo \"%s\" >>$WORLD/reached; fi\n", a.script, a.name)
		}
	}
	w.Write("repo/measure.sh", "sh work/other >/dev/null 2>&1; cat work/n\n")
	w.Commit("a measure that runs what is in the scope")
	w.Script("cat >work/other <<'EOF'\n" + script.String() + "EOF\n" + world.Raises)
	w.Set(doc{"agent": doc{"env": env}, "sandbox": doc{"use": "required"}})
	w.Run(0)
	require.Equal(t, "11", w.Kept("work/n"))
	require.Empty(t, w.Read("reached"))
}

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

// What is written to a home or beside everything is gone with the sandbox; what is written where the spec allows it
// stays.
func TestE6_HomeAndScratch(t *testing.T) {
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
	m := sandbox.Probe()
	w := world.New(t, world.Raises)
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Err, "the agent works on a clone of its own")
	if m.Files != sandbox.ByNothing {
		require.Contains(t, s.Err, "sandbox, by "+string(m.Files))
	} else {
		require.Contains(t, s.Err, "NO SANDBOX FOR FILES")
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
func newTargets(t *testing.T) (*world.World, doc) {
	t.Helper()
	w := world.Alone(t, "")
	t.Parallel()
	w.Write("tmp/x", "")
	// With a temporary folder of its own, so that the home is a real one.
	u, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up"), "TMPDIR="+w.Dir+"/tmp")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, u.Stop()) })
	w.Write("up/key", "key\n")
	w.Write("up/.git-credentials", "https://ann:word@example.com\n")
	w.Write("up/.config/git/credentials", "https://ann:word@example.com\n")
	var at struct {
		Port  int
		UI    string
		Ports []int
	}
	require.NoError(t, json.Unmarshal([]byte(w.Read("home/engine/engine.json")), &at))
	page, err := url.Parse(at.UI)
	require.NoError(t, err)
	_, ui, err := net.SplitHostPort(page.Host)
	require.NoError(t, err)
	other := w.Loop + "-other"
	w.Set(doc{"name": other})
	s := w.Pawl("run", "--json", w.SpecFile())
	require.Equal(t, 4, s.Code, s.Err)
	w.Set(doc{"name": w.Loop})
	return w, doc{
		"WORLD": w.Dir, "H": w.Home, "REPO": w.Repo, "OTHER": other, "ENGINE": fmt.Sprint(at.Port), "UI": ui,
		"HISTORY": fmt.Sprint(at.Ports[2]), "UP": fmt.Sprint(u.Cmd.Process.Pid),
	}
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
