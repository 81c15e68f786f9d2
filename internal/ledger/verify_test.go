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

	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/test/harness/gittest"
	"pawl/test/harness/testdir"
)

func TestMain(m *testing.M) {
	testdir.InMemory()
	os.Exit(m.Run())
}

var (
	ctx  = context.Background()
	when = time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)
	who  = git.Identity{Name: "Ada", Email: "ada@example.org"}
)

const ref = "refs/pawl-ledger/x"

// book is a loop with a ledger.
type book struct {
	*testing.T
	store  *store.Store
	ledger *ledger.Ledger
	code   string
	heads  []string
	seq    int64
	files  map[string][]byte // further files for the next entry
	keeps  []string          // the commits that the next entry keeps
}

func unpack(t *testing.T, dir string, pack []byte) {
	t.Helper()
	cmd := exec.Command("git", "-C", dir, "unpack-objects", "-q")
	cmd.Stdin = bytes.NewReader(pack)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// written returns a ledger of four entries: opened, begun, one iteration, ended.
func written(t *testing.T) *book {
	t.Helper()
	b := begun(t)
	metric := metric.MustDecimal("84.70")
	b.append(
		loop.Event{Type: loop.IterationStarted, Iteration: 1},
		loop.Event{Type: loop.IterationFailed, Iteration: 1, FailureReason: "guard-fail", Record: &loop.Iteration{N: 1, Description: "try\tit", Metric: &metric, Reason: "guard-fail", EndedAt: when}},
	)
	b.append(loop.Event{Type: loop.AutonomyCompleted, Status: loop.Completed, ExitStatus: "completed"})
	return b
}

// begun returns a ledger of two entries.
func begun(t *testing.T) *book {
	t.Helper()
	user, _ := gittest.UserRepo(t, nil)
	store, err := store.Open(ctx, filepath.Join(t.TempDir(), "store"))
	require.NoError(t, err)
	b := &book{T: t, store: store, ledger: ledger.Open(store)}
	b.code, err = userrepo.Fetch(ctx, store, userrepo.At(user), "main")
	require.NoError(t, err)
	s, err := spec.Parse([]byte(`{"goal":"better","repo":{"path":"/src"},"scope":["**"],"verify":{"command":"measure"},"agent":{"command":["edit"]},"approvals":{"tools":["*"]}}`))
	require.NoError(t, err)
	c := ledger.Contract{Spec: s, Base: b.code, Tools: []string{"*"}}
	b.ledger.Bind(c)
	value := metric.MustDecimal("84.70")
	b.append(
		loop.Event{Type: loop.LoopOpened, Opened: &loop.Opened{Kind: "improve", Base: b.code, Limits: map[loop.Resource]metric.Decimal{loop.Iterations: loop.Count(3)}}},
		loop.Event{Type: loop.ContractDrawn, Contract: &loop.Contract{Hash: c.Hash(), Base: b.code}},
		loop.Event{Type: loop.BaselineMeasured, Metric: &value},
	)
	b.append(loop.Event{Type: loop.AutonomyStarted, By: "me"})
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
	for i := range events {
		b.seq++
		events[i].Seq, events[i].Loop, events[i].Time = b.seq, "x", when.Add(time.Duration(b.seq)*time.Second)
	}
	files, page, err := b.ledger.Entry(ctx, b.head(), events)
	require.NoError(b, err)
	maps.Copy(files, b.files)
	b.put(b.head(), files)
	b.ledger.Appended(b.head(), page)
}

func (b *book) put(prev string, files map[string][]byte) {
	b.Helper()
	id, err := gittest.Append(b.store, store.Entry{Ref: ref, Prev: prev, Code: b.code, Keeps: b.keeps, Files: files, Message: "entry", Time: when, Author: who})
	require.NoError(b, err)
	b.heads = append(b.heads, id)
}

// rewritten replaces the last n entries by changed ones with correct hashes.
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
		if json.Unmarshal(files[ledger.StateFile], &s) == nil && s.Ledger != "" { // a careful forger also adapts this
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
	require.True(t, r.Ended)
	require.Equal(t, b.code, r.Code)
	require.NotEmpty(t, r.Terms)
	require.False(t, r.Cut)
}

// amend appends what a person approved: an amendment of the spec, or a plan.
func (b *book) amend(e loop.Event, change func(*ledger.Contract)) {
	b.Helper()
	c, err := b.ledger.Contract(ctx, b.head())
	require.NoError(b, err)
	change(&c)
	e.Contract = &loop.Contract{Hash: c.Hash(), Base: c.Base}
	b.append(e)
}

// raised appends an approved extension of the iterations.
func (b *book) raised(to int) {
	b.Helper()
	limits := map[loop.Resource]metric.Decimal{loop.Iterations: loop.Count(int64(to))}
	b.amend(loop.Event{Type: loop.ContractAmended, Amendment: fmt.Appendf(nil, `{"limits":{"iterations":%d}}`, to), Limits: limits},
		func(c *ledger.Contract) { c.Spec.Limits.Iterations = to })
}

// planned appends the plan of a Deliver loop.
func (b *book) planned(text string) {
	b.Helper()
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	b.files = map[string][]byte{ledger.PlanFile: []byte(text)}
	b.amend(loop.Event{Type: loop.PlanMade, Plan: &loop.Plan{Hash: hash, Text: text}}, func(c *ledger.Contract) { c.Plan = hash })
	b.files = nil
}

func TestA8_AnApprovedAmendmentLeavesTheLedgerWhole(t *testing.T) {
	b := begun(t)
	b.planned("# first this, then that\n")
	b.raised(5)
	b.raised(9)
	b.append(loop.Event{Type: loop.Warned, Reason: "the contract stays"})
	r, err := ledger.Open(b.store).Verify(ctx, b.head())
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	state, err := b.ledger.State(ctx, b.head())
	require.NoError(t, err)
	require.Equal(t, "9", state.Budget[loop.Iterations].Limit.String())
}

func TestL8_AnAmendmentThatNobodyApprovedIsFound(t *testing.T) {
	for name, change := range map[string]func(i int, files map[string][]byte){
		"an amended contract": func(i int, f map[string][]byte) { replace(f, "contract.json", `"iterations": 5`, `"iterations": 50`) },
		"the plan": func(i int, f map[string][]byte) {
			if i == 0 {
				replace(f, "plan.md", "first", "last")
			}
		},
		"an amendment": func(i int, f map[string][]byte) {
			replace(f, "events.jsonl", `"amendment":{"limits":{"iterations":5}}`, `"amendment":{"limits":{"iterations":50}}`)
		},
		"an amendment without a contract": func(i int, f map[string][]byte) {
			replace(f, "events.jsonl", `,"contract":{`, `,"opened":{`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := begun(t)
			b.planned("# first this, then that\n")
			b.raised(5)
			b.rewritten(2, change)
			r, err := ledger.Open(b.store).Verify(ctx, b.head())
			require.NoError(t, err)
			require.NotEmpty(t, r.Faults)
		})
	}
}

// TestL8_TamperingIsFound: somebody who can write to the store can make correct hashes. But the content of an entry
// must also follow from the entry before.
func TestL8_TamperingIsFound(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int // how many entries are rewritten
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
		{"the contract, from the second entry on", 3, func(_ int, f map[string][]byte) { replace(f, "contract.json", "improve", "deliver") }, 2, "was drawn or approved"},
		{"what no hash of the contract says", 1, func(_ int, f map[string][]byte) { replace(f, "contract.json", "{\n", "{\n \"more\": 1,\n") }, 4, "the contract does not follow"},
		{"a plan that nobody made", 1, func(_ int, f map[string][]byte) { f["plan.md"] = []byte("1. take over") }, 4, "plan.md"},
		{"an event taken out", 1, func(_ int, f map[string][]byte) { f["events.jsonl"] = []byte{} }, 4, "status"},
		{"an event put in", 1, func(_ int, f map[string][]byte) {
			f["events.jsonl"] = append([]byte(`{"seq":7,"time":"2026-11-20T12:00:00Z","loop":"x","type":"warned","iteration":1,"phase":""}`+"\n"), f["events.jsonl"]...)
		}, 4, "is in the place of event 8"},
		{"the head", 1, func(_ int, f map[string][]byte) {
			var s loop.State
			_ = json.Unmarshal(f["state.json"], &s)
			replace(f, "state.json", `"head": "`+s.Head, `"head": "`+strings.Repeat("0", 40))
		}, 4, "its code head is"},
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
	t.Run("nothing", func(t *testing.T) { // rewriting alone is not a fault
		b := written(t)
		b.rewritten(2, func(int, map[string][]byte) {})
		r, err := ledger.Open(b.store).Verify(ctx, b.head())
		require.NoError(t, err)
		require.Empty(t, r.Faults)
	})
}

// A file of the store has other content than its hash says, or is missing.
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
				unpack(t, dir, content)
			}
			blob := gittest.Git(t, dir, "rev-parse", b.head()+":state.json")
			path := filepath.Join(dir, "objects", blob[:2], blob[2:])
			state := gittest.Git(t, dir, "cat-file", "blob", blob) + "\n"
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

