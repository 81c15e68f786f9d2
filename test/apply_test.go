package test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// proposal is a loop's proposal as the contract has it.
type proposal struct{ Hash, Base, Head, State, By, Branch, Commit string }

// proposal asks for the loop's proposal.
func (w *world) proposal() proposal {
	w.t.Helper()
	s := w.pawl("show", "--json", w.loop)
	require.Equal(w.t, 0, s.code, s.err)
	var st struct{ Proposal proposal }
	decode(w.t, s.out, &st)
	return st.Proposal
}

// proposes runs a loop that keeps two changes.
func proposes(t *testing.T) (*world, proposal) {
	t.Helper()
	w := newWorld(t, raises).set(doc{"limits": doc{"iterations": 2}})
	w.run(0)
	p := w.proposal()
	require.Equal(t, "open", p.State)
	return w, p
}

// refusedWith runs a command that a code refuses.
func (w *world) refusedWith(code string, args ...string) said {
	w.t.Helper()
	s := w.pawl(args...)
	require.Equal(w.t, 2, s.code, "%s%s", s.out, s.err)
	require.Contains(w.t, s.err, "("+code+")")
	return s
}

// done runs a command that succeeds.
func (w *world) done(args ...string) said {
	w.t.Helper()
	s := w.pawl(args...)
	require.Equal(w.t, 0, s.code, "%s%s", s.out, s.err)
	return s
}

// TestE3_AProposalIsAppliedAfterItsApprovalAlone goes the whole way of one proposal.
func TestE3_AProposalIsAppliedAfterItsApprovalAlone(t *testing.T) {
	w, p := proposes(t)
	other := strings.Repeat("0", 64)

	diff := w.done("diff", w.loop).out
	sum := sha256.Sum256([]byte(diff))
	require.Equal(t, p.Hash, hex.EncodeToString(sum[:]), "what is shown is what is hashed")
	require.Contains(t, w.done("diff", "--stat", w.loop).out, "work/n")
	var d struct {
		Proposal proposal
		Files    []struct{ Path string }
	}
	decode(t, w.done("diff", "--json", w.loop).out, &d)
	require.Equal(t, p, d.Proposal)
	require.Equal(t, "work/n", d.Files[0].Path)

	w.refusedWith("REVIEW_MISSING", "apply", w.loop)
	w.refusedWith("REVIEW_MISSING", "apply", w.loop, "--how", "patch")
	w.refusedWith("HASH_MISMATCH", "apply", w.loop, "--hash", other)
	w.refusedWith("HASH_MISMATCH", "approve", w.loop, "--hash", other)
	w.refusedWith("HASH_MISMATCH", "approve", w.loop, "--hash", p.Hash[:15])
	require.Equal(t, w.before, w.snapshot())

	w.done("approve", w.loop, "--hash", p.Hash[:16], "--by", "Ann", "--note", "fine")
	require.Equal(t, []string{"approved", "Ann"}, []string{w.proposal().State, w.proposal().By})
	w.refusedWith("HASH_MISMATCH", "apply", w.loop, "--hash", other)
	require.Equal(t, w.before, w.snapshot(), "approving never applies")
	require.Equal(t, diff, w.done("apply", w.loop, "--how", "patch").out)
	require.Equal(t, "approved", w.proposal().State, "a patch is on no branch")

	w.write("repo/mine", "x\n")
	require.Contains(t, w.refusedWith("PRECONDITION_FAILED", "apply", w.loop).err, "git stash")
	require.NoError(t, os.Remove(filepath.Join(w.repo, "mine")))
	require.Equal(t, w.before, w.snapshot())

	w.done("apply", w.loop, "--hash", p.Hash[:16])
	require.Equal(t, p.Head, w.git("rev-parse", "main"))
	require.Equal(t, "12\n", w.read("repo/work/n"))
	require.Empty(t, w.git("status", "--porcelain"))
	require.Equal(t, diff, w.git("diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", p.Base, "main")+"\n")
	done := w.proposal()
	require.Equal(t, []string{"applied", "main", p.Head}, []string{done.State, done.Branch, done.Commit})
	require.Contains(t, w.done("apply", w.loop).out, "is already in main")
	w.refusedWith("GATE_CLOSED", "reject", w.loop)

	log := w.done("log", w.loop).out
	for _, text := range []string{"approved by Ann: fine", "applied (patch)", "applied (ff)"} {
		require.Contains(t, log, text)
	}
	require.Equal(t, 1, strings.Count(w.done("log", "--json", w.loop).out, `"how":"ff"`), "recorded once")
	w.before = w.snapshot()
}

func TestE3_ARejectedProposalIsNeverApplied(t *testing.T) {
	w, p := proposes(t)
	w.done("reject", w.loop, "--note", "too clever")
	w.refusedWith("REVIEW_REJECTED", "apply", w.loop)
	w.refusedWith("REVIEW_REJECTED", "apply", w.loop, "--hash", p.Hash, "--how", "patch")
	w.refusedWith("REVIEW_REJECTED", "approve", w.loop, "--hash", p.Hash)
	require.Equal(t, "rejected", w.proposal().State)
}

