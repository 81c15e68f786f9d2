package modules_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// TestARealModulesCoverageIsRaised lets a scripted agent raise the statement coverage of a public module that others
// wrote, from the module cache. The module's own tests judge it. The agent writes one test that covers more, one that
// covers nothing new, one that fails, changes the code under test once, and writes one more test that covers more.
func TestARealModulesCoverageIsRaised(t *testing.T) {
	world.Slow(t, "five runs of a module's own tests")
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/shopspring/decimal").Output()
	require.NoError(t, err)
	source := strings.TrimSpace(string(out))
	require.NotEmpty(t, source)

	w := world.New(t, `
case $PAWL_ITERATION in
1) cat "$WORLD/compare.txt" > extra_compare_test.go; echo "cover Compare with a test";;
2) cat "$WORLD/add.txt" > extra_add_test.go; echo "cover Add once more";;
3) cat "$WORLD/wrong.txt" > extra_wrong_test.go; echo "cover Rat with a test";;
4) sed -i 's/return d.Cmp(d2)/return d.Cmp(d2) + 0/' decimal.go; echo "simplify Compare";;
5) cat "$WORLD/cash.txt" > extra_cash_test.go; echo "cover StringFixedCash with a test";;
esac`)
	for name, body := range map[string]string{
		"compare.txt": `package decimal

import "testing"

func TestExtraCompare(t *testing.T) {
	if New(1, 0).Compare(New(2, 0)) != -1 || !New(1, 0).IsPositive() {
		t.Fatal("one is positive and less than two")
	}
}
`,
		"add.txt": `package decimal

import "testing"

func TestExtraAdd(t *testing.T) {
	if !New(1, 0).Add(New(2, 0)).Equal(New(3, 0)) {
		t.Fatal("one and two are three")
	}
}
`,
		"wrong.txt": `package decimal

import "testing"

func TestExtraRat(t *testing.T) {
	if New(1, 0).Rat().String() != "2/1" {
		t.Fatal("this test is wrong")
	}
}
`,
		"cash.txt": `package decimal

import "testing"

func TestExtraCash(t *testing.T) {
	if got := RequireFromString("3.43").StringFixedCash(10); got != "3.40" {
		t.Fatal(got)
	}
}
`,
	} {
		w.Write(name, body)
	}
	require.NoError(t, os.RemoveAll(w.Repo))
	require.NoError(t, os.CopyFS(w.Repo, os.DirFS(source)))
	w.Init()
	require.NoError(t, filepath.WalkDir(w.Repo, func(path string, d os.DirEntry, err error) error {
		if err != nil || strings.Contains(path, "/.git") {
			return err
		}
		return os.Chmod(path, 0o755) // the module cache is read-only
	}))
	w.Commit("a module that others wrote")
	w.Before = w.Snapshot()
	w.Set(doc{
		"goal": "raise the statement coverage", "scope": []string{"**/*_test.go"}, "newFiles": "allow",
		// The slow tests of the module cover nothing in addition.
		"verify": doc{"command": "go test -vet=off -cover -skip 'Tan|Exp|Pow|Large|Extreme|Round2|Rem2' .", "pattern": `coverage: ([0-9.]+)%`, "timeout": "5m"},
		"guard":  doc{"command": "go test -vet=off -skip 'Tan|Exp|Pow|Large|Extreme|Round2|Rem2' ."},
		"limits": doc{"iterations": 5},
	})
	r := w.Run(0)

	rows := w.Results(w.Loop)
	require.Len(t, rows, 6)
	var course []string
	for _, row := range rows[1:] {
		course = append(course, row.Kept()+" "+row.Description())
	}
	require.Equal(t, []string{
		"yes cover Compare with a test", "no cover Add once more", "no error:verify-crash: cover Rat with a test",
		"no policy:scope: simplify Compare", "yes cover StringFixedCash with a test",
	}, course)
	require.Equal(t, 2, r.Result.KeptCount)
	require.Greater(t, rows[5][1], rows[0][1])
	require.NotContains(t, w.OnBranch(), "extra_wrong_test.go")
}