// TestALedgerOfAnUnknownKindIsRefused: a later version of pawl wrote the ledger.
func TestALedgerOfAnUnknownKindIsRefused(t *testing.T) {
	b := begun(t)
	b.rewritten(1, func(_ int, files map[string][]byte) {
		files[ledger.StateFile] = bytes.Replace(files[ledger.StateFile], []byte(`"kind": "improve"`), []byte(`"kind": "refine"`), 1)
	})
	_, err := ledger.Open(b.store).State(ctx, b.head())
	require.ErrorContains(t, err, `knows no kind "refine"`)
	require.Equal(t, fault.InvalidSpec, fault.CodeOf(err))
}

func TestL8_AnEntryKeepsTheCandidatesThatItTellsOf(t *testing.T) {
	for name, forged := range map[string]bool{"no event is missing": false, "one event is missing": true} {
		b := begun(t)
		b.keeps = []string{b.code}
		made := loop.Event{Type: loop.CandidateMade, Candidate: &loop.Candidate{N: 1, Made: true, Commit: b.code}}
		if forged {
			made.Candidate.Commit = ""
		}
		b.append(made)
		b.keeps = nil
		r, err := ledger.Open(b.store).Verify(ctx, b.head())
		require.NoError(t, err)
		if !forged {
			require.Empty(t, r.Faults, name)
			continue
		}
		require.Len(t, r.Faults, 1, name)
		require.Contains(t, r.Faults[0].What, "it keeps the commits")
	}
}
