package proposal_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"pawl/test/harness/world"
)

// proposes runs a loop that keeps two changes.
func proposes(t *testing.T) (*world.World, world.Proposal) {
	t.Helper()
	w := world.New(t, world.Raises).Set(doc{"limits": doc{"iterations": 2}})
	w.Run(0)
	p := w.Proposal()
	require.Equal(t, "open", p.State)
	return w, p
}

// TestA7_TheKeptChangesAloneAreOnABranchOfTheirOwn, beside the loop's branch, which also has what was only tried.
func TestA7_TheKeptChangesAloneAreOnABranchOfTheirOwn(t *testing.T) {
	w := world.Alone(t, `cat >/dev/null; case $PAWL_ITERATION in 2) echo 1 >work/n; echo "spoil it";; *) echo $((90 + PAWL_ITERATION)) >work/n; echo "# raise it to $PAWL_ITERATION";; esac`).
		Set(doc{"limits": doc{"iterations": 3}})
	u := w.Up()
	w.Run(0)
	clean := "pawl/" + w.Loop + "-clean"
	require.Equal(t, "raise it to 3\nraise it to 1", w.Git("log", "--format=%s", "main.."+clean))
	require.Equal(t, "1 3", strings.Join(strings.Fields(w.Git("log", "--reverse", "--format=%(trailers:key=Pawl-Iteration,valueonly)", "main.."+clean)), " "))
	require.Empty(t, w.Git("diff", "pawl/"+w.Loop, clean))
	require.Contains(t, w.Git("log", "--format=%s", "main..pawl/"+w.Loop), "spoil it")
	require.Regexp(t, w.Loop+` +completed +proposal open `, w.Done("list").Out)
	w.Done("approve", w.Loop, "--hash", w.Proposal().Hash)
	w.Done("apply", w.Loop)
	w.Before = w.Snapshot()
	require.Regexp(t, w.Loop+` +completed +proposal applied `, w.Done("list").Out)

	require.Contains(t, w.Done("clean", "--refs", "--yes", w.Loop).Out, "branch (it stays with its store: a worker runs on this host)")
	require.Contains(t, w.Git("for-each-ref"), clean)
	require.NoError(t, u.Stop())
	w.Git("checkout", "-q", clean)
	require.Contains(t, w.Done("clean", "--refs", w.Loop).Out, "branch (the branch pawl/"+w.Loop+"-clean is checked out)")
	w.Git("checkout", "-q", "main")
	w.Before = w.Snapshot()
	w.Done("clean", "--refs", "--yes", w.Loop)
	require.NotContains(t, w.Git("for-each-ref"), "pawl")
	stores, err := filepath.Glob(filepath.Join(w.Home, "stores", "*.git"))
	require.NoError(t, err)
	require.Empty(t, stores, "the store is not kept for what the repository lacks")
}

// TestE3_AnApprovalThatIsSentAgainApprovesNothingElse: the diff of the first change, which adds a file, is the diff of the
// proposal to the byte.
func TestE3_AnApprovalThatIsSentAgainApprovesNothingElse(t *testing.T) {
	world.Slow(t, "the tests of internal/loop/rules refuse it")
	w := world.New(t, world.Raises+"\necho x >work/new").Set(doc{"newFiles": "ask", "limits": doc{"iterations": 1}, "approvals": doc{"diff": "required"}})
	require.Equal(t, 0, w.Pawl("start", "--yes", w.SpecFile()).Code)
	var files world.State
	w.Until("the gate of the new file", func() bool {
		files = w.Show()
		return files.Gate != nil && files.Gate.Kind == "newFiles"
	})
	w.Done("approve", w.Loop, "--hash", files.Gate.Hash, "--by", "Ann")
	w.Until("the gate of the proposal", func() bool {
		s := w.Show()
		return s.Gate != nil && s.Gate.Kind == "diff"
	})
	again := []string{"approve", w.Loop, "--hash", files.Gate.Hash}
	says := "the gate " + files.Gate.ID + " was answered like this already: approve by Ann"
	require.Contains(t, w.Refused("HASH_MISMATCH", again...).Err, says)
	require.Equal(t, "open", w.Proposal().State)

	p := w.Proposal()
	w.Done("approve", w.Loop, "--hash", p.Hash, "--by", "Ann")
	w.Waits("completed")
	require.Contains(t, w.Refused("HASH_MISMATCH", again...).Err, says, "the loop has ended")
	require.Contains(t, w.Done("approve", w.Loop, "--hash", p.Hash).Out, "approved by Ann: 2 files, +2 -1; it had this answer before, so nothing changes")
}

