package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli"
	"pawl/internal/exec/supervisor"
	"pawl/internal/git/store"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/test/harness/testdir"
)

func TestMain(m *testing.M) {
	supervisor.Main()
	testdir.InMemory()
	os.Exit(m.Run())
}

// repository makes the repository shop with one commit.
func (b *bench) repository() {
	b.t.Helper()
	dir := filepath.Join(b.dir, "shop")
	require.NoError(b.t, os.MkdirAll(filepath.Join(dir, "src"), 0o700))
	b.file("shop/src/a.go", "package src\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"}} {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		require.NoError(b.t, err, string(out))
	}
}

const shop = `kind: steward
name: shop
repo: {path: shop, base: main}
defaults: {scope: ["src/**"], test: {command: "exit 0"}, agent: {command: ["sh"]}, approvals: {tools: ["*"]}}
tiers: [{tier: T1, paths: ["db/**"]}]
`

func TestValidateOfAStewardShowsWhatItMayDo(t *testing.T) {
	b := newBench(t, newFake())
	b.repository()
	file := b.file("steward.yaml", shop)
	require.Equal(t, 0, b.run(nil, "validate", file), b.stderr.String())
	for _, want := range []string{"Charter of shop", "T1: paths db/**", "deliver: defaults has everything it needs", "improve: a plan has to set verify.command", "a task stops and asks you after more than 100 actions"} {
		require.Contains(t, b.stdout.String(), want)
	}
	for _, want := range []string{"ready; start it with `pawl steward up " + file, "there is no planner"} {
		require.Contains(t, b.stderr.String(), want)
	}
	require.Equal(t, 2, b.run(nil, "validate", file, "--set", "defaults.agent.command=no-such-agent"))
	require.Contains(t, b.stderr.String(), "the agent's program no-such-agent is not on the PATH")
	require.Equal(t, 0, b.run(nil, "validate", file, "--set", "tiers=[]"))
	require.Contains(t, b.stderr.String(), "ready; start it with `pawl steward up "+file+" --set 'tiers=[]'`", "as it was validated")
	b.stdout = lockedBuffer{}
	require.Equal(t, 0, b.run(nil, "validate", "--json", file))
	var v cli.Validation
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &v))
	require.True(t, v.OK)
	require.Equal(t, "shop", v.Charter.Name)
	require.Nil(t, v.Contract, "a steward has none")
}

func TestValidateOfAStewardNamesWhatIsWrongWithFileAndLine(t *testing.T) {
	b := newBench(t, newFake())
	b.repository()
	file := b.file("steward.yaml", shop+"limits: {actions: 0}\nqueue: 3\n")
	require.Equal(t, 2, b.run(nil, "validate", file))
	require.Contains(t, b.stderr.String(), file+":6: limits.actions: is 0; want: 1 or more")
	require.Contains(t, b.stderr.String(), file+":7: queue: is not a key of a spec")
	require.Equal(t, 2, b.run(nil, "validate", "--json", file))
	var v cli.Validation
	require.NoError(t, json.Unmarshal([]byte(b.stdout.String()), &v))
	require.Equal(t, []string{"limits.actions", "queue"}, []string{v.Problems[0].Key, v.Problems[1].Key})

	b = newBench(t, newFake())
	b.repository()
	secret := "triggers: [{name: ci, from: json, secretFile: ci.secret, task: {body: Mend the build}}]\n"
	require.Equal(t, 2, b.run(nil, "validate", b.file("steward.yaml", shop+secret), "--set", "repo.base=gone"))
	require.Contains(t, b.stderr.String(), "2 problems would keep this steward from its work (PRECONDITION_FAILED)")
	require.Contains(t, b.stderr.String(), "secret: triggers[0].secretFile: reading a secret")
	require.Contains(t, b.stderr.String(), "repository: ")
	require.Equal(t, 2, b.run(nil, "steward", "up", "--detach", b.file("steward.yaml", shop+secret)), "it is not begun either")
	require.Contains(t, b.stderr.String(), "triggers[0].secretFile: reading a secret")
	page := b.file("steward.yaml", shop+"remote: {api: https://github.com/acme/shop}\n")
	require.Equal(t, 2, b.run(nil, "validate", page))
	require.Contains(t, b.stderr.String(), "remote: remote.api does not end in /repos/OWNER/NAME")
	require.Equal(t, 2, b.run(nil, "steward", "up", "--detach", page))
	require.Contains(t, b.stderr.String(), "Write it as https://api.github.com/repos/OWNER/NAME.")
	require.Equal(t, 2, b.run(nil, "validate", "--id", "other", b.file("steward.yaml", shop)))
	require.Contains(t, b.stderr.String(), "the ID of a steward is its name (shop)")
}

