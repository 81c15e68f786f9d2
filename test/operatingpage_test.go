package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page docs/operating.md is run: every command in it, on the embedded engine here, on a cluster with a
// shared repository in the test after it.

// local are the page's headings that one host with the embedded engine shows.
var local = []string{
	"Where things are", "Processes", "The sandbox", "When something is wrong", "When something dies",
	"What a loop proposes", "Is the record what it was?", "Answering", "Being told", "Ending a loop", "Making room", "Watching it",
}

// several are those that want a cluster, and hosts that share a repository.
var several = []string{"The worker's settings", "In production: worker, starter, compose", "A repository by its URL"}

func TestOperatingPage_EveryHeadingIsRead(t *testing.T) {
	for _, m := range heading.FindAllStringSubmatch(readFile("docs/operating.md"), -1) {
		require.Contains(t, append(local, several...), m[1])
	}
}

func TestOperatingPage_EveryAnswerIsTaken(t *testing.T) {
	w := newWorldOfItsOwn(t, `until [ -e "$WORLD/go" ]; do sleep 0.05; done; `+raises)
	t.Parallel()
	up, err := startUp(w.home, filepath.Join(w.dir, "up"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, up.stop()) })
	w.calls(map[string]string{"pawl": program(t)})
	p := w.pageOf("docs/operating.md", map[string]string{"ID": w.loop, "CHOICE": "retry", "verify.command=…": `verify.command="sh measure.sh"`}, local...)
	atGate := func(kind string) state {
		t.Helper()
		var st state
		w.until("the gate "+kind, func() bool {
			st = w.waits("waiting")
			return st.Gate.Kind == kind && st.Ledger != ""
		})
		if st.Gate.Hash == "" {
			return st
		}
		p.values["0123456789abcdef"] = st.Gate.Hash[:16]
		p.values["--hash …"] = "--hash " + st.Gate.Hash[:16]
		return st
	}
	w.set(doc{
		"guard":  doc{"command": "sh guard.sh"},
		"limits": doc{"iterations": 4, "onExhausted": "ask"}, "approvals": doc{"diff": "required"},
		"breakpoints": []string{"baseline"},
		"verify":      doc{"command": "[ $(cat work/n) = 10 ] && cat work/n || echo none"},
	})
	w.write("go", "")
	w.done("start", w.specFile())
	w.waits("paused")
	p.types("pawl continue ID")
	atGate("contract")
	p.types("pawl show ID")
	p.types("pawl approve ID --hash …")
	require.Equal(t, []string{"retry", "halt"}, atGate("question").Gate.Choices)
	p.types("pawl answer ID CHOICE")
	w.until("it asks again", func() bool { st := w.show(); return st.Status == "waiting" && st.Iteration == 4 })
	p.types("pawl amend ID --set verify.command=…")
	atGate("contract")
	p.types("pawl approve ID --hash …")
	atGate("budget")
	require.NoError(t, os.Remove(filepath.Join(w.dir, "go")))
	p.types("pawl extend ID --limit iterations=20 --hash …")
	w.until("it goes on", func() bool { st := w.show(); return st.Status == "running" && st.Iteration == 5 })

	// Where things are, while the loop has all of them but what only a validate makes.
	require.Equal(t, 0, w.pawl("validate", "--schema").code)
	places := regexp.MustCompile("(?m)^\\| `([^|]*)` \\|").FindAllStringSubmatch(regexp.MustCompile(`(?s)## Where things are.*?\n## `).FindString(readFile("docs/operating.md")), -1)
	require.Greater(t, len(places), 6)
	named := map[string]bool{}
	for _, row := range places {
		for _, place := range strings.Split(row[1], "`, `") {
			switch top, _, _ := strings.Cut(place, "/"); place {
			case "judge":
				place = "loops/<loop>/judge"
			case "engine.json":
				place = "engine/engine.json"
			default:
				named[top] = true
			}
			if slices.Contains([]string{"validate/", "demo/", "pawl.schema.json"}, place) {
				continue // those of a validate that runs, of a demo, of an init
			}
			found, err := filepath.Glob(filepath.Join(w.home, regexp.MustCompile(`<[^>]*>`).ReplaceAllString(place, "*")))
			require.NoError(t, err)
			require.NotEmpty(t, found, place)
		}
	}
	entries, err := os.ReadDir(w.home)
	require.NoError(t, err)
	for _, e := range entries {
		require.Contains(t, named, e.Name(), "docs/operating.md does not say what this is")
	}

	follow := w.start(strings.Fields(p.fill("watch ID"))...)
	p.said("pawl watch ID")
	w.until("it follows", func() bool { return readFile(follow.err) != "" })
	p.types("pawl mode ID plan")
	require.Equal(t, 5, follow.wait().code)
	require.Contains(t, p.types("pawl report ID"), "Recommendation")
	require.Contains(t, p.types("pawl log ID --verify"), "whole")
	require.Contains(t, w.done("doctor", "--json").out, `"git"`)

	// Rejected at a gate, ended by a word.
	w.loop += "b"
	p.values["ID"] = w.loop
	w.set(doc{"name": w.loop, "limits": doc{"iterations": 1}, "breakpoints": []string{}, "verify": doc{"command": "sh measure.sh"}})
	w.done("start", w.specFile())
	atGate("contract")
	p.types("pawl reject ID")
	w.waits("halted")
	w.done("start", w.specFile(), "--yes")
	w.waits("running")
	p.types("pawl halt ID")
	w.waits("halted")

	// A proposal.
	w.write("go", "")
	w.set(doc{"approvals": doc{"diff": "required"}, "limits": doc{"onExhausted": "halt"}})
	w.done("start", w.specFile(), "--yes")
	atGate("diff")
	require.Contains(t, p.run("What a loop proposes"), "+11")
	require.Equal(t, "11", w.git("show", "main:work/n"))
	w.before = w.snapshot() // as it has it now
	p.allRan()
}

