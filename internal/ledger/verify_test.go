package ledger_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/evidence"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/repo"
	"pawl/internal/spec"
)

var (
	ctx  = context.Background()
	when = time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)
	who  = repo.Identity{Name: "Ada", Email: "ada@example.org"}
)

const ref = "refs/pawl-ledger/x"

// book is a loop with a ledger.
type book struct {
	*testing.T
	store  *repo.Store
	ledger *ledger.Ledger
	code   string
	heads  []string
	next   ledger.Page // of the entry that is put next
	seq    int64
}

func git(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@u"}, args...)...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %q: %s", args, out)
	return strings.TrimSuffix(string(out), "\n")
}

// written is a ledger of four entries: opened, begun, one iteration, ended.
func written(t *testing.T) *book {
	t.Helper()
	user := filepath.Join(t.TempDir(), "user")
	require.NoError(t, os.MkdirAll(user, 0o755))
	git(t, user, "", "init", "-q", "-b", "main")
	git(t, user, "", "commit", "-q", "--allow-empty", "-m", "base")
	store, err := repo.OpenStore(ctx, filepath.Join(t.TempDir(), "store"))
	require.NoError(t, err)
	b := &book{T: t, store: store, ledger: ledger.Open(store)}
	b.code, err = store.Fetch(ctx, user, "main")
	require.NoError(t, err)
	s, err := spec.Parse([]byte(`{"kind": "improve", "goal": "better", "scope": ["**"], "verify": {"command": "measure"}, "agent": {"command": "agent"}, "approvals": {"tools": ["*"]}}`))
	require.NoError(t, err)
	c := ledger.Contract{Spec: s, Base: b.code, Tools: []string{"*"}}
	b.ledger.Bind(c)
	metric := evidence.MustDecimal("84.70")
	b.append(
		loop.Event{Type: loop.LoopOpened, Opened: &loop.Opened{Kind: "improve", Base: b.code, Limits: map[loop.Resource]evidence.Decimal{loop.Iterations: loop.Count(3)}}},
		loop.Event{Type: loop.ContractDrawn, Contract: &loop.Contract{Hash: c.Hash(), Base: b.code}},
		loop.Event{Type: loop.BaselineMeasured, Metric: &metric},
	)
	b.append(loop.Event{Type: loop.AutonomyStarted, By: "me"})
	b.append(
		loop.Event{Type: loop.IterationStarted, Iteration: 1},
		loop.Event{Type: loop.IterationFailed, Iteration: 1, FailureReason: "guard-fail", Record: &loop.Iteration{N: 1, Description: "try\tit", Metric: metric, Reason: "guard-fail", EndedAt: when}},
	)
	b.append(loop.Event{Type: loop.AutonomyCompleted, Status: loop.Completed, ExitStatus: "completed"})
	return b
}

func (b *book) head() string {
	if len(b.heads) == 0 {
		return ""
	}
	return b.heads[len(b.heads)-1]
}

func (b *book) append(events ...loop.Event) {
	b.Helper()
	b.put(b.head(), b.with(nil, events...))
}

// with are the files of the next entry, and more beside those that the ledger makes.
func (b *book) with(more map[string][]byte, events ...loop.Event) map[string][]byte {
	b.Helper()
	for i := range events {
		b.seq++
		events[i].Seq, events[i].Loop, events[i].Time = b.seq, "x", when.Add(time.Duration(b.seq)*time.Second)
	}
	files, page, err := b.ledger.Entry(ctx, b.head(), events)
	require.NoError(b, err)
	b.next = page
	maps.Copy(files, more)
	return files
}

func (b *book) put(prev string, files map[string][]byte) {
	b.Helper()
	id, err := b.store.Append(ctx, repo.Entry{Ref: ref, Prev: prev, Code: b.code, Files: files, Message: "entry", Time: when, Author: who})
	require.NoError(b, err)
	b.heads = append(b.heads, id)
	b.ledger.Appended(id, b.next)
}

// rewritten replaces the last n entries by others, with hashes that are right.
func (b *book) rewritten(n int, change func(i int, files map[string][]byte)) {
	b.Helper()
	var old []map[string][]byte
	for _, id := range b.heads[len(b.heads)-n:] {
		files, err := b.store.ReadLedger(ctx, id, ledger.StateFile, ledger.EventsFile, ledger.IterationFile, ledger.ContractFile, ledger.ResultsFile, ledger.PlanFile)
		require.NoError(b, err)
		old = append(old, files)
	}
	at := b.heads[len(b.heads)-n-1]
	require.NoError(b, b.store.SetRef(ctx, ref, at, b.head()))
	b.heads = b.heads[:len(b.heads)-n]
	for i, files := range old {
		change(i, files)
		var s loop.State
		if json.Unmarshal(files[ledger.StateFile], &s) == nil && s.Ledger != "" { // the forger is careful
			files[ledger.StateFile] = bytes.ReplaceAll(files[ledger.StateFile], []byte(s.Ledger), []byte(b.head()))
		}
		b.put(b.head(), files)
	}
}