// At the diff's own gate it is the same: what nobody has approved is refused for that, and who has just
// approved need not wait for the loop's end.
func TestE3_AppliedAtOnceAfterTheDiffsGate(t *testing.T) {
	w := newWorld(t, raises).set(doc{"approvals": doc{"plan": "auto", "diff": "required", "tools": []string{"*"}}})
	w.run(4)
	p := w.proposal()
	w.refusedWith("REVIEW_MISSING", "apply", w.loop)
	w.refusedWith("REVIEW_MISSING", "apply", w.loop, "--hash", p.Hash)
	w.refusedWith("HASH_MISMATCH", "apply", w.loop, "--hash", strings.Repeat("0", 64))
	require.Equal(t, w.before, w.snapshot())
	w.done("approve", w.loop, "--hash", p.Hash)
	w.done("apply", w.loop)
	require.Equal(t, p.Head, w.git("rev-parse", "main"))
	w.before = w.snapshot()
}

func TestA7_ProposalsAreMergedAndSquashed(t *testing.T) {
	for how, parents := range map[string]int{"merge": 2, "squash": 1} {
		t.Run(how, func(t *testing.T) {
			w, p := proposes(t)
			w.git("checkout", "--quiet", "-b", "other")
			w.done("approve", w.loop, "--hash", p.Hash)
			var out struct{ Branch, Commit, How, Hash string }
			decode(t, w.done("apply", "--json", w.loop, "--how", how).out, &out)
			require.Equal(t, []string{"main", how, p.Hash}, []string{out.Branch, out.How, out.Hash})
			require.Equal(t, out.Commit, w.git("rev-parse", "main"))
			commits := strings.Fields(w.git("log", "-1", "--format=%P", "main"))
			require.Len(t, commits, parents)
			require.Equal(t, p.Base, commits[0])
			require.Empty(t, w.git("diff", p.Head, "main"))
			require.Contains(t, w.git("log", "-1", "--format=%B", "main"), "Pawl-Proposal: "+p.Hash)
			require.Contains(t, w.git("log", "-1", "--format=%B", "main"), "* raise the number")
			require.Equal(t, "10\n", w.read("repo/work/n"), "another branch is checked out")
			w.before = w.snapshot()
		})
	}
}

// A base that moved gives a new proposal, which nobody has approved yet.
func TestA7_AMovedBaseNeedsANewLook(t *testing.T) {
	w := newWorld(t, `sed -i "1s/.*/better/" work/long; `+raises)
	w.write("repo/work/long", strings.Repeat("line\n", 30))
	w.commit("a longer file")
	w.run(0)
	p := w.proposal()
	w.done("approve", w.loop, "--hash", p.Hash)
	w.write("repo/work/long", strings.Repeat("line\n", 29)+"last\n")
	w.commit("meanwhile")
	tip := w.git("rev-parse", "main")

	s := w.refusedWith("BASE_MOVED", "apply", w.loop)
	renewed := w.proposal()
	require.Contains(t, s.err, renewed.Hash[:16])
	require.Equal(t, []string{"open", tip}, []string{renewed.State, renewed.Base})
	require.NotEqual(t, p.Hash, renewed.Hash)
	require.Equal(t, tip, w.git("rev-parse", "main"))
	w.refusedWith("REVIEW_MISSING", "apply", w.loop)
	w.refusedWith("HASH_MISMATCH", "apply", w.loop, "--hash", p.Hash)
	sum := sha256.Sum256([]byte(w.done("diff", w.loop).out))
	require.Equal(t, renewed.Hash, hex.EncodeToString(sum[:]))

	w.done("approve", w.loop, "--hash", renewed.Hash)
	w.done("apply", w.loop, "--how", "squash")
	require.Equal(t, "11\n", w.read("repo/work/n"))
	require.Equal(t, "better\n"+strings.Repeat("line\n", 28)+"last\n", w.read("repo/work/long"))
	require.Equal(t, tip, w.git("rev-parse", "main~1"))
	w.before = w.snapshot()
}

// Where what moved is elsewhere, the diff is the same to the byte and so is its hash. It wants a
// new look all the same: what is around it is another.
func TestA7_AMovedBaseNeedsANewLookAlsoForTheSameDiff(t *testing.T) {
	w, p := proposes(t)
	w.done("approve", w.loop, "--hash", p.Hash)
	w.write("repo/README.md", "a mountain\n")
	w.commit("meanwhile")
	w.refusedWith("BASE_MOVED", "apply", w.loop)
	require.Equal(t, []string{p.Hash, "open"}, []string{w.proposal().Hash, w.proposal().State})
	w.refusedWith("REVIEW_MISSING", "apply", w.loop)
	w.done("approve", w.loop, "--hash", p.Hash)
	w.done("apply", w.loop)
	require.Equal(t, "a mountain\n", w.read("repo/README.md"))
	require.Equal(t, "12\n", w.read("repo/work/n"))
	w.before = w.snapshot()
}

