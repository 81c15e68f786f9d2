package commands_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// These tests run the README and docs/guides/deliver.md. TestDemo and TestL_DemoDeliver run the demos of the README.

// shows checks that the output has the lines that a page shows below a command, in the same order.
func shows(t *testing.T, path, command, output string) {
	t.Helper()
	m := regexp.MustCompile("(?s)```sh\n[^`]*" + regexp.QuoteMeta(command) + "\n[^`]*```.*?\n```\n(.*?)\n```").FindStringSubmatch(world.ReadFile(path))
	require.NotNil(t, m, "%s shows nothing of %s", path, command)
	comeInOrder(t, strings.Split(m[1], "\n"), output)
}

// comeInOrder checks that lines with these beginnings come one after the other.
func comeInOrder(t *testing.T, lines []string, output string) {
	t.Helper()
	said := strings.Split(output, "\n")
	for _, line := range lines {
		at := 0
		for at < len(said) && !strings.HasPrefix(said[at], line) {
			at++
		}
		require.Less(t, at, len(said), "%q is not, or not there, in\n%s", line, output)
		said = said[at+1:]
	}
}

// withoutClaude returns a page's spec with a script in place of the agent that needs a key.
func withoutClaude(w *world.World, path string) string {
	w.T.Helper()
	m := regexp.MustCompile("(?s)\n```yaml\n(kind: deliver\n|)(goal:.*?)\n```").FindStringSubmatch(world.ReadFile(path))
	require.NotNil(w.T, m)
	spec := m[1] + m[2] + "\n"
	require.Contains(w.T, spec, "use: claude")
	spec = strings.Replace(spec, "use: claude", "command: [sh, "+filepath.Join(w.Dir, "agent.sh")+"]", 1)
	return strings.TrimRight(spec, "\n") + "\nsandbox:\n  allow: [" + w.Dir + "]\n" // the agent leaves files beside its tree
}

func TestReadme_YourOwnLoop(t *testing.T) {
	world.Slow(t, "the demo and the first loop are run")
	w := world.Alone(t, `until [ -e "$WORLD/go" ]; do sleep 0.05; done; cat "$PAWL_PROMPT" >>"$WORLD/prompt"; echo "const Speed = $(($(sed -n 's/.*= //p' parser/speed.go) - 1))" >parser/speed; (echo "package parser"; cat parser/speed) >parser/speed.go; rm parser/speed; echo "look at each byte once"`)
	t.Parallel()
	w.Write("repo/go.mod", "module example.com/parser\n\ngo 1.24\n")
	w.Write("repo/parser/speed.go", "package parser\nconst Speed = 90\n")
	w.Write("repo/bench.sh", "#!/bin/sh\nsed -n 's/.*= //p' parser/speed.go\n")
	require.NoError(t, os.Chmod(filepath.Join(w.Repo, "bench.sh"), 0o755))
	w.Write("repo/pawl.yaml", strings.Replace(withoutClaude(w, "README.md"), "iterations: 20", "iterations: 2", 1))
	w.Write("agent.sh", strings.ReplaceAll(w.Read("agent.sh"), "$WORLD", w.Dir))
	w.Commit("a parser")
	require.NoError(t, os.Symlink(world.Program(t), filepath.Join(w.Dir, "pawl")))
	calls(w, map[string]string{"pawl": world.Program(t)})
	up, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, up.Stop()) })

	p := pageOf(w, "README.md", map[string]string{"ID": w.Loop}, "Your own loop")
	// The page's loop has no name, and nobody can be asked. Flags say both.
	require.Equal(t, "go build -o pawl .\n./pawl run pawl.yaml\n", p.next("Your own loop"))
	p.folder = w.Repo
	gate := func(status, kind string) {
		t.Helper()
		var st world.State
		w.Until(kind, func() bool { st = w.Waits(status); return st.Gate != nil && st.Gate.Kind == kind })
		p.values["--hash …"] = "--hash " + st.Gate.Hash
	}
	p.values["pawl run"] = "pawl start --id " + w.Loop
	p.shell(p.fill("../pawl run pawl.yaml"))
	gate("waiting", "contract")
	require.Contains(t, p.shell("pawl list"), w.Loop)
	require.Contains(t, p.types("pawl show ID"), "pawl approve "+w.Loop)
	require.Contains(t, p.types("pawl log ID"), "waiting (contract")
	p.types("pawl approve ID --hash …")
	w.Until("the agent is at work", func() bool { return w.Show().Iteration == 1 })
	p.types(`pawl steer ID --note "try the lexer first"`)
	p.types("pawl pause ID")
	gate("paused", "pause")
	w.Write("go", "")
	p.types("pawl continue ID")
	gate("waiting", "diff")
	require.Contains(t, w.Read("prompt"), "try the lexer first")
	require.Contains(t, p.types("pawl diff ID"), "-const Speed = 90")
	p.types("pawl approve ID --hash …")
	w.Waits("completed")
	require.Contains(t, p.types("pawl log ID --transcript 1"), "modify")
	p.types("pawl apply ID")
	require.Contains(t, w.Git("show", "main:parser/speed.go"), "Speed = 88")

	// Refused, answered, ended.
	w.Write("repo/bench.sh", "#!/bin/sh\n[ -e '"+w.Dir+"/late' ] && echo none || sed -n 's/.*= //p' parser/speed.go\n")
	w.Commit("a clock that fails")
	for _, end := range []string{"pawl reject ID", "pawl answer ID --choice …", "pawl halt ID"} {
		w.Loop += "i"
		p.values = map[string]string{"ID": w.Loop, "--choice …": "--choice halt"}
		p.shell("pawl start pawl.yaml --id " + w.Loop)
		gate("waiting", "contract")
		if strings.Contains(end, "answer") {
			w.Write("late", "")
			p.types("pawl approve ID --hash …")
			gate("waiting", "question")
			require.NoError(t, os.Remove(filepath.Join(w.Dir, "late")))
		}
		p.types(end)
		w.Waits("halted")
	}
	require.Contains(t, p.types("pawl validate --full"), "protection")
	w.Before = w.Snapshot()
	p.said("pawl up --auth") // test/e2e/service
	p.allRan()
}