func replace(files map[string][]byte, name, from, to string) {
	files[name] = bytes.ReplaceAll(files[name], []byte(from), []byte(to))
}

func TestL8_AWholeLedgerIsProven(t *testing.T) {
	b := written(t)
	r, err := ledger.Open(b.store).Verify(ctx, b.head())
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.Equal(t, []int{4, 7, 2}, []int{r.Entries, r.Events, r.Rows})
	require.Equal(t, b.heads, r.Commits)
	require.Equal(t, loop.Completed, r.State.Status)
	require.False(t, r.Cut)
}

// TestL8_TamperingIsFound: whoever may write to the store can make hashes that are right. What an
// entry says must also follow from the entry before.
func TestL8_TamperingIsFound(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int // entries that are rewritten
		change func(i int, files map[string][]byte)
		entry  int
		says   string
	}{
		{"a state", 1, func(_ int, f map[string][]byte) { replace(f, "state.json", `"completed"`, `"halted"`) }, 4, "status"},
		{"an event", 2, func(i int, f map[string][]byte) {
			if i == 0 {
				replace(f, "events.jsonl", "guard-fail", "it was fine")
			}
		}, 3, "its state"},
		{"a budget", 1, func(_ int, f map[string][]byte) { replace(f, "state.json", `"limit": 3`, `"limit": 300`) }, 4, "budget"},
		{"a row of the results", 1, func(_ int, f map[string][]byte) { replace(f, "loop-results.tsv", "84.70", "99.99") }, 4, "loop-results.tsv"},
		{"a record", 1, func(_ int, f map[string][]byte) { replace(f, "iteration.json", "84.70", "99.99") }, 4, "iteration.json"},
		{"the contract", 1, func(_ int, f map[string][]byte) { replace(f, "contract.json", "improve", "deliver") }, 4, "contract"},
		{"an event taken out", 1, func(_ int, f map[string][]byte) { f["events.jsonl"] = []byte{} }, 4, "status"},
		{"an event put in", 1, func(_ int, f map[string][]byte) {
			f["events.jsonl"] = append([]byte(`{"seq":7,"time":"2026-11-20T12:00:00Z","loop":"x","type":"warned","iteration":1,"phase":""}`+"\n"), f["events.jsonl"]...)
		}, 4, "stands where event 8"},
		{"the head", 1, func(_ int, f map[string][]byte) {
			var s loop.State
			_ = json.Unmarshal(f["state.json"], &s)
			replace(f, "state.json", `"head": "`+s.Head, `"head": "`+strings.Repeat("0", 40))
		}, 4, "stands for the commit"},
		{"a file more", 1, func(_ int, f map[string][]byte) { f["note.txt"] = []byte("x") }, 4, "note.txt"},
		{"a state that is none", 1, func(_ int, f map[string][]byte) { f["state.json"] = []byte("[") }, 4, "can't be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := written(t)
			b.rewritten(c.n, c.change)
			r, err := ledger.Open(b.store).Verify(ctx, b.head())
			require.NoError(t, err)
			require.NotEmpty(t, r.Faults)
			require.Equal(t, c.entry, r.Faults[0].Entry)
			var all strings.Builder
			for _, f := range r.Faults {
				fmt.Fprintln(&all, f.What)
			}
			require.Contains(t, all.String(), c.says)
		})
	}
	t.Run("nothing", func(t *testing.T) { // the forging itself leaves no trace
		b := written(t)
		b.rewritten(2, func(int, map[string][]byte) {})
		r, err := ledger.Open(b.store).Verify(ctx, b.head())
		require.NoError(t, err)
		require.Empty(t, r.Faults)
	})
}

