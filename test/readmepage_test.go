package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README and docs/deliver.md are run: TestDemo and TestL_DemoDeliver run the demos that the README shows.

// shows expects that what a page prints below a command comes, in that order, in an output.
func shows(t *testing.T, path, command, output string) {
	t.Helper()
	m := regexp.MustCompile("(?s)```sh\n[^`]*" + regexp.QuoteMeta(command) + "\n[^`]*```.*?\n```\n(.*?)\n```").FindStringSubmatch(readFile(path))
	require.NotNil(t, m, "%s shows nothing of %s", path, command)
	comeInOrder(t, strings.Split(m[1], "\n"), output)
}

// comeInOrder expects lines that begin so, one after the other.
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

// withoutClaude is a page's spec with a script in the place of the agent that needs a key.
func (w *world) withoutClaude(path string) string {
	w.t.Helper()
	m := regexp.MustCompile("(?s)\n```yaml\n(kind: deliver\n|)(goal:.*?)\n```").FindStringSubmatch(readFile(path))
	require.NotNil(w.t, m)
	spec := m[1] + m[2] + "\n"
	require.Contains(w.t, spec, "use: claude")
	return strings.Replace(spec, "use: claude", "command: [sh, "+filepath.Join(w.dir, "agent.sh")+"]", 1)
}

func TestReadme_YourOwnLoop(t *testing.T) {
	w := newWorldOfItsOwn(t, `until [ -e "$WORLD/go" ]; do sleep 0.05; done; cat "$PAWL_PROMPT" >>"$WORLD/prompt"; echo "const Speed = $(($(sed -n 's/.*= //p' parser/speed.go) - 1))" >parser/speed; (echo "package parser"; cat parser/speed) >parser/speed.go; rm parser/speed; echo "look at each byte once"`)
	t.Parallel()
	w.write("repo/go.mod", "module example.com/parser\n\ngo 1.24\n")
	w.write("repo/parser/speed.go", "package parser\nconst Speed = 90\n")
	w.write("repo/bench.sh", "#!/bin/sh\nsed -n 's/.*= //p' parser/speed.go\n")
	require.NoError(t, os.Chmod(filepath.Join(w.repo, "bench.sh"), 0o755))
	w.write("repo/pawl.yaml", strings.Replace(w.withoutClaude("README.md"), "iterations: 20", "iterations: 2", 1))
	w.write("agent.sh", strings.ReplaceAll(w.read("agent.sh"), "$WORLD", w.dir))
	w.commit("a parser")
	require.NoError(t, os.Symlink(program(t), filepath.Join(w.dir, "pawl")))
	w.calls(map[string]string{"pawl": program(t)})
	up, err := startUp(w.home, filepath.Join(w.dir, "up"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, up.stop()) })

	p := w.pageOf("README.md", map[string]string{"ID": w.loop}, "Your own loop")
	// The loop of the page has no name of its own; nobody is there to be asked. Both are told on the command line.
	require.Equal(t, "go build -o pawl .\n./pawl run pawl.yaml\n", p.next("Your own loop"))
	p.folder = w.repo
	gate := func(status, kind string) {
		t.Helper()
		var st state
		w.until(kind, func() bool { st = w.waits(status); return st.Gate != nil && st.Gate.Kind == kind })
		p.values["--hash …"] = "--hash " + st.Gate.Hash
	}
	p.values["pawl run"] = "pawl start --id " + w.loop
	p.shell(p.fill("../pawl run pawl.yaml"))
	gate("waiting", "contract")
	require.Contains(t, p.shell("pawl list"), w.loop)
	require.Contains(t, p.types("pawl show ID"), "pawl approve "+w.loop)
	require.Contains(t, p.types("pawl log ID"), "waiting (contract")
	p.types("pawl approve ID --hash …")
	w.until("the agent is at work", func() bool { return w.show().Iteration == 1 })
	p.types(`pawl steer ID --note "try the lexer first"`)
	p.types("pawl pause ID")
	gate("paused", "pause")
	w.write("go", "")
	p.types("pawl continue ID")
	gate("waiting", "diff")
	require.Contains(t, w.read("prompt"), "try the lexer first")
	require.Contains(t, p.types("pawl diff ID"), "-const Speed = 90")
	p.types("pawl approve ID --hash …")
	w.waits("completed")
	p.types("pawl apply ID")
	require.Contains(t, w.git("show", "main:parser/speed.go"), "Speed = 88")

	// Refused, answered, ended.
	w.write("repo/bench.sh", "#!/bin/sh\n[ \"$(sed -n 's/.*= //p' parser/speed.go)\" = 88 ] && echo 88 || echo none\n")
	w.commit("a clock that fails")
	for _, end := range []string{"pawl reject ID", "pawl answer ID --choice …", "pawl halt ID"} {
		w.loop += "i"
		p.values = map[string]string{"ID": w.loop, "--choice …": "--choice halt"}
		p.shell("pawl start pawl.yaml --id " + w.loop)
		gate("waiting", "contract")
		if strings.Contains(end, "answer") {
			p.types("pawl approve ID --hash …")
			gate("waiting", "question")
		}
		p.types(end)
		w.waits("halted")
	}
	w.before = w.snapshot()
	p.allRan()
}

func TestDeliverPage(t *testing.T) {
	w := newWorldOfItsOwn(t, "")
	t.Parallel()
	from := filepath.Join("internal", "demo", "_deliver")
	require.NoError(t, os.RemoveAll(w.repo))
	require.NoError(t, os.CopyFS(w.repo, os.DirFS(filepath.Join(from, "repo"))))
	require.NoError(t, os.Rename(filepath.Join(w.repo, "go.mod.txt"), filepath.Join(w.repo, "go.mod")))
	require.NoError(t, os.Remove(filepath.Join(w.dir, "agent.sh")))
	require.NoError(t, os.CopyFS(w.dir, os.DirFS(filepath.Join(from, "agent"))))
	w.write("repo/issue.md", readFile(filepath.Join(from, "issue.md")))
	w.git("init", "--quiet", "--initial-branch=main", w.repo)
	w.git("config", "user.name", "Ann")
	w.git("config", "user.email", "ann@example.com")
	w.commit("a calendar")
	w.calls(map[string]string{"pawl": program(t)})
	p := w.pageOf("docs/deliver.md", map[string]string{"pawl run": "pawl run --yes --id calendar"})
	p.folder, w.loop = w.repo, "calendar"

	p.types("pawl init --kind deliver")
	require.Contains(t, w.read("repo/pawl.yaml"), "kind: deliver")
	w.write("repo/pawl.yaml", w.withoutClaude("docs/deliver.md"))
	w.commit("a loop")
	require.Contains(t, p.run("Your own"), "Delivered: 1 iteration, 1 fix")
	require.Contains(t, w.show().Goal, "A short meeting within a long one")
	require.Contains(t, w.kept("interval/interval.go"), "max(merged[n-1].End, next.End)")
	p.said("pawl demo deliver") // TestL_DemoDeliver
	p.allRan()
}