func TestAStewardThatIsStartedIsSaidWhatValidateWouldSay(t *testing.T) {
	start := func(sets ...string) (out, said string) {
		f := project()
		f.silent = true
		b := overProject(t, f)
		b.repository()
		args := []string{"steward", "up", "--detach", b.file("steward.yaml", shop)}
		for _, set := range sets {
			args = append(args, "--set", set)
		}
		require.Equal(t, 0, b.run(nil, args...), "it is started: its first task may be to mend that: %s", b.stderr.String())
		return b.stdout.String(), b.stderr.String()
	}
	_, said := start()
	require.NotContains(t, said, "problem")
	out, said := start("defaults.setup.command=exit 4")
	require.Contains(t, said, "1 problem would keep this steward from its work:")
	require.Contains(t, said, "setup: ")
	require.Contains(t, out, "pawl steward submit shop FILE")
	_, said = start("defaults.check.command=exit 3")
	require.Contains(t, said, "check fails on the unchanged code (exit 3)")
}

// recorded makes this host hold the steward shop, whose ledger has no entry yet.
func (b *bench) recorded(closed bool) hostrecord.Record {
	b.t.Helper()
	b.repository()
	h, err := home.Open()
	require.NoError(b.t, err)
	dir := filepath.Join(b.dir, "store.git")
	_, err = store.Open(b.t.Context(), dir)
	require.NoError(b.t, err)
	r := hostrecord.Record{Loop: "shop", Ref: "shop", Kind: "steward", Repo: filepath.Join(b.dir, "shop"), Store: dir, Ledger: "refs/pawl-ledger/shop", Closed: closed}
	require.NoError(b.t, hostrecord.Write(h, r))
	return r
}

func TestWhatIsForLoopsSaysWhatThereIsForASteward(t *testing.T) {
	for _, engine := range []bool{true, false} {
		for command, instead := range map[string]string{"report": "pawl steward show shop", "diff": "pawl diff LOOP", "watch": "pawl log -f shop"} {
			b := overProject(t, project())
			if !engine {
				b.recorded(false)
				b.deps.Embedded.Find = func(context.Context, string) (cli.Found, bool) { return cli.Found{}, false }
			}
			require.Equal(t, 2, b.run(nil, command, "shop"), command)
			require.Contains(t, b.stderr.String(), "shop is a steward, not a loop (ALO_LOOP_NOT_FOUND)")
			require.Contains(t, b.stderr.String(), instead)
			require.Empty(t, b.stdout.String())
		}
	}
}

// There is nothing to prove, and nothing is damaged.
func TestALedgerWithoutAnEntryIsNotCalledDamaged(t *testing.T) {
	for closed, why := range map[bool]string{false: "has recorded nothing yet", true: "its start was refused"} {
		b := newBench(t, newFake())
		b.recorded(closed)
		b.noEngine()
		require.Equal(t, 2, b.run(nil, "log", "--verify", "shop"), closed)
		require.Contains(t, b.stderr.String(), "there is no steward shop (ALO_LOOP_NOT_FOUND)")
		require.Contains(t, b.stderr.String(), why)
		require.Empty(t, b.stdout.String())
	}
}

func TestCleanRemovesWhatAStewardThatHasEndedHolds(t *testing.T) {
	for _, closed := range []bool{false, true} {
		b := newBench(t, newFake())
		r := b.recorded(closed)
		h, err := home.Open()
		require.NoError(t, err)
		b.file("shop/.pawl", "exported")
		require.Equal(t, 0, b.run(nil, "clean", "--yes", "shop"), b.stderr.String())
		if !closed {
			require.Contains(t, b.stdout.String(), "stays   shop: everything (it has not ended)")
			require.DirExists(t, r.Store)
			continue
		}
		require.NoDirExists(t, r.Store)
		require.NoDirExists(t, h.Loop("shop"))
		require.FileExists(t, filepath.Join(b.dir, "shop", ".pawl"), "the project's own folder is left alone")
	}
}

func TestVerifyOfAStewardReadsItsLedgerByItsOwnRules(t *testing.T) {
	b := overProject(t, project())
	require.Equal(t, 2, b.run(nil, "log", "--verify", "shop"))
	require.Contains(t, b.stderr.String(), "this host has no ledger of the steward shop")
}