// TestL8_APlanAndAmendmentsAreProven: the contract changes by its events alone, and the plan is the
// one that was approved.
func TestL8_APlanAndAmendmentsAreProven(t *testing.T) {
	const plan = "first this, then that"
	amendment := json.RawMessage(`{"limits":{"iterations":9}}`)
	planned := func(t *testing.T) *book {
		b := written(t)
		c, err := b.ledger.Contract(ctx, b.head())
		require.NoError(t, err)
		c.Plan = fmt.Sprintf("%x", sha256.Sum256([]byte(plan)))
		b.put(b.head(), b.with(map[string][]byte{ledger.PlanFile: []byte(plan)},
			loop.Event{Type: loop.PlanMade, Plan: &loop.Plan{Hash: c.Plan, Text: plan}, Contract: &loop.Contract{Hash: c.Hash(), Base: b.code}}))
		c, err = c.Amended(amendment, nil)
		require.NoError(t, err)
		b.append(loop.Event{Type: loop.ContractAmended, Amendment: amendment, Limits: map[loop.Resource]evidence.Decimal{}, Contract: &loop.Contract{Hash: c.Hash(), Base: b.code}})
		b.append(loop.Event{Type: loop.Warned, Reason: "one more"})
		return b
	}
	b := planned(t)
	r, err := ledger.Open(b.store).Verify(ctx, b.head())
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	for name, c := range map[string]struct {
		change func(i int, f map[string][]byte)
		entry  int
		says   string
	}{
		"another plan": {func(i int, f map[string][]byte) { f[ledger.PlanFile] = []byte("something else") }, 5, "plan.md"},
		"another amendment": {func(i int, f map[string][]byte) {
			replace(f, ledger.EventsFile, `{"iterations":9}`, `{"iterations":8}`)
		}, 6, "amendments"},
		"a contract besides": {func(i int, f map[string][]byte) {
			replace(f, ledger.ContractFile, `"iterations": 9`, `"iterations": 99`)
		}, 6, "contract"},
		"an empty amendment": {func(i int, f map[string][]byte) { replace(f, ledger.EventsFile, `"contract":{`, `"contrac":{`) }, 5, "contract"},
	} {
		t.Run(name, func(t *testing.T) {
			b := planned(t)
			b.rewritten(3, c.change)
			r, err := ledger.Open(b.store).Verify(ctx, b.head())
			require.NoError(t, err)
			require.NotEmpty(t, r.Faults)
			require.Equal(t, c.entry, r.Faults[0].Entry, r.Faults)
			require.Contains(t, fmt.Sprint(r.Faults), c.says)
		})
	}
}

// A file of the store that is not what its name says, or is gone.
func TestL8_DamageOnTheDiskIsFound(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string, content []byte){
		"another content": func(t *testing.T, path string, content []byte) {
			var z bytes.Buffer
			w := zlib.NewWriter(&z)
			_, _ = w.Write(bytes.Replace(content, []byte("completed"), []byte("cOmpleted"), 1))
			require.NoError(t, w.Close())
			require.NoError(t, os.WriteFile(path, z.Bytes(), 0o444))
		},
		"no content":   func(t *testing.T, path string, _ []byte) { require.NoError(t, os.WriteFile(path, nil, 0o444)) },
		"it is absent": func(t *testing.T, path string, _ []byte) { require.NoError(t, os.Remove(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := written(t)
			dir := b.store.Dir()
			packs, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
			require.NoError(t, err)
			for _, pack := range packs {
				content, err := os.ReadFile(pack)
				require.NoError(t, err)
				for _, ext := range []string{".pack", ".idx", ".keep"} {
					_ = os.Remove(strings.TrimSuffix(pack, ".pack") + ext)
				}
				git(t, dir, string(content), "unpack-objects", "-q")
			}
			blob := git(t, dir, "", "rev-parse", b.head()+":state.json")
			path := filepath.Join(dir, "objects", blob[:2], blob[2:])
			state := git(t, dir, "", "cat-file", "blob", blob) + "\n"
			require.NoError(t, os.Chmod(path, 0o644))
			change(t, path, append(fmt.Appendf(nil, "blob %d\x00", len(state)), state...))
			r, err := ledger.Open(b.store).Verify(ctx, b.head())
			require.NoError(t, err)
			require.Len(t, r.Faults, 1)
			require.Equal(t, 4, r.Faults[0].Entry, "%+v", r.Faults)
			require.Contains(t, r.Faults[0].What, blob)
			require.True(t, r.Cut)
		})
	}
	t.Run("a head that is no ledger", func(t *testing.T) {
		b := written(t)
		r, err := ledger.Open(b.store).Verify(ctx, b.code)
		require.NoError(t, err)
		require.Contains(t, r.Faults[0].What, "0 parents")
		r, err = ledger.Open(b.store).Verify(ctx, strings.Repeat("1", 40))
		require.NoError(t, err)
		require.Contains(t, r.Faults[0].What, "missing")
	})
}
