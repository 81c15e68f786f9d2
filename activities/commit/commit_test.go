package commit_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// TestA7_NewFilesAreCommittedByTheHashOfTheirChange: an approval is for exactly one change.
func TestA7_NewFilesAreCommittedByTheHashOfTheirChange(t *testing.T) {
	l := actest.Begin(t, spec.Ask)
	l.Iterate()
	gittest.Write(t, l.Opened.Desk+"/work/new", "x\n")
	gittest.Write(t, l.Opened.Desk+"/work/a", "better\n")
	asked := l.CommitDesk("")
	require.Empty(t, asked.Commit)
	require.Empty(t, asked.Violations)
	require.Equal(t, []string{"work/new"}, asked.NewFiles)
	require.Len(t, asked.NewFilesHash, 64)
	require.Equal(t, asked, l.CommitDesk(strings.Repeat("0", 64)), "another hash")
	ws, err := l.Workspace(t.Context(), l.Opened.Ref)
	require.NoError(t, err)
	change, err := ws.Objects.Proposal(t.Context(), "", asked.NewFilesOn, asked.Tree)
	require.NoError(t, err)
	require.NotEqual(t, change.Hash, asked.NewFilesHash, "the approval of new files is not that of a proposal with the same diff")

	noted, ok := hostrecord.Diff(l.Home, l.Opened.Ref, asked.NewFilesHash)
	require.True(t, ok, "the Temporal UI shows what is asked")
	require.Equal(t, []string{"New files on " + asked.NewFilesOn, "as the tree " + asked.Tree, "", "diff --git a/work/a b/work/a"}, noted.Lines[:4])
	require.Equal(t, "+x", noted.Lines[len(noted.Lines)-1])

	gittest.Write(t, l.Opened.Desk+"/work/a", "other\n")
	changed := l.CommitDesk(asked.NewFilesHash)
	require.Empty(t, changed.Commit, "the change is another by now")
	require.NotEqual(t, asked.NewFilesHash, changed.NewFilesHash)
	_, ok = hostrecord.Diff(l.Home, l.Opened.Ref, asked.NewFilesHash)
	require.False(t, ok, "that change is nowhere any more")
	require.NotEmpty(t, l.CommitDesk(changed.NewFilesHash).Commit)

	l.Iterate()
	gittest.Write(t, l.Opened.Desk+"/outside", "x\n")
	both := l.CommitDesk("")
	require.Equal(t, "scope", both.Violations[0].Rule)
	require.Empty(t, both.NewFiles, "there is nothing to approve where a rule is broken")
}

// TestA7_NewFilesThatACommandCouldRunAreNamedFirst: among many new files a person sees the dangerous ones.
func TestA7_NewFilesThatACommandCouldRunAreNamedFirst(t *testing.T) {
	l := actest.Begin(t, spec.Ask)
	l.Iterate()
	for i := range 60 {
		gittest.Write(t, fmt.Sprintf("%s/work/a%02d", l.Opened.Desk, i), "its second line is no beginning\n#!\n")
	}
	gittest.Write(t, l.Opened.Desk+"/work/x.py", "print()\n")
	gittest.Write(t, l.Opened.Desk+"/work/y", "#!/bin/sh\n")
	gittest.Write(t, l.Opened.Desk+"/work/z", "\x00")
	require.NoError(t, os.Chmod(l.Opened.Desk+"/work/z", 0o755))
	gittest.Write(t, l.Opened.Desk+"/work/zz/.rc", "x\n")
	asked := l.CommitDesk("")
	require.Empty(t, asked.Violations)
	require.Equal(t, 64, asked.NewFilesAll)
	require.Equal(t, 3, asked.NewRunnable)
	require.Equal(t, []string{"work/y", "work/z", "work/zz/.rc", "work/x.py", "work/a00"}, asked.NewFiles[:5])
}

// TestL5_ManyFilesAreCountedOnce: more than an event can name, and than the state keeps.
func TestL5_ManyFilesAreCountedOnce(t *testing.T) {
	l := actest.Begin(t, spec.Allow)
	for round := range 3 {
		l.Iterate()
		for i := range 60 {
			gittest.Write(t, fmt.Sprintf("%s/work/n%d", l.Opened.Desk, i+30*round), fmt.Sprint(round, "\n"))
		}
		out := l.CommitDesk("")
		require.NotEmpty(t, out.Commit)
		require.Equal(t, 60+30*round, out.TotalFiles)
	}
	l.Iterate()
	gittest.Write(t, l.Opened.Desk+"/work/n0", "again\n")
	require.Equal(t, 120, l.CommitDesk("").TotalFiles)
}

// Names may be thousands of bytes long, and four times that when quoted.
func TestL5_LongNamesAreCountedAndNotAllNamed(t *testing.T) {
	l := actest.Begin(t, spec.Allow)
	l.Iterate()
	deep := "/work" + strings.Repeat("/"+strings.Repeat("\xff", 200), 5)
	for i := range 40 {
		gittest.Write(t, fmt.Sprint(l.Opened.Desk, deep, "/", i), "x\n")
	}
	out := l.CommitDesk("")
	require.NotEmpty(t, out.Commit)
	require.Equal(t, 40, out.TotalFiles)
	require.NotEmpty(t, out.Files)
	require.LessOrEqual(t, len(strings.Join(out.Files, "")), 32<<10)
}

