package security_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

func TestP0_AnAgentThatDoesNotExistStartsNoLoop(t *testing.T) {
	world.Slow(t, "TestAProgramThatCantStartSaysWhy has one")
	for _, c := range world.Sample(1, []struct {
		name    string
		command any
		says    string
	}{
		{"as a program", []string{"/no/such/agent"}, "the agent's command needs /no/such/agent, which is no program on this machine"},
		{"for the shell", "no-such-agent --quiet", "the agent's program no-such-agent is not on the PATH"},
	}) {
		t.Run(c.name, func(t *testing.T) {
			w := world.New(t, "").Set(doc{"agent": doc{"command": c.command}, "limits": doc{"iterations": 5}})
			s := w.Pawl("run", "--yes", w.SpecFile())
			require.Equal(t, 2, s.Code, s.Err)
			require.Contains(t, s.Err, c.says)
			require.Contains(t, s.Err, "PRECONDITION_FAILED")
			require.NotContains(t, s.Err, "baseline", "nothing is measured")
			require.Empty(t, w.Subjects())
		})
	}
}

func TestAgentThatWrites100MB(t *testing.T) {
	world.Slow(t, "TestEscapes floods")
	w := world.New(t, `echo "raise the number"; yes 0123456789012345678901234567890123456789 | head -c 104857600; echo 11 >work/n`)
	w.Run(0)
	require.Equal(t, row{"1", "11", "+1.00", "yes", "raise the number"}, w.LastRow())
	require.Less(t, len(w.StepLog("0001.1-modify", "stdout")), 32<<20, "what is kept of it is bounded")
}

func TestAgentThatHangs(t *testing.T) {
	world.Slow(t, "TestAgentThatKillsItsSupervisor leaves processes behind")
	w := world.New(t, `echo 11 >work/n; trap "" INT TERM; echo "hang"; tail -f /dev/null & wait; wait`).
		Set(doc{"limits": doc{"phaseTimeout": "5s"}})
	w.Run(3)
	w.NothingRuns()
	require.Equal(t, row{"1", "10", "+0.00", "no", "error:agent: hang"}, w.LastRow())
	require.Empty(t, w.Subjects())
}

// What an agent leaves in the background ends with its step, even if it hides.
func TestAgentThatDaemonises(t *testing.T) {
	world.Slow(t, "TestAgentThatKillsItsSupervisor leaves processes behind")
	w := world.New(t, `echo 11 >work/n; echo "raise the number"
		nohup tail -f "$WORLD/one" >/dev/null 2>&1 &
		(setsid tail -f "$WORLD/two" >/dev/null 2>&1 &)
		env -i "$(command -v setsid)" "$(command -v sh)" -c "trap '' HUP INT TERM; while :; do tail -f $WORLD/three; done" >/dev/null 2>&1 &
		until [ -e "$WORLD/seen" ]; do sleep 0.05; done`).
		Set(doc{"verify": doc{"command": "! pgrep -f $PWD >/dev/null; cat work/n"}})
	for _, name := range []string{"one", "two", "three"} {
		w.Write(name, "")
	}
	c := w.Start("run", "--json", "--yes", w.SpecFile())
	w.Until("all of them run", func() bool {
		return len(world.Survivors(filepath.Join(w.Dir, "one"))) > 0 && len(world.Survivors(filepath.Join(w.Dir, "two"))) > 0 && len(world.Survivors(filepath.Join(w.Dir, "three"))) > 0
	})
	w.Write("seen", "")
	require.Equal(t, 0, c.Wait().Code)
	require.Equal(t, "yes", w.LastRow().Kept())
	w.NothingRuns()
}

func TestAgentThatChangesNothing(t *testing.T) {
	world.Slow(t, "internal/loop/rules decides it")
	w := world.New(t, `echo "think about it"`)
	w.Run(0)
	require.Equal(t, row{"1", "10", "+0.00", "no", "no-change: think about it"}, w.LastRow())
	require.Empty(t, w.Subjects())
}

