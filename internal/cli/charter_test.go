package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli"
	"pawl/internal/proc"
)

func TestMain(m *testing.M) {
	proc.Main()
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
defaults: {scope: ["src/**"], test: {command: "exit 0"}, agent: {command: ["no-such-agent"]}, approvals: {tools: ["*"]}}
tiers: [{tier: T1, paths: ["db/**"]}]
`

func TestValidateOfAStewardShowsWhatItMayDo(t *testing.T) {
	b := newBench(t, newFake())
	b.repository()
	file := b.file("steward.yaml", shop)
	require.Equal(t, 0, b.run(nil, "validate", file), b.stderr.String())
	for _, want := range []string{"Charter of shop", "T1: paths db/**", "deliver: defaults has all that one needs", "improve: a plan has to say verify.command", "a task after 100 actions"} {
		require.Contains(t, b.stdout.String(), want)
	}
	for _, want := range []string{"ready; start it with `pawl steward up " + file, "there is no planner", "no-such-agent is not on this PATH"} {
		require.Contains(t, b.stderr.String(), want)
	}
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
	require.Equal(t, 2, b.run(nil, "validate", "--id", "other", b.file("steward.yaml", shop)))
	require.Contains(t, b.stderr.String(), "the ID of a steward is its name (shop)")
}
