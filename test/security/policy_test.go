package security_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// Each rule of a policy undoes the iteration that breaks it, and no other.
func TestL5_PoliciesDiscard(t *testing.T) {
	deeds := []deed{
		{"change two lines", `echo x >>work/other`, ""},
		{"change too many lines", `seq 100 >>work/other`, "policy:maxLines"},
		{"hide too many lines behind a NUL", `printf '\0' >>work/other; seq 100 >>work/other`, "policy:binary"},
		{"change a file too many", `touch work/new; echo y >>work/other`, "policy:maxFiles"},
		{"write a binary file", `printf 'a\0b' >work/other`, "policy:binary"},
		{"write a large file", `head -c 3000 /dev/zero | tr "\0" x >work/other`, "policy:maxFileBytes"},
		{"change nothing of that kind", ``, ""},
	}
	w := world.New(t, "").Does(deeds...).Set(doc{
		"guard": doc{"policy": "small"}, "newFiles": "allow",
		"policies": doc{"small": doc{"maxFiles": 2, "maxLines": 50, "binary": "deny", "maxFileBytes": 2000}},
	})
	w.Run(0)
	w.Come(deeds...)
	st := w.Show()
	require.NotContains(t, w.OnBranch(), "work/new")
	require.Equal(t, "small", event(w, `policy:maxLines`)["judgement"].(doc)["policy"])
	require.Contains(t, st.ChangedFiles, "work/other")
}

// The radius counts all changes of the loop, also undone ones.
func TestL5_TheRadiusOfTheLoopIsAccumulated(t *testing.T) {
	world.Slow(t, "internal/loop/rules adds it up")
	deeds := []deed{
		{"raise the number", ``, ""},
		{"fail the guard", `echo bad >work/other`, "guard-fail"},
		{"touch a third file", `touch work/new`, "policy:maxTotalFiles"},
		{"go on with the first two", `echo fine >work/other`, ""},
		{"write more than there may be", `seq 30 >work/other`, "policy:maxTotalLines"},
	}
	w := world.New(t, "").Does(deeds...).Set(doc{
		"guard": doc{"command": "sh guard.sh", "policy": "small"}, "newFiles": "allow", "limits": doc{"reworks": 0},
		"policies": doc{"small": doc{"maxTotalFiles": 2, "maxTotalLines": 20}},
	})
	w.Run(0)
	w.Come(deeds...)
}