// TestE3_AProposalIsAppliedAfterItsApprovalAlone takes one proposal through its whole life.
func TestE3_AProposalIsAppliedAfterItsApprovalAlone(t *testing.T) {
	w, p := proposes(t)
	other := strings.Repeat("0", 64)

	diff := w.Done("diff", w.Loop).Out
	sum := sha256.Sum256([]byte(diff))
	require.Equal(t, p.Hash, hex.EncodeToString(sum[:]), "what is shown is what is hashed")
	require.Contains(t, w.Done("diff", "--stat", w.Loop).Out, "work/n")
	var d struct {
		Proposal world.Proposal
		Files    []struct{ Path string }
	}
	world.Decode(t, w.Done("diff", "--json", w.Loop).Out, &d)
	require.Equal(t, p, d.Proposal)
	require.Equal(t, "work/n", d.Files[0].Path)

	require.Contains(t, w.Refused("REVIEW_MISSING", "apply", w.Loop).Err, "(`pawl approve "+w.Loop+" --hash …`)", "ready to be copied")
	w.Refused("REVIEW_MISSING", "apply", w.Loop, "--how", "patch")
	w.Refused("HASH_MISMATCH", "apply", w.Loop, "--hash", other)
	w.Refused("HASH_MISMATCH", "approve", w.Loop, "--hash", other)
	w.Refused("HASH_MISMATCH", "approve", w.Loop, "--hash", p.Hash[:15])
	require.Equal(t, w.Before, w.Snapshot())

	w.Done("approve", w.Loop, "--hash", p.Hash[:16], "--by", "Ann", "--note", "fine")
	require.Equal(t, []string{"approved", "Ann"}, []string{w.Proposal().State, w.Proposal().By})
	w.Refused("HASH_MISMATCH", "apply", w.Loop, "--hash", other)
	require.Equal(t, w.Before, w.Snapshot(), "approving never applies")
	patch := w.Done("apply", w.Loop, "--how", "patch").Out
	head, rest, _ := strings.Cut(patch, "\n---\n\n")
	require.Equal(t, diff, rest, "after the head of a mail it is what was hashed")
	require.Contains(t, head, "\nPawl-Proposal: "+p.Hash)
	w.Write("a.patch", patch)
	w.Git("worktree", "add", "-q", "--detach", filepath.Join(w.Dir, "mailed"), p.Base)
	made := exec.Command("git", "am", "-q", filepath.Join(w.Dir, "a.patch"))
	made.Dir = filepath.Join(w.Dir, "mailed")
	said, err := made.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Equal(t, w.Git("rev-parse", p.Head+"^{tree}"), w.Git("-C", made.Dir, "rev-parse", "HEAD^{tree}"))
	require.Equal(t, w.Git("log", "-1", "--format=%an <%ae>", p.Head), w.Git("-C", made.Dir, "log", "-1", "--format=%an <%ae>"))
	w.Git("worktree", "remove", "--force", made.Dir)
	require.Equal(t, "approved", w.Proposal().State, "a patch is on no branch")

	w.Write("repo/mine", "x\n")
	require.Contains(t, w.Refused("PRECONDITION_FAILED", "apply", w.Loop).Err, "git stash")
	require.NoError(t, os.Remove(filepath.Join(w.Repo, "mine")))
	require.Equal(t, w.Before, w.Snapshot())

	w.Done("apply", w.Loop, "--hash", p.Hash[:16])
	require.Equal(t, w.Git("rev-parse", "pawl/"+w.Loop+"-clean"), w.Git("rev-parse", "main"), "the kept changes alone")
	require.Empty(t, w.Git("diff", p.Head, "main"))
	require.Equal(t, "12\n", w.Read("repo/work/n"))
	require.Empty(t, w.Git("status", "--porcelain"))
	require.Equal(t, diff, w.Git("diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", p.Base, "main")+"\n")
	done := w.Proposal()
	require.Equal(t, []string{"applied", "main", w.Git("rev-parse", "main")}, []string{done.State, done.Branch, done.Commit})
	require.Contains(t, w.Done("apply", w.Loop).Out, "is already in main")
	require.Contains(t, w.Done("watch", w.Loop).Out, "applied to main", "what was done after the end")
	w.Refused("GATE_CLOSED", "reject", w.Loop)

	log := w.Done("log", w.Loop).Out
	for _, text := range []string{"approved by Ann: fine", "applied (patch)", "applied (ff)"} {
		require.Contains(t, log, text)
	}
	require.Equal(t, 1, strings.Count(w.Done("log", "--json", w.Loop).Out, `"how":"ff"`), "recorded once")
	w.Before = w.Snapshot()
}