func TestOperatingPage_SeveralHosts(t *testing.T) {
	c := newCluster(t)
	w := newWorldOfItsOwn(t, `echo "$PAWL_ITERATION" >>"$WORLD/at"; [ $PAWL_ITERATION = 2 ] && until [ -e "$WORLD/go" ]; do sleep 0.05; done; `+raises).on(c)
	w.configures("[user]\nname = Ann\nemail = ann@example.com\n")
	w.git("clone", "--quiet", "--bare", w.repo, filepath.Join(w.dir, "project.git"))
	url := w.daemon("--enable=receive-pack") + "/project.git"
	starter, err := buildStarter()
	require.NoError(t, err)
	worker, err := buildWorker()
	require.NoError(t, err)
	// Who has no container engine has the compose file's starter all the same.
	w.write("docker.sh", "#!/bin/sh\n[ \"$1 $2 $3 $4\" = 'compose run --rm starter' ] && shift 4 && exec starter \"$@\"\n")
	require.NoError(t, os.Chmod(filepath.Join(w.dir, "docker.sh"), 0o755))
	w.calls(map[string]string{"pawl": program(t), "starter": starter, "worker": worker, "temporal": cli, "docker": filepath.Join(w.dir, "docker.sh")})
	w.set(doc{"limits": doc{"iterations": 3}})
	delete(w.spec, "repo")
	require.NoError(t, os.Rename(w.specFile(), filepath.Join(w.repo, "pawl.yaml")))
	w.commit("a loop")

	p := w.pageOf("docs/operating.md", map[string]string{
		"git://127.0.0.1/project.git": url, "git://git/project.git": url, "URL": url, "ID": w.loop, "FILE": "pawl.yaml",
		"pawl.yaml --ledger": "pawl.yaml --set repo.url=" + url + " --ledger",
	}, several...)
	p.folder = w.repo
	require.Contains(t, p.run(several[1]), w.loop)
	w.at(2)
	p.values["COMMIT"], _, _ = strings.Cut(p.shell("git ls-remote "+url+" refs/pawl-ledger/"+w.loop), "\t")
	require.Contains(t, p.run(several[2]), p.values["COMMIT"])
	w.write("go", "")
	w.stands("completed")
	require.Equal(t, "12", w.has("refs/heads/pawl/"+w.loop, "work/n"))

	// A worker with a version takes loops once that is the current one.
	require.NoError(t, c.worker.stop(syscall.SIGINT))
	cmd := exec.Command("bash", "-c", "exec "+p.next(several[0]))
	cmd.Dir, cmd.Env = c.dir, append(environ(c.home, c.dir), "TEMPORAL_ADDRESS="+c.address, "PATH="+filepath.Dir(worker)+":"+os.Getenv("PATH"))
	c.worker, err = serve(cmd, filepath.Join(c.dir, "versioned.log"), "the worker is ready")
	require.NoError(t, err)
	w.loop += "v"
	require.Equal(t, 0, w.starter("start", "--yes", filepath.Join(w.repo, "pawl.yaml"), "--set", "name="+w.loop, "--set", "repo.url="+url).code)
	require.NotContains(t, w.temporal("workflow", "show", "--workflow-id", w.loop), "WorkflowTaskStarted")
	w.until("the version is known", func() bool {
		return w.tryTemporal("worker", "deployment", "describe-version", "--deployment-name", "pawl", "--build-id", "7").code == 0
	})
	p.run(several[0])
	w.stands("completed")

	p.said("starter start FILE") // that is what compose's starter has done
	p.allRan()
	w.before = w.snapshot() // it has fetched
}