func TestDeliverPage(t *testing.T) {
	world.Slow(t, "the demo and the first loop are run")
	w := world.Alone(t, "")
	t.Parallel()
	from := filepath.Join("internal", "cli", "demo", "_deliver")
	require.NoError(t, os.RemoveAll(w.Repo))
	require.NoError(t, os.CopyFS(w.Repo, os.DirFS(filepath.Join(from, "repo"))))
	require.NoError(t, os.Rename(filepath.Join(w.Repo, "go.mod.txt"), filepath.Join(w.Repo, "go.mod")))
	require.NoError(t, os.Remove(filepath.Join(w.Dir, "agent.sh")))
	require.NoError(t, os.CopyFS(w.Dir, os.DirFS(filepath.Join(from, "agent"))))
	w.Write("repo/issue.md", world.ReadFile(filepath.Join(from, "issue.md")))
	w.Git("init", "--quiet", "--initial-branch=main", w.Repo)
	w.Git("config", "user.name", "Ann")
	w.Git("config", "user.email", "ann@example.com")
	w.Commit("a calendar")
	calls(w, map[string]string{"pawl": world.Program(t)})
	p := pageOf(w, "docs/guides/deliver.md", map[string]string{"pawl run": "pawl run --yes --id calendar"})
	p.folder, w.Loop = w.Repo, "calendar"

	p.types("pawl init --kind deliver")
	require.Contains(t, w.Read("repo/pawl.yaml"), "kind: deliver")
	w.Write("repo/pawl.yaml", withoutClaude(w, "docs/guides/deliver.md"))
	w.Commit("a loop")
	require.Contains(t, p.run("Your own"), "Delivered: 1 iteration, 1 fix")
	require.Contains(t, w.Show().Goal, "A short meeting within a long one")
	require.Contains(t, w.Kept("interval/interval.go"), "max(merged[n-1].End, next.End)")
	p.said("pawl demo deliver")        // TestL_DemoDeliver
	p.said(`pawl reject --note "why"`) // TestA7_WhatIsRejectedOnAMovedBaseGoesOnThere
	p.allRan()
}