func TestE3_ARejectedProposalIsNeverApplied(t *testing.T) {
	world.Slow(t, "TestE3_NobodyAppliesWhatTheReviewerRejected is refused in the same way")
	w, p := proposes(t)
	w.Done("reject", w.Loop, "--note", "too clever")
	w.Refused("REVIEW_REJECTED", "apply", w.Loop)
	w.Refused("REVIEW_REJECTED", "apply", w.Loop, "--hash", p.Hash, "--how", "patch")
	w.Refused("REVIEW_REJECTED", "approve", w.Loop, "--hash", p.Hash)
	require.Equal(t, "rejected", w.Proposal().State)
}

// The same holds at the diff's gate: a proposal that nobody has approved is refused for that reason, and after the
// approval a person does not have to wait for the loop's end.
func TestE3_AppliedAtOnceAfterTheDiffsGate(t *testing.T) {
	world.Slow(t, "workflows has the decision")
	w := world.New(t, world.Raises).Set(doc{"approvals": doc{"plan": "auto", "diff": "required", "tools": []string{"*"}}})
	w.Run(4)
	p := w.Proposal()
	w.Refused("REVIEW_MISSING", "apply", w.Loop)
	w.Refused("REVIEW_MISSING", "apply", w.Loop, "--hash", p.Hash)
	w.Refused("HASH_MISMATCH", "apply", w.Loop, "--hash", strings.Repeat("0", 64))
	require.Equal(t, w.Before, w.Snapshot())
	w.Done("approve", w.Loop, "--hash", p.Hash)
	w.Done("apply", w.Loop)
	require.Empty(t, w.Git("diff", p.Head, "main"))
	w.Before = w.Snapshot()
}

func TestA7_ProposalsAreMergedAndSquashed(t *testing.T) {
	for how, parents := range map[string]int{"merge": 2, "squash": 1} {
		t.Run(how, func(t *testing.T) {
			if how == "squash" {
				world.Slow(t, "it is merged")
			}
			w, p := proposes(t)
			w.Git("checkout", "--quiet", "-b", "other")
			w.Done("approve", w.Loop, "--hash", p.Hash)
			var out struct{ Branch, Commit, How, Hash string }
			world.Decode(t, w.Done("apply", "--json", w.Loop, "--how", how).Out, &out)
			require.Equal(t, []string{"main", how, p.Hash}, []string{out.Branch, out.How, out.Hash})
			require.Equal(t, out.Commit, w.Git("rev-parse", "main"))
			commits := strings.Fields(w.Git("log", "-1", "--format=%P", "main"))
			require.Len(t, commits, parents)
			require.Equal(t, p.Base, commits[0])
			require.Empty(t, w.Git("diff", p.Head, "main"))
			require.Contains(t, w.Git("log", "-1", "--format=%B", "main"), "Pawl-Proposal: "+p.Hash)
			require.Contains(t, w.Git("log", "-1", "--format=%B", "main"), "* raise the number")
			require.Equal(t, "10\n", w.Read("repo/work/n"), "another branch is checked out")
			w.Before = w.Snapshot()
		})
	}
}

