package commands_test

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

	"pawl/test/harness/world"
)

// operating are the pages for people who run pawl. These tests run every command in them, first on the embedded engine,
// then on a cluster with a shared repository.
var operating = []string{"docs/guides/answering.md", "docs/guides/operating.md", "docs/guides/servers.md", "docs/reference/settings.md"}

// local are the headings about one host with the embedded engine.
var local = []string{
	"Where things are", "Processes", "When something is wrong", "When something dies",
	"What a loop proposes", "Is the record what it was?", "Answering", "Being told", "Ending a loop", "Making room", "The worker's settings", "The compose file", "Watching it",
}

// several are the headings about a cluster, and about hosts that share a repository.
var several = []string{"Slots and versions", "In production: worker, starter, compose", "A repository by its URL"}

// asking are the headings about an engine that requires a token. test/e2e/service tests such an engine.
var asking = []string{"Who may approve"}

// foreign are the headings with commands of programs that are neither pawl's nor in any test.
var foreign = []string{"Searching for secrets"}

func TestOperatingPage_EveryHeadingIsRead(t *testing.T) {
	for _, m := range heading.FindAllStringSubmatch(textOf(operating), -1) {
		require.Contains(t, slices.Concat(local, several, asking, foreign), m[1])
	}
}

func TestOperatingPage_EveryAnswerIsTaken(t *testing.T) {
	world.Slow(t, "the demo and the first loop are run")
	w := world.Alone(t, `until [ -e "$WORLD/go" ]; do sleep 0.05; done; echo >"$WORLD/at"; `+world.Raises)
	t.Parallel()
	up, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, up.Stop()) })
	calls(w, map[string]string{"pawl": world.Program(t)})
	p := pagesOf(w, operating, map[string]string{"ID": w.Loop, "CHOICE": "retry", "verify.command=…": `verify.command="sh measure.sh"`}, local...)
	atGate := func(kind string) world.State {
		t.Helper()
		var st world.State
		w.Until("the gate "+kind, func() bool {
			st = w.Waits("waiting")
			return st.Gate.Kind == kind && st.Ledger != ""
		})
		if st.Gate.Hash == "" {
			return st
		}
		p.values["0123456789abcdef"] = st.Gate.Hash[:16]
		p.values["--hash …"] = "--hash " + st.Gate.Hash[:16]
		return st
	}
	w.Set(doc{
		"guard":  doc{"command": "sh guard.sh"},
		"limits": doc{"iterations": 4, "onExhausted": "ask"}, "approvals": doc{"diff": "required"},
		"breakpoints": []string{"baseline"},
		"verify":      doc{"command": "[ -e " + w.Dir + "/at ] && echo none || cat work/n"},
	})
	w.Write("go", "")
	w.Done("start", w.SpecFile())
	w.Waits("paused")
	p.types("pawl continue ID")
	atGate("contract")
	p.types("pawl show ID")
	p.types("pawl approve ID --hash …")
	require.Equal(t, []string{"retry", "halt"}, atGate("question").Gate.Choices)
	p.types("pawl answer ID CHOICE")
	w.Until("it asks again", func() bool { st := w.Show(); return st.Status == "waiting" && st.Iteration == 4 })
	p.types("pawl amend ID --set verify.command=…")
	atGate("contract")
	p.types("pawl approve ID --hash …")
	atGate("budget")
	require.NoError(t, os.Remove(filepath.Join(w.Dir, "go")))
	p.types("pawl extend ID --limit iterations=20 --hash …")
	w.Until("it goes on", func() bool { st := w.Show(); return st.Status == "running" && st.Iteration == 5 })

	// Where things are. The loop has all of them except those that only validate makes.
	require.Equal(t, 0, w.Pawl("validate", "--schema").Code)
	places := regexp.MustCompile("(?m)^\\| `([^|]*)` \\|").FindAllStringSubmatch(regexp.MustCompile(`(?s)## Where things are.*?\n## `).FindString(textOf(operating)), -1)
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
			if slices.Contains([]string{"validate/", "baselines/", "demo/", "engine/pass.json", "engine/temporal.toml", "engine/certificate.pem", "triggers.json", "prices.json", "secrets/"}, place) {
				continue // these exist only for a running validate, a loop that was validated, a demo, an engine that requires a token, a steward with triggers, or by hand
			}
			found, err := filepath.Glob(filepath.Join(w.Home, regexp.MustCompile(`<[^>]*>`).ReplaceAllString(place, "*")))
			require.NoError(t, err)
			require.NotEmpty(t, found, place)
		}
	}
	entries, err := os.ReadDir(w.Home)
	require.NoError(t, err)
	for _, e := range entries {
		require.Contains(t, named, e.Name(), "docs/reference/settings.md does not say what this is")
	}

	follow := w.Start(strings.Fields(p.fill("watch ID"))...)
	p.said("pawl watch ID", "pawl up --auth", "pawl steward show NAME TASK") // test/e2e/service and test/e2e/steward run them
	w.Until("it follows", func() bool { return world.ReadFile(follow.Err) != "" })
	p.types("pawl mode ID plan")
	require.Equal(t, 5, follow.Wait().Code)
	require.Contains(t, p.types("pawl report ID"), "Loop halted: 5 iterations")
	require.Contains(t, p.types("pawl log ID --verify"), "whole")
	require.Contains(t, w.Done("doctor", "--json").Out, `"git"`)

	// Rejected at a gate, and ended by a note.
	w.Loop += "b"
	p.values["ID"] = w.Loop
	w.Set(doc{"name": w.Loop, "limits": doc{"iterations": 1}, "breakpoints": []string{}, "verify": doc{"command": "sh measure.sh"}})
	w.Done("start", w.SpecFile())
	atGate("contract")
	p.types("pawl reject ID")
	p.said(`pawl reject ID --note "why"`) // TestE3 has what the agent reads
	w.Waits("halted")
	w.Done("start", w.SpecFile(), "--yes")
	w.Waits("running")
	p.types("pawl halt ID")
	w.Waits("halted")

	// A proposal.
	w.Write("go", "")
	w.Set(doc{"approvals": doc{"diff": "required"}, "limits": doc{"onExhausted": "halt"}})
	w.Done("start", w.SpecFile(), "--yes")
	atGate("diff")
	require.Contains(t, p.run("What a loop proposes"), "+11")
	require.Equal(t, "11", w.Git("show", "main:work/n"))
	w.Before = w.Snapshot() // the repository as it is now
	p.allRan()
}

