package security_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// adding is a Go package with a test that the loop's agent can't change.
var adding = map[string]string{
	"go.mod": "module poc\n\ngo 1.21\n", "calc/calc.go": "package calc\n\nfunc Add(a, b int) int { return a + b }\n",
	"calc/calc_test.go": `package calc_test

import (
	"testing"

	"poc/calc"
)

func TestAdd(t *testing.T) {
	if calc.Add(1, 2) != 3 {
		t.Fatal("1 + 2 is", calc.Add(1, 2))
	}
}
`,
}

// poisoned is a package that still adds. When its test runs, it makes Go's cache answer a question that nobody has asked
// yet: the entry for the package with a wrong sum leads to the object of the right one.
const poisoned = `package calc

import (
	"os"
	"os/exec"
)

func Add(a, b int) int { return a + b }

func init() {
	if os.Getenv("POISONS") == "" {
		_ = exec.Command("sh", "-ec", poison).Run()
	}
}

const poison = ` + "`" + `export POISONS=1
cp calc.go /tmp/calc.go
export_of() { printf 'package calc\n\nfunc Add(a, b int) int { return a %s b }\n' "$1" >calc.go; go list -export -f '{{.Export}}' .; }
out_of() { basename "$1" | cut -d- -f1; }
good=$(export_of +)
touch /tmp/mark
bad=$(export_of -)
mv /tmp/calc.go calc.go
entry=$(find "$GOCACHE" -name '*-a' -newer /tmp/mark -exec grep -l "$(out_of "$bad")" {} +)
sed -i "s/$(out_of "$bad") *[0-9]*/$(printf '%s %20d' "$(out_of "$good")" "$(stat -c %s "$good")")/" "$entry"
` + "`" + `
`

// TestE6_PoisonThatAKeptChangeLeavesIsNotProposed has a change that is honestly kept poison the judge's build cache. The
// next change takes the poison out of the code and breaks it, and go test prints a PASS from the cache. From scratch it
// fails, and nothing is proposed. It takes a layer over the user's caches: in bubblewrap, where caches begin empty, the
// guard fails at once.
func TestE6_PoisonThatAKeptChangeLeavesIsNotProposed(t *testing.T) {
	world.Slow(t, "TestE6_PoisonInWhatTheJudgeKeepsIsNotProposed judges from scratch")
	for _, way := range []string{byRoot, byOrdinary} {
		t.Run(way, func(t *testing.T) {
			if way != byRoot {
				world.Slow(t, "the layers are the same")
			}
			needsWay(t, way)
			w, use := worldOf(t, way)
			w.Script(`echo $(($(cat work/n) + 1)) >work/n; cp "$WORLD/$PAWL_ITERATION.go" calc/calc.go; echo "change $PAWL_ITERATION"`)
			for name, content := range adding {
				w.Write("repo/"+name, content)
			}
			w.Commit("a package that adds")
			w.Write("1.go", poisoned)
			w.Write("2.go", "package calc\n\nfunc Add(a, b int) int { return a - b }\n")
			w.Before = w.Snapshot()
			w.Set(doc{"scope": []string{"work/**", "calc/**"}, "guard": doc{"command": "go test ./calc"}, "limits": doc{"iterations": 2}, "sandbox": doc{"use": use}})
			servesIn(t, w, way)
			r := w.Run(3)

			rows := w.Results(w.Loop)
			require.Len(t, rows, 3)
			require.Equal(t, []string{"yes", "yes"}, []string{rows[1].Kept(), rows[2].Kept()}, "the cache answers, or this test shows nothing")
			require.Equal(t, "NOT_REPRODUCED", r.Result.ErrorCode)
			require.Contains(t, r.Result.Reason, "the guard command passed before, and fails from scratch (exit 1): `go test ./calc`")
			require.Contains(t, r.Result.Reason, "1 + 2 is -1")
			require.Nil(t, r.Result.Proposal)
			require.Contains(t, w.Pawl("show", w.Loop).Out, "the guard command passed before")
			require.NotZero(t, w.Pawl("apply", w.Loop).Code)
		})
	}
}