func TestA7_ABaseThatConflictsIsForAPerson(t *testing.T) {
	w, p := proposes(t)
	w.done("approve", w.loop, "--hash", p.Hash)
	w.write("repo/work/n", "99\n")
	w.commit("meanwhile")
	w.before = w.snapshot()
	require.Contains(t, w.refusedWith("BASE_MOVED", "apply", w.loop).err, "work/n")
	require.Equal(t, p.Hash, w.proposal().Hash)
}

func TestA7_ABranchThatIsCheckedOutElsewhereIsLeftAlone(t *testing.T) {
	w, p := proposes(t)
	w.done("approve", w.loop, "--hash", p.Hash)
	w.git("checkout", "--quiet", "--detach")
	w.git("worktree", "add", "--quiet", filepath.Join(w.dir, "elsewhere"), "main")
	w.before = w.snapshot()
	require.Contains(t, w.refusedWith("PRECONDITION_FAILED", "apply", w.loop).err, filepath.Join(w.dir, "elsewhere"))
}

// People who only have the Temporal UI start workflows.
func TestE3_ApplyAndReviewAreWorkflowsToo(t *testing.T) {
	w, p := proposes(t)
	var endpoint struct{ Address string }
	b, err := os.ReadFile(filepath.Join(w.home, "engine", "engine.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &endpoint))
	c, err := client.Dial(client.Options{HostPort: endpoint.Address})
	require.NoError(t, err)
	defer c.Close()
	start := func(kind string, in any) (out struct {
		Commit   string
		Proposal proposal
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
		{"Apply", doc{"loop": w.loop, "hash": p.Hash, "how": "ff"}, "REVIEW_MISSING"},
		{"Apply", doc{"loop": w.loop, "hash": strings.Repeat("0", 64), "how": "ff"}, "HASH_MISMATCH"},
		{"Apply", doc{"loop": "nobody", "hash": p.Hash, "how": "ff"}, "ALO_LOOP_NOT_FOUND"},
		{"Apply", doc{"loop": w.loop, "hash": p.Hash, "how": "rebase"}, "INVALID_MESSAGE"},
		{"Apply", doc{"loop": w.loop, "hash": p.Hash}, "INVALID_MESSAGE"},
		{"Apply", doc{"loop": w.loop, "hash": p.Hash, "how": "ff", "force": "yes"}, "INVALID_MESSAGE"},
		{"Apply", doc{"loop": 5}, "INVALID_MESSAGE"},
		{"Apply", "ff", "INVALID_MESSAGE"},
		{"Review", doc{"loop": w.loop, "hash": p.Hash, "answer": "maybe"}, "INVALID_MESSAGE"},
		{"Review", doc{"loop": w.loop, "hash": p.Hash[:10], "answer": "approve"}, "HASH_MISMATCH"},
		{"Review", doc{"loop": w.loop, "hash": p.Hash, "answer": "approve", "by": "Ann"}, ""},
	} {
		_, code := start(c.kind, c.in)
		require.Equal(t, c.code, code, "%v", c.in)
	}
	require.Equal(t, w.before, w.snapshot())
	out, code := start("Apply", doc{"loop": w.loop, "hash": p.Hash[:16], "how": "merge"})
	require.Empty(t, code)
	require.Equal(t, out.Commit, w.git("rev-parse", "main"))
	require.Equal(t, []string{"applied", "Ann"}, []string{w.proposal().State, w.proposal().By})
	w.before = w.snapshot()
}

// Commands on another host start the workflows: the loop's own host does it.
func TestE3_ProposalsAreAppliedFromAnotherHost(t *testing.T) {
	w, p := proposes(t)
	var endpoint struct{ Address string }
	require.NoError(t, json.Unmarshal([]byte(w.readHome("engine/engine.json")), &endpoint))
	away := func(code int, args ...string) said {
		c := w.prepare(args...)
		c.cmd.Env = append(c.cmd.Env, "PAWL_HOME="+filepath.Join(w.dir, "away"), "TEMPORAL_ADDRESS="+endpoint.Address)
		s := c.begin().wait()
		require.Equal(t, code, s.code, "%s%s", s.out, s.err)
		return s
	}
	require.Contains(t, away(2, "apply", w.loop).err, "REVIEW_MISSING")
	require.Contains(t, away(2, "diff", w.loop).err, "another host")
	require.Contains(t, away(0, "approve", w.loop, "--hash", p.Hash).out, "approved")
	require.Contains(t, away(2, "apply", w.loop, "--hash", strings.Repeat("0", 64)).err, "HASH_MISMATCH")
	require.Contains(t, away(0, "apply", w.loop, "--how", "squash").out, "applied to main")
	require.Equal(t, "12\n", w.read("repo/work/n"))
	require.Equal(t, "applied", w.proposal().State)
	w.before = w.snapshot()
}