func TestOperatingPage_SeveralHosts(t *testing.T) {
	world.Slow(t, "a cluster of several hosts")
	c := world.NewCluster(t)
	w := world.Alone(t, `echo "$PAWL_ITERATION" >>"$WORLD/at"; [ $PAWL_ITERATION = 2 ] && until [ -e "$WORLD/go" ]; do sleep 0.05; done; `+world.Raises).On(c)
	w.Configures("[user]\nname = Ann\nemail = ann@example.com\n")
	w.Git("clone", "--quiet", "--bare", w.Repo, filepath.Join(w.Dir, "project.git"))
	url := w.Daemon("--enable=receive-pack") + "/project.git"
	starter, err := world.BuildStarter()
	require.NoError(t, err)
	worker, err := world.BuildWorker()
	require.NoError(t, err)
	// Without a container engine, a script runs the compose file's starter.
	w.Write("docker.sh", "#!/bin/sh\n[ \"$1 $2 $3 $4\" = 'compose run --rm starter' ] && shift 4 && exec starter \"$@\"\n")
	require.NoError(t, os.Chmod(filepath.Join(w.Dir, "docker.sh"), 0o755))
	calls(w, map[string]string{"pawl": world.Program(t), "starter": starter, "worker": worker, "temporal": world.CLI, "docker": filepath.Join(w.Dir, "docker.sh")})
	w.Set(doc{"limits": doc{"iterations": 3}})
	delete(w.Spec, "repo")
	require.NoError(t, os.Rename(w.SpecFile(), filepath.Join(w.Repo, "pawl.yaml")))
	w.Commit("a loop")

	p := pagesOf(w, operating, map[string]string{
		"git://127.0.0.1/project.git": url, "git://git/project.git": url, "URL": url, "ID": w.Loop, "FILE": "pawl.yaml",
		"pawl.yaml --ledger": "pawl.yaml --set repo.url=" + url + " --ledger",
	}, several...)
	p.folder = w.Repo
	require.Contains(t, p.run(several[1]), w.Loop)
	w.At(2)
	p.values["COMMIT"], _, _ = strings.Cut(p.shell("git ls-remote "+url+" refs/pawl-ledger/"+w.Loop), "\t")
	require.Contains(t, p.run(several[2]), p.values["COMMIT"])
	w.Write("go", "")
	w.Stands("completed")
	require.Equal(t, "13", w.Has("refs/heads/pawl/"+w.Loop, "work/n"), "the iteration that was under way counts")

	// A worker with a version takes loops once its version is the current one.
	require.NoError(t, c.Worker.Stop(syscall.SIGINT))
	cmd := exec.Command("bash", "-c", "exec "+p.next(several[0]))
	cmd.Dir, cmd.Env = c.Dir, append(world.Environ(c.Home, c.Dir), "TEMPORAL_ADDRESS="+c.Address, "PATH="+filepath.Dir(worker)+":"+os.Getenv("PATH"))
	c.Worker, err = world.Serve(cmd, filepath.Join(c.Dir, "versioned.log"), "the worker is ready")
	require.NoError(t, err)
	w.Loop += "v"
	require.Equal(t, 0, w.Starter("start", "--yes", filepath.Join(w.Repo, "pawl.yaml"), "--set", "name="+w.Loop, "--set", "repo.url="+url).Code)
	require.NotContains(t, w.Temporal("workflow", "show", "--workflow-id", w.Loop), "WorkflowTaskStarted")
	w.Until("the version is known", func() bool {
		return w.TryTemporal("worker", "deployment", "describe-version", "--deployment-name", "pawl", "--build-id", "7").Code == 0
	})
	p.run(several[0])
	w.Stands("completed")

	p.said("starter start FILE") // compose's starter has run this
	p.allRan()
	w.Before = w.Snapshot() // the repository after the fetch
}