// TestE6_AnHonestLoopPassesFromScratch: setup runs again for it, and people are told. What setup wrote to caches is there
// for each judgement.
func TestE6_AnHonestLoopPassesFromScratch(t *testing.T) {
	world.Slow(t, "the demo passes from scratch")
	needsWay(t, byRoot)
	w, use := worldOf(t, byRoot)
	w.Script(world.Raises)
	for name, content := range adding {
		w.Write("repo/"+name, content)
	}
	w.Write("repo/.gitignore", "tool\n")
	w.Commit("a package that adds")
	w.Before = w.Snapshot()
	w.Set(doc{
		"setup":  doc{"command": `go vet ./calc && date +%N >tool && echo made >"$GOCACHE/made" && basename "$PWD" | cut -c1 >>"` + w.Dir + `/setups"`},
		"guard":  doc{"command": `test -s tool && test -s "$GOCACHE/made" && go test ./calc`},
		"limits": doc{"iterations": 2}, "sandbox": doc{"use": use},
	})
	r := w.Run(0)
	require.NotNil(t, r.Result.Proposal)
	require.Equal(t, 2, r.Result.KeptCount)
	require.Equal(t, "j\nd\nj\n", w.Read("setups"))
	require.Contains(t, w.Pawl("show", w.Loop).Out, "again in a fresh clone: passes, 12")
	events, _ := w.Events()
	require.Contains(t, world.Types(events), "judged_from_scratch")
	require.NotContains(t, world.Types(events), "warned")
}

// TestE6_PoisonInWhatTheJudgeKeepsIsNotProposed: what judge.keep names also stays of a change that is discarded. Here it
// holds the answers of a guard that runs nothing twice.
func TestE6_PoisonInWhatTheJudgeKeepsIsNotProposed(t *testing.T) {
	needsWay(t, byRoot)
	w, use := worldOf(t, byRoot)
	w.Script(`case $PAWL_ITERATION in
1) echo 5 >work/n; echo 'mkdir -p kept; : >kept/$(echo bad | sha256sum | cut -c1-16)' >work/a.part; echo "poison" ;;
2) echo 11 >work/n; echo bad >work/other; echo "break it" ;;
esac`)
	w.Write("repo/.gitignore", "kept/\n")
	w.Write("repo/work/a.part", ":\n")
	w.Write("repo/measure.sh", "for part in work/*.part; do sh $part; done; cat work/n\n")
	w.Write("repo/guard.sh", "key=kept/$(sha256sum <work/other | cut -c1-16)\n[ -e $key ] || { ! grep -q bad work/other && mkdir -p kept && : >$key; }\n")
	w.Commit("a guard that remembers")
	w.Before = w.Snapshot()
	w.Set(doc{"guard": doc{"command": "sh guard.sh"}, "judge": doc{"keep": []string{"kept"}}, "limits": doc{"iterations": 2}, "sandbox": doc{"use": use}})
	r := w.Run(3)
	rows := w.Results(w.Loop)
	require.Equal(t, []string{"no", "yes"}, []string{rows[1].Kept(), rows[2].Kept()}, "the guard remembers, or this test shows nothing")
	require.Equal(t, "NOT_REPRODUCED", r.Result.ErrorCode)
	require.Contains(t, r.Result.Reason, "the guard command passed before, and fails from scratch (exit 1): `sh guard.sh`")
	require.Nil(t, r.Result.Proposal)
}

// TestE6_ACacheDeeperThanAPathMayBeLongStopsNothing: pawl moves what kept changes wrote to caches, folder by folder.
func TestE6_ACacheDeeperThanAPathMayBeLongStopsNothing(t *testing.T) {
	world.Slow(t, "a cache of ordinary depth is moved in the same way")
	needsWay(t, byRoot)
	w, use := worldOf(t, byRoot)
	w.Script(world.Raises)
	w.Write("repo/measure.sh", `perl -e 'chdir $ENV{GOCACHE} or die; my $d = "d" x 200; for (1..40) { mkdir $d; chdir $d or die } open(F, ">", "f$$") or die'; cat work/n`+"\n")
	w.Commit("a measure that writes deep")
	w.Before = w.Snapshot()
	w.Set(doc{"verify": doc{"evidence": "single"}, "limits": doc{"iterations": 3}, "sandbox": doc{"use": use}})
	r := w.Run(0)
	require.Equal(t, 3, r.Result.KeptCount)
	require.NotNil(t, r.Result.Proposal)
}
