package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each rule of a policy costs the iteration that breaks it, and no other.
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
	w := newWorld(t, "").does(deeds...).set(doc{
		"guard": doc{"policy": "small"}, "newFiles": "allow",
		"policies": doc{"small": doc{"maxFiles": 2, "maxLines": 50, "binary": "deny", "maxFileBytes": 2000}},
	})
	w.run(0)
	w.come(deeds...)
	st := w.show()
	require.NotContains(t, w.onBranch(), "work/new")
	require.Equal(t, "small", w.event(`policy:maxLines`)["judgement"].(doc)["policy"])
	require.Contains(t, st.ChangedFiles, "work/other")
}

// The radius is that of all changes of the loop, undone ones too.
func TestL5_TheRadiusOfTheLoopIsAccumulated(t *testing.T) {
	deeds := []deed{
		{"raise the number", ``, ""},
		{"fail the guard", `echo bad >work/other`, "guard-fail"},
		{"touch a third file", `touch work/new`, "policy:maxTotalFiles"},
		{"go on with the first two", `echo fine >work/other`, ""},
		{"write more than there may be", `seq 30 >work/other`, "policy:maxTotalLines"},
	}
	w := newWorld(t, "").does(deeds...).set(doc{
		"guard": doc{"command": "sh guard.sh", "policy": "small"}, "newFiles": "allow", "limits": doc{"reworks": 0},
		"policies": doc{"small": doc{"maxTotalFiles": 2, "maxTotalLines": 20}},
	})
	w.run(0)
	w.come(deeds...)
}

// A secret blocks; it is named by file and line and never shown.
func TestASecretBlocksTheLoop(t *testing.T) {
	token := "gh" + "p_" + strings.Repeat("q7Zp2X", 6)
	w := newWorld(t, once(`printf 'one\n%s\n' "gh""p_$(printf 'q7Zp2X%.0s' 1 2 3 4 5 6)" >work/other`)).set(doc{"limits": doc{"iterations": 2}})
	r := w.run(4)
	require.Equal(t, "guard", r.Gate.Kind)
	st := w.show()
	require.Contains(t, st.Gate.Summary, "blocked by secrets: work/other:2")
	require.Equal(t, []string{"secrets: work/other:2, it looks like a GitHub token"}, st.LastGuard.Violations)
	require.Contains(t, string(must(os.ReadFile(filepath.Join(st.Desk, "work", "other")))), token, "the scenario is what it says")
	require.NoError(t, os.WriteFile(filepath.Join(st.Desk, "work", "other"), []byte("good\n"), 0o644))
	require.Equal(t, 0, w.pawl("continue", w.loop).code)
	w.waits("completed")
	require.Equal(t, []string{"loop(iter-2): raise the number", "loop(iter-1): raise the number"}, w.subjects())
	require.NotContains(t, w.pawl("log", w.loop, "--all", "--json").out, token)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// What decides how a sealed file is checked out, and what it stands in, is sealed as it is.
func TestP3_WhateverIsDoneAroundASealedFile(t *testing.T) {
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
	w := newWorld(t, "")
	w.write("repo/work/eval/score.sh", "cat work/n\n")
	w.commit("an evaluator in the scope")
	w.before = w.snapshot()
	w.does(deeds...).set(doc{"verify": doc{"command": "sh work/eval/score.sh"}, "scope": []string{"**"}, "newFiles": "allow"})
	w.run(4)
	for i, d := range deeds {
		st := w.waits("blocked")
		require.Equal(t, i+1, st.Iteration, d.name)
		require.Contains(t, st.Gate.Summary, "blocked by sealed: ", d.name)
		dir := filepath.Join(st.Desk, "work", "eval")
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "score.sh"), []byte("cat work/n\n"), 0o644))
		os.Remove(filepath.Join(st.Desk, ".gitattributes"))
		os.Remove(filepath.Join(st.Desk, "work", "score.sh"))
		require.Equal(t, 0, w.pawl("continue", w.loop, "--gate", st.Gate.ID).code)
	}
	w.waits("completed")
	w.come(deeds...)
}

// event returns the first event of the log that has a text.
func (w *world) event(text string) doc {
	w.t.Helper()
	for line := range strings.Lines(w.pawl("log", w.loop, "--json").out) {
		if strings.Contains(line, text) {
			var e doc
			require.NoError(w.t, json.Unmarshal([]byte(line), &e))
			return e
		}
	}
	require.Fail(w.t, "no event with "+text)
	return nil
}