// If the base has moved, there is a new proposal, which nobody has approved yet.
func TestA7_AMovedBaseNeedsANewLook(t *testing.T) {
	world.Slow(t, "TestA7_AMovedBaseHasAHashOfItsOwn moves it, too")
	w := world.New(t, `sed -i "1s/.*/better/" work/long; `+world.Raises)
	w.Write("repo/work/long", strings.Repeat("line\n", 30))
	w.Commit("a longer file")
	w.Run(0)
	p := w.Proposal()
	w.Done("approve", w.Loop, "--hash", p.Hash)
	w.Write("repo/work/long", strings.Repeat("line\n", 29)+"last\n")
	w.Commit("meanwhile")
	tip := w.Git("rev-parse", "main")

	s := w.Refused("BASE_MOVED", "apply", w.Loop)
	renewed := w.Proposal()
	require.Contains(t, s.Err, renewed.Hash[:16])
	require.Equal(t, []string{"open", tip}, []string{renewed.State, renewed.Base})
	require.NotEqual(t, p.Hash, renewed.Hash)
	require.Equal(t, tip, w.Git("rev-parse", "main"))
	w.Refused("REVIEW_MISSING", "apply", w.Loop)
	w.Refused("HASH_MISMATCH", "apply", w.Loop, "--hash", p.Hash)
	sum := sha256.Sum256([]byte(w.Done("diff", w.Loop).Out))
	require.Equal(t, renewed.Hash, hex.EncodeToString(sum[:]))

	w.Done("approve", w.Loop, "--hash", renewed.Hash)
	w.Done("apply", w.Loop, "--how", "squash")
	require.Equal(t, "11\n", w.Read("repo/work/n"))
	require.Equal(t, "better\n"+strings.Repeat("line\n", 28)+"last\n", w.Read("repo/work/long"))
	require.Equal(t, tip, w.Git("rev-parse", "main~1"))
	w.Before = w.Snapshot()
}

// If the base has moved elsewhere, the diff is the same to the byte. The proposal still needs a new approval, because
// the code around it has changed: its hash never equals one that was approved before.
func TestA7_AMovedBaseHasAHashOfItsOwn(t *testing.T) {
	world.Slow(t, "TestA7_ABaseThatConflictsIsForAPerson moves the base, too")
	w, p := proposes(t)
	w.Done("approve", w.Loop, "--hash", p.Hash)
	seen := map[string]bool{p.Hash: true}
	for i := range 3 {
		if i == 2 {
			w.Git("reset", "--quiet", "--hard", "main~1") // and back to where it was
		} else {
			w.Write("repo/README.md", strings.Repeat("a mountain\n", i+1))
			w.Commit("meanwhile")
		}
		w.Refused("BASE_MOVED", "apply", w.Loop)
		renewed := w.Proposal()
		require.False(t, seen[renewed.Hash], "move %d", i)
		seen[renewed.Hash] = true
		for hash := range seen {
			if hash != renewed.Hash {
				w.Refused("HASH_MISMATCH", "approve", w.Loop, "--hash", hash)
			}
		}
		whole := w.Done("diff", w.Loop).Out
		sum := sha256.Sum256([]byte(whole))
		require.Equal(t, renewed.Hash, hex.EncodeToString(sum[:]), "what is shown is what is hashed")
		require.Contains(t, whole, "Made anew on the base "+w.Git("rev-parse", "main"))
		w.Refused("REVIEW_MISSING", "apply", w.Loop)
		w.Done("approve", w.Loop, "--hash", renewed.Hash)
	}
	patch := filepath.Join(w.Dir, "anew.patch")
	w.Done("apply", w.Loop, "--how", "patch", "--out", patch)
	w.Git("apply", "--check", patch)
	w.Done("apply", w.Loop)
	require.Equal(t, "12\n", w.Read("repo/work/n"))
	w.Before = w.Snapshot()
}

func TestA7_ABaseThatConflictsIsForAPerson(t *testing.T) {
	world.Slow(t, "the tests of internal/git/userrepo have such a base")
	w, p := proposes(t)
	w.Done("approve", w.Loop, "--hash", p.Hash)
	w.Write("repo/work/n", "99\n")
	w.Commit("meanwhile")
	w.Before = w.Snapshot()
	require.Contains(t, w.Refused("BASE_MOVED", "apply", w.Loop).Err, "work/n")
	require.Equal(t, p.Hash, w.Proposal().Hash)
}

func TestA7_ABranchThatIsCheckedOutElsewhereIsLeftAlone(t *testing.T) {
	world.Slow(t, "internal/git/userrepo refuses it")
	w, p := proposes(t)
	w.Done("approve", w.Loop, "--hash", p.Hash)
	w.Git("checkout", "--quiet", "--detach")
	w.Git("worktree", "add", "--quiet", filepath.Join(w.Dir, "elsewhere"), "main")
	w.Before = w.Snapshot()
	require.Contains(t, w.Refused("PRECONDITION_FAILED", "apply", w.Loop).Err, filepath.Join(w.Dir, "elsewhere"))
}