// A secret blocks the loop. It is named by file and line and never shown.
func TestASecretBlocksTheLoop(t *testing.T) {
	token := "gh" + "p_" + strings.Repeat("q7Zp2X", 6)
	w := world.New(t, world.Once(`printf 'one\n%s\n' "gh""p_$(printf 'q7Zp2X%.0s' 1 2 3 4 5 6)" >work/other`)).Set(doc{"limits": doc{"iterations": 2}})
	r := w.Run(4)
	require.Equal(t, "guard", r.Gate.Kind)
	st := w.Show()
	require.Contains(t, st.Gate.Summary, "blocked by secrets: work/other:2")
	require.Equal(t, []string{"secrets: work/other:2, it looks like a GitHub token"}, st.LastGuard.Violations)
	require.Contains(t, string(must(os.ReadFile(filepath.Join(st.Desk, "work", "other")))), token, "the scenario is what it says")
	require.NoError(t, os.WriteFile(filepath.Join(st.Desk, "work", "other"), []byte("good\n"), 0o644))
	require.Equal(t, 0, w.Pawl("continue", w.Loop).Code)
	w.Waits("completed")
	require.Equal(t, []string{"loop(iter-2): raise the number", "loop(iter-1): raise the number"}, w.Subjects())
	require.NotContains(t, w.Pawl("log", w.Loop, "--all", "--json").Out, token)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestE6_ASpecWithACredentialNeverReachesTheLedger: the ledger is pushed and never changes.
func TestE6_ASpecWithACredentialNeverReachesTheLedger(t *testing.T) {
	world.Slow(t, "TestASecretBlocksTheLoop looks for them as well")
	w := world.New(t, world.Raises)
	token := "ghp_" + strings.Repeat("q7Zp2X", 6)
	w.Set(doc{"agent": doc{"env": doc{"WORLD": w.Dir, "GH_TOKEN": token}}})
	for _, args := range [][]string{{"validate"}, {"run", "--yes"}} {
		s := w.Pawl(append(args, w.SpecFile())...)
		require.Equal(t, 2, s.Code, "%s%s", s.Out, s.Err)
		require.Contains(t, s.Out+s.Err, "agent.env.GH_TOKEN contains a GitHub token, and pawl would push it with the ledger, where it stays")
		require.Contains(t, s.Out+s.Err, "name it in the spec: GH_TOKEN: $GH_TOKEN")
		require.NotContains(t, s.Out+s.Err, token)
	}
	require.Empty(t, w.Git("for-each-ref", "refs/pawl-ledger"))
	s := w.Pawl("amend", w.Loop, "--set", "guard.command=GH="+token+" sh guard.sh")
	require.Equal(t, 2, s.Code, s.Err)
	require.Contains(t, s.Err, "guard.command contains a GitHub token")
}

// What decides how a sealed file is checked out, and what contains it, is sealed, too.
func TestP3_WhateverIsDoneAroundASealedFile(t *testing.T) {
	world.Slow(t, "TestEscapes changes sealed files, too")
	deeds := []deed{
		{"convert it by attributes", `echo "* text eol=crlf" >work/eval/.gitattributes`, ""},
		{"convert it from above", `echo "* ident" >.gitattributes`, ""},
		{"make its folder a repository", `git init -q work/eval; echo "echo 99" >work/eval/score.sh`, ""},
		{"make its folder a link", `rm -rf work/eval; ln -s . work/eval`, ""},
		{"make it a link", `ln -sf ../n work/eval/score.sh`, ""},
		{"make it another name of a file", `ln -f work/n work/eval/score.sh`, ""},
		{"change its mode", `chmod +x work/eval/score.sh`, ""},
		{"move it", `git mv work/eval/score.sh work/score.sh`, ""},
	}
	w := world.New(t, "")
	w.Write("repo/work/eval/score.sh", "cat work/n\n")
	w.Commit("an evaluator in the scope")
	w.Before = w.Snapshot()
	w.Does(deeds...).Set(doc{"verify": doc{"command": "sh work/eval/score.sh"}, "scope": []string{"**"}, "newFiles": "allow"})
	w.Run(4)
	for i, d := range deeds {
		st := w.Waits("blocked")
		require.Equal(t, i+1, st.Iteration, d.Name())
		require.Contains(t, st.Gate.Summary, "blocked by sealed: ", d.Name())
		dir := filepath.Join(st.Desk, "work", "eval")
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "score.sh"), []byte("cat work/n\n"), 0o644))
		os.Remove(filepath.Join(st.Desk, ".gitattributes"))
		os.Remove(filepath.Join(st.Desk, "work", "score.sh"))
		require.Equal(t, 0, w.Pawl("continue", w.Loop, "--gate", st.Gate.ID).Code)
	}
	w.Waits("completed")
	w.Come(deeds...)
}

// event returns the first event of the log that contains a text.
func event(w *world.World, text string) doc {
	w.T.Helper()
	for line := range strings.Lines(w.Pawl("log", w.Loop, "--json").Out) {
		if strings.Contains(line, text) {
			var e doc
			require.NoError(w.T, json.Unmarshal([]byte(line), &e))
			return e
		}
	}
	require.Fail(w.T, "no event with "+text)
	return nil
}

// Policies are judged before any command of the spec runs on a change, also before the check on the desk.
func TestP3_PoliciesComeBeforeTheCheck(t *testing.T) {
	world.Slow(t, "TestL5_PoliciesDiscard has policies")
	deeds := []deed{{"a change outside", "echo x >>README.md", "policy:scope"}, {"a change inside", "", ""}}
	w := world.New(t, "").Does(deeds...)
	w.Set(doc{"check": doc{"command": "cat README.md >>" + filepath.Join(w.Dir, "checked")}})
	w.Run(0)
	w.Come(deeds...)
	require.Equal(t, "a hill\na hill\n", w.Read("checked"), "it ran on the unchanged code, and on the change inside alone")
}
