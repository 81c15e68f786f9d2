package activities_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/activities"
	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/home"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

var (
	ctx  = context.Background()
	when = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

// opened is a loop that has begun on this host, without Temporal: the activities are called as a
// workflow calls them.
type opened struct {
	*testing.T
	a            *activities.Activities
	user         string
	spec         spec.Spec
	o            act.Opened
	ledger, head string
	seq          int64
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@u"}, args...)...)
	cmd.Dir = dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %q: %s", args, out)
	return strings.TrimSuffix(string(out), "\n")
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

// begun opens a loop on a repository with work/a and work/b.
func begun(t *testing.T, newFiles string) *opened {
	t.Helper()
	return begunAt(t, newFiles, func(user string) (key, address string) { return "path", user })
}

// begunAt opens a loop whose repository is to be found as at says.
func begunAt(t *testing.T, newFiles string, at func(user string) (key, address string)) *opened {
	t.Helper()
	return begunWith(t, newFiles, at, "")
}

// begunWith opens a loop that has more in its spec: JSON that begins with a comma.
func begunWith(t *testing.T, newFiles string, at func(user string) (key, address string), more string) *opened {
	t.Helper()
	return begunBy(t, newFiles, at, `{"command": ["true"]}`, more)
}

// begunBy opens a loop that has an agent, as JSON.
func begunBy(t *testing.T, newFiles string, at func(user string) (key, address string), agent, more string) *opened {
	t.Helper()
	dir := t.TempDir()
	l := &opened{T: t, user: filepath.Join(dir, "user")}
	write(t, l.user+"/work/a", "a\n")
	write(t, l.user+"/work/b", "b\n")
	git(t, l.user, "init", "-q", "-b", "main")
	git(t, l.user, "add", "-A")
	git(t, l.user, "commit", "-qm", "base")
	key, address := at(l.user)
	t.Setenv("PAWL_HOME", filepath.Join(dir, "home"))
	h, err := home.Open()
	require.NoError(t, err)
	l.a = activities.New(h, "host", "pawl", "default", false)
	t.Cleanup(l.a.Stop)
	s, err := spec.Parse(fmt.Appendf(nil, `{"name": "x", "goal": "g", "repo": {%q: %q}, "scope": ["work/**"], "verify": {"command": "true"},
		"agent": %s, "approvals": {"tools": ["*"]}%s}`, key, address, agent, more))
	require.NoError(t, err)
	l.spec = s
	s.NewFiles = newFiles // also where a spec may not say so yet
	l.o, err = l.a.Open(ctx, act.Open{Loop: "x", FirstRun: "first", Spec: s})
	require.NoError(t, err)
	l.head = l.o.Base
	l.record(loop.Event{Type: loop.LoopOpened, Opened: &loop.Opened{Kind: "improve", Goal: "g", Repo: l.o.Repo, Branch: l.o.Branch, Base: l.o.Base, Host: l.o.Host}},
		loop.Event{Type: loop.ContractDrawn, Contract: &loop.Contract{Hash: l.o.Contract, Base: l.o.Base, Sealed: l.o.Sealed}})
	return l
}

func (l *opened) numbered(events []loop.Event) []loop.Event {
	for i := range events {
		l.seq++
		events[i].Seq, events[i].Loop, events[i].Time = l.seq, "x", when.Add(time.Duration(l.seq)*time.Second)
	}
	return events
}

func (l *opened) record(events ...loop.Event) {
	l.Helper()
	out, err := l.a.Record(ctx, act.Record{Entry: act.Entry{Ref: l.o.Ref, Ledger: l.ledger, Events: l.numbered(events)}})
	require.NoError(l, err)
	l.ledger = out.Ledger
}

// begin starts an iteration: the desk is at the head.
func (l *opened) begin() {
	l.Helper()
	l.record(loop.Event{Type: loop.IterationStarted, Iteration: 1})
	require.NoError(l, l.a.RestoreDesk(ctx, l.o.Ref, l.head))
}

func (l *opened) commit(allow string) act.Committed {
	l.Helper()
	out, err := l.a.Commit(ctx, act.Commit{Ref: l.o.Ref, Ledger: l.ledger, Head: l.head, Iteration: 1, Attempt: 1, Description: "a change", Time: when, AllowNew: allow})
	require.NoError(l, err)
	if out.Commit != "" {
		l.head = out.Commit
		l.record(loop.Event{Type: loop.ChangeCommitted, Commit: out.Commit, Head: out.Commit, Files: out.Files, TotalFiles: out.TotalFiles})
	}
	return out
}

// TestA7_NewFilesAreCommittedByTheHashOfTheirChange: an approval is for exactly one change.
func TestA7_NewFilesAreCommittedByTheHashOfTheirChange(t *testing.T) {
	l := begun(t, spec.Ask)
	l.begin()
	write(t, l.o.Desk+"/work/new", "x\n")
	write(t, l.o.Desk+"/work/a", "better\n")
	asked := l.commit("")
	require.Empty(t, asked.Commit)
	require.Empty(t, asked.Violations)
	require.Equal(t, []string{"work/new"}, asked.NewFiles)
	require.Len(t, asked.NewFilesHash, 64)
	require.Equal(t, asked, l.commit(strings.Repeat("0", 64)), "another hash")

	write(t, l.o.Desk+"/work/a", "other\n")
	changed := l.commit(asked.NewFilesHash)
	require.Empty(t, changed.Commit, "the change is another by now")
	require.NotEqual(t, asked.NewFilesHash, changed.NewFilesHash)
	require.NotEmpty(t, l.commit(changed.NewFilesHash).Commit)

	l.begin()
	write(t, l.o.Desk+"/outside", "x\n")
	both := l.commit("")
	require.Equal(t, "scope", both.Violations[0].Rule)
	require.Empty(t, both.NewFiles, "there is nothing to approve where a rule is broken")
}

// TestL5_ManyFilesAreCountedOnce: more than an event can name, and than the state keeps.
func TestL5_ManyFilesAreCountedOnce(t *testing.T) {
	l := begun(t, spec.Allow)
	for round := range 3 {
		l.begin()
		for i := range 60 {
			write(t, fmt.Sprintf("%s/work/n%d", l.o.Desk, i+30*round), fmt.Sprint(round, "\n"))
		}
		out := l.commit("")
		require.NotEmpty(t, out.Commit)
		require.Equal(t, 60+30*round, out.TotalFiles)
	}
	l.begin()
	write(t, l.o.Desk+"/work/n0", "again\n")
	require.Equal(t, 120, l.commit("").TotalFiles)
}

// Names may be thousands of bytes long, and four times that where they are quoted.
func TestL5_LongNamesAreCountedAndNotAllNamed(t *testing.T) {
	l := begun(t, spec.Allow)
	l.begin()
	deep := "/work" + strings.Repeat("/"+strings.Repeat("\xff", 200), 5)
	for i := range 40 {
		write(t, fmt.Sprint(l.o.Desk, deep, "/", i), "x\n")
	}
	out := l.commit("")
	require.NotEmpty(t, out.Commit)
	require.Equal(t, 40, out.TotalFiles)
	require.NotEmpty(t, out.Files)
	require.LessOrEqual(t, len(strings.Join(out.Files, "")), 32<<10)
}

// TestE3_ARunningLoopAppliesWhatWasApproved: it says itself what its proposal is, and records what
// comes of it itself.
func TestE3_ARunningLoopAppliesWhatWasApproved(t *testing.T) {
	l := begun(t, spec.Deny)
	l.begin()
	write(t, l.o.Desk+"/work/a", "better\n")
	l.commit("")
	hash := func() string {
		out := git(t, l.user, "diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", l.o.Base, l.head)
		return sum(out + "\n")
	}
	_, err := l.a.ApplyHere(ctx, act.Apply{Loop: "x", Hash: strings.Repeat("0", 64), How: act.FastForward, Time: when})
	require.Equal(t, fault.PreconditionFailed, fault.CodeOf(err), "nobody else applies while it runs")

	git(t, l.user, "fetch", "-q", storeOf(t), "pawl/x")
	p := loop.Proposal{Hash: hash(), Base: l.o.Base, Head: l.head, State: govern.Open}
	in := act.Apply{Loop: "x", Hash: p.Hash, How: act.Squash, Time: when, Running: &act.Running{Proposal: p, Ledger: l.ledger}}
	_, err = l.a.ApplyHere(ctx, in)
	require.Equal(t, fault.ReviewMissing, fault.CodeOf(err))
	in.Running.Proposal.State = govern.Approved
	for _, again := range []bool{false, true} {
		out, err := l.a.ApplyHere(ctx, in)
		require.NoError(t, err)
		require.Equal(t, []any{govern.Applied, "main", again}, []any{out.Proposal.State, out.Branch, out.Already})
		require.Equal(t, out.Commit, git(t, l.user, "rev-parse", "main"))
	}
	require.Equal(t, "better\n", string(must(os.ReadFile(l.user+"/work/a"))))
	l.record(loop.Event{Type: loop.Warned}) // the ledger is where the loop left it
	require.Equal(t, govern.Approved, in.Running.Proposal.State, "what was given is not changed")
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func storeOf(t *testing.T) string {
	t.Helper()
	stores, err := filepath.Glob(filepath.Join(os.Getenv("PAWL_HOME"), "stores", "*"))
	require.NoError(t, err)
	for _, s := range stores {
		if _, err := os.Stat(s + "/HEAD"); err == nil {
			return s
		}
	}
	t.Fatal("no store")
	return ""
}