// TestE3_ARunningLoopAppliesWhatWasApproved: a running loop gives its own proposal, and records the result itself.
func TestE3_ARunningLoopAppliesWhatWasApproved(t *testing.T) {
	l := actest.Begin(t, spec.Deny)
	l.Iterate()
	gittest.Write(t, l.Opened.Desk+"/work/a", "better\n")
	l.CommitDesk("")
	hash := func() string {
		out := gittest.Git(t, l.User, "diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", l.Opened.Base, l.Head)
		return sum(out + "\n")
	}
	_, err := l.ApplyHere(t.Context(), api.Apply{Loop: "x", Hash: strings.Repeat("0", 64), How: api.FastForward, Time: actest.When})
	require.Equal(t, fault.PreconditionFailed, fault.CodeOf(err), "nobody else applies while it runs")

	gittest.Git(t, l.User, "fetch", "-q", l.Store(), "pawl/x")
	p := loop.Proposal{Hash: hash(), Base: l.Opened.Base, Head: l.Head, State: rules.Open}
	in := api.Apply{Loop: "x", Hash: p.Hash, How: api.Squash, Time: actest.When, Running: &api.Running{Proposal: p, Ledger: l.Ledger}}
	_, err = l.ApplyHere(t.Context(), in)
	require.Equal(t, fault.ReviewMissing, fault.CodeOf(err))
	in.Running.Proposal.State = rules.Approved
	for _, again := range []bool{false, true} {
		out, err := l.ApplyHere(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, []any{rules.Applied, "main", again}, []any{out.Proposal.State, out.Branch, out.Already})
		require.Equal(t, out.Commit, gittest.Git(t, l.User, "rev-parse", "main"))
	}
	require.Equal(t, "better\n", gittest.Read(t, l.User+"/work/a"))
	l.Append(loop.Event{Type: loop.Warned}) // the ledger is where the loop left it
	require.Equal(t, rules.Approved, in.Running.Proposal.State, "what was given is not changed")
}

// TestE3_AnApplyThatWasCutOffIsTakenUpWhereverTheBaseIs: a worker dies after it has changed something and before anybody
// knows, and the user commits before the next one tries again.
func TestE3_AnApplyThatWasCutOffIsTakenUpWhereverTheBaseIs(t *testing.T) {
	begun := func(t *testing.T, how string) (*actest.Loop, api.Apply, func(string) string) {
		l := actest.Begin(t, spec.Deny)
		l.Iterate()
		gittest.Write(t, l.Opened.Desk+"/work/a", "better\n")
		l.CommitDesk("")
		gittest.Git(t, l.User, "fetch", "-q", l.Store(), "pawl/x")
		hash := sum(gittest.Git(t, l.User, "diff", "--binary", "--full-index", l.Opened.Base, l.Head) + "\n")
		p := loop.Proposal{Hash: hash, Base: l.Opened.Base, Head: l.Head, State: rules.Approved}
		return l, api.Apply{Loop: "x", Hash: hash, How: how, Time: actest.When, Running: &api.Running{Proposal: p, Ledger: l.Ledger}}, func(text string) string {
			gittest.Write(t, l.User+"/README.md", text)
			gittest.Git(t, l.User, "add", "README.md")
			gittest.Git(t, l.User, "commit", "-qm", text)
			return gittest.Git(t, l.User, "rev-parse", "main")
		}
	}
	t.Run("the proposal was made again", func(t *testing.T) {
		l, in, commits := begun(t, api.FastForward)
		var last string
		for _, text := range []string{"moved\n", "moved again\n"} {
			tip := commits(text)
			for range 2 {
				out, err := l.ApplyHere(t.Context(), in)
				require.NoError(t, err)
				require.Equal(t, tip, out.Moved.Base)
				require.Equal(t, []string{l.Head, tip}, strings.Fields(gittest.Git(t, l.Store(), "log", "-1", "--format=%P", out.Moved.Head)))
				last = out.Moved.Head
			}
		}
		require.Equal(t, last, gittest.Git(t, l.Store(), "rev-parse", "pawl/x"))
	})
	t.Run("the branch has it", func(t *testing.T) {
		l, in, commits := begun(t, api.Squash)
		_, err := l.ApplyHere(t.Context(), in)
		require.NoError(t, err)
		tip := commits("mine\n")
		out, err := l.ApplyHere(t.Context(), in)
		require.NoError(t, err)
		require.True(t, out.Already)
		require.Nil(t, out.Moved)
		require.Equal(t, gittest.Git(t, l.User, "rev-parse", tip+"^"), out.Proposal.Commit)
	})
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// TestP3_ASealOfAnOlderContractHolds: an older version escaped every byte of a name beyond ASCII.
func TestP3_ASealOfAnOlderContractHolds(t *testing.T) {
	l := actest.BeginWith(t, spec.Deny, func(user string, doc map[string]any) {
		gittest.Write(t, user+"/work/größe.sh", "wc -l work/a\n")
		gittest.Git(t, user, "add", "-A")
		gittest.Git(t, user, "commit", "-qm", "measure")
		doc["verify"] = map[string]any{"command": "sh work/größe.sh"}
	})
	ws, err := l.Workspace(t.Context(), l.Opened.Ref)
	require.NoError(t, err)
	contract, err := ws.Book.Contract(t.Context(), l.Ledger)
	require.NoError(t, err)
	contract.Sealed = slices.Clone(contract.Sealed)
	i := slices.IndexFunc(contract.Sealed, func(s loop.Seal) bool { return s.Path == "work/größe.sh" })
	require.GreaterOrEqual(t, i, 0, "%v", contract.Sealed)
	contract.Sealed[i].Path = `"work/gr\303\266\303\237e.sh"`
	ws.Book.Bind(contract)
	l.Iterate()
	gittest.Write(t, l.Opened.Desk+"/work/größe.sh", "echo 0\n")
	out := l.CommitDesk("")
	require.Len(t, out.Violations, 1)
	require.Equal(t, spec.RuleSealed, out.Violations[0].Rule)
	require.Equal(t, "work/größe.sh", out.Violations[0].Path)
}