func TestAgentThatDeletesItsTree(t *testing.T) {
	world.Slow(t, "TestADeskThatIsGoneIsMadeAgainAndNamed loses one, too")
	deeds := []deed{
		{"remove the files", `rm -rf ./* ./.git`, "policy:scope"},
		{"raise the number", ``, ""},
		{"remove the desk", `rm -rf "$PWD"`, "policy:fileType"},
		{"raise it again", ``, ""},
		{"make the desk a link", `d=$PWD; cd /; rm -rf "$d"; ln -s "$WORLD/repo" "$d"`, "policy:fileType"},
		{"make the desk a file", `d=$PWD; cd /; rm -rf "$d"; echo 11 >"$d"`, "policy:fileType"},
		{"move the desk away", `d=$PWD; cd /; mv "$d" "$WORLD/desk"; mkdir "$d"; cp -r "$WORLD/desk/." "$d"`, "policy:fileType"},
		{"raise it in the end", ``, ""},
	}
	// In a sandbox the desk is a mount point: it can be emptied, but not moved or replaced by a link.
	w := world.New(t, "").Does(deeds...).Set(doc{"verify": doc{"command": "cat work/n"}, "sandbox": doc{"use": "off"}})
	w.Run(0)
	w.Come(deeds...)
}

// odd are unusual names that a repository may have.
var odd = []string{"a b", " lead", `q"uote`, "it's", "new\nline", "tab\there", "-dash", "\xff\xfe latin \xe9", "ünïcode", `back\slash`, "$(touch canary)", "*", "[a]", "a:b"}

func TestOddFileNamesAreKept(t *testing.T) {
	world.Slow(t, "internal/git/worktree has such names")
	w := world.New(t, "")
	for _, name := range odd {
		w.Write("repo/work/"+name, "old\n")
	}
	w.Commit("odd names")
	w.Script(`for f in work/* work/" lead"; do echo new >>"$f"; done
		mkdir "work/d
ir"; cp work/n "work/d
ir/$(printf '\377')"
		echo 11 >work/n; echo "touch all"`)
	w.Set(doc{"newFiles": "allow"})
	w.Run(0)
	require.Equal(t, "yes", w.LastRow().Kept())
	names := w.OnBranch()
	require.Contains(t, names, "work/d\nir/\xff")
	for _, name := range odd {
		require.Contains(t, names, "work/"+name)
		require.Contains(t, w.Kept("work/"+name), "old\nnew", "%q", name)
	}
	require.Contains(t, w.Show().ChangedFiles, `"work/\377\376 latin \351"`, "names are git-quoted")
	require.Contains(t, w.Show().ChangedFiles, `"work/new\nline"`)
}

// A link that stays within the tree is an ordinary file.
func TestLinkWithinTheTreeIsKept(t *testing.T) {
	world.Slow(t, "internal/git/worktree has such links")
	w := world.New(t, `echo 11 >work/m; ln -sf m work/n; echo "keep the number elsewhere"`).Set(doc{"newFiles": "allow"})
	w.Run(0)
	require.Equal(t, "m", w.Kept("work/n"))
}

func TestAgentThatFails(t *testing.T) {
	world.Slow(t, "TestAProgramThatCantStartSaysWhy fails, too")
	w := world.New(t, `echo 11 >work/n; case $PAWL_ITERATION in
		1) echo "raise the number"; exit 3;;
		2) echo "libhill.so: no such file" >&2; exit 3;;
		3|6) git checkout -q work/n; echo "think";;
		4) kill -9 $$;;
		5) echo '{"giveUp": "too steep"}' >"$PAWL_RESULT";;
		7) echo '{"giveUp": true}' >"$PAWL_RESULT";;
		esac`).Set(doc{"limits": doc{"iterations": 7}})
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	var got []string
	for _, r := range w.Results(w.Loop)[1:] {
		require.Equal(t, []string{"10", "+0.00", "no"}, []string{r[1], r[2], r.Kept()})
		got = append(got, r.Description())
	}
	require.Equal(t, []string{
		"error:agent: raise the number",
		"error:agent: the agent failed (exit 3: libhill.so: no such file)",
		"no-change: think",
		"error:agent: the agent failed (was ended by SIGKILL)",
		"error:agent: the agent gave up: too steep",
		"no-change: think",
		"error:agent: the agent gave up: no reason given",
	}, got)
	for _, text := range []string{"raise the number (exit 3)", "the agent failed (exit 3: libhill.so: no such file)", "SIGKILL", "too steep"} {
		require.Contains(t, s.Err, text)
	}
	require.Empty(t, w.Subjects())
}