// People who only have the Temporal UI start workflows.
func TestE3_ApplyAndReviewAreWorkflowsToo(t *testing.T) {
	world.Slow(t, "TestE3_AProposalIsAppliedAfterItsApprovalAlone applies through pawl")
	w, p := proposes(t)
	var endpoint struct{ Address string }
	b, err := os.ReadFile(filepath.Join(w.Home, "engine", "engine.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &endpoint))
	c, err := client.Dial(client.Options{HostPort: endpoint.Address})
	require.NoError(t, err)
	defer c.Close()
	start := func(kind string, in any) (out struct {
		Commit   string
		Proposal world.Proposal
	}, code string) {
		run, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{TaskQueue: "pawl"}, kind, in)
		require.NoError(t, err)
		err = run.Get(context.Background(), &out)
		var app *temporal.ApplicationError
		if errors.As(err, &app) {
			return out, app.Type()
		}
		require.NoError(t, err)
		return out, ""
	}
	for _, c := range []struct {
		kind string
		in   any
		code string
	}{
		{"Apply", doc{"loop": w.Loop, "hash": p.Hash, "how": "ff"}, "REVIEW_MISSING"},
		{"Apply", doc{"loop": w.Loop, "hash": strings.Repeat("0", 64), "how": "ff"}, "HASH_MISMATCH"},
		{"Apply", doc{"loop": "nobody", "hash": p.Hash, "how": "ff"}, "ALO_LOOP_NOT_FOUND"},
		{"Apply", doc{"loop": w.Loop, "hash": p.Hash, "how": "rebase"}, "INVALID_MESSAGE"},
		{"Apply", doc{"loop": w.Loop, "hash": p.Hash}, "INVALID_MESSAGE"},
		{"Apply", doc{"loop": w.Loop, "hash": p.Hash, "how": "ff", "force": "yes"}, "INVALID_MESSAGE"},
		{"Apply", doc{"loop": 5}, "INVALID_MESSAGE"},
		{"Apply", "ff", "INVALID_MESSAGE"},
		{"Review", doc{"loop": w.Loop, "hash": p.Hash, "answer": "maybe"}, "INVALID_MESSAGE"},
		{"Review", doc{"loop": w.Loop, "hash": p.Hash[:10], "answer": "approve"}, "HASH_MISMATCH"},
		{"Review", doc{"loop": w.Loop, "hash": p.Hash, "answer": "approve", "by": "Ann"}, ""},
	} {
		_, code := start(c.kind, c.in)
		require.Equal(t, c.code, code, "%v", c.in)
	}
	require.Equal(t, w.Before, w.Snapshot())
	out, code := start("Apply", doc{"loop": w.Loop, "hash": p.Hash[:16], "how": "merge"})
	require.Empty(t, code)
	require.Equal(t, out.Commit, w.Git("rev-parse", "main"))
	require.Equal(t, []string{"applied", "Ann"}, []string{w.Proposal().State, w.Proposal().By})
	w.Before = w.Snapshot()
}

// If commands on another host start the workflows, the loop's own host runs them.
func TestE3_ProposalsAreAppliedFromAnotherHost(t *testing.T) {
	world.Slow(t, "TestE3_AProposalIsAppliedAfterItsApprovalAlone is on one host")
	w, p := proposes(t)
	var endpoint struct{ Address string }
	require.NoError(t, json.Unmarshal([]byte(w.ReadHome("engine/engine.json")), &endpoint))
	away := func(code int, args ...string) world.Said {
		c := w.Prepare(args...)
		c.Cmd.Env = append(c.Cmd.Env, "PAWL_HOME="+filepath.Join(w.Dir, "away"), "TEMPORAL_ADDRESS="+endpoint.Address)
		s := c.Begin().Wait()
		require.Equal(t, code, s.Code, "%s%s", s.Out, s.Err)
		return s
	}
	require.Contains(t, away(2, "apply", w.Loop).Err, "REVIEW_MISSING")
	require.Contains(t, away(2, "diff", w.Loop).Err, "another host")
	require.Contains(t, away(0, "approve", w.Loop, "--hash", p.Hash).Out, "approved")
	require.Contains(t, away(2, "apply", w.Loop, "--hash", strings.Repeat("0", 64)).Err, "HASH_MISMATCH")
	require.Contains(t, away(0, "apply", w.Loop, "--how", "squash").Out, "applied to main")
	require.Equal(t, "12\n", w.Read("repo/work/n"))
	require.Equal(t, "applied", w.Proposal().State)
	w.Before = w.Snapshot()
}
