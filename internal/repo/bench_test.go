package repo_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/repo"
)

// benchBed is a loop that can run iterations: what an activity of each kind asks of this package.
type benchBed struct {
	*bed
	desk, judge  *repo.Tree
	head, ledger string
	n            int
	spent        map[string]time.Duration
	order        []string
	state, tsv   []byte
}

func newBenchBed(b *testing.B, files int) *benchBed {
	content := map[string]string{".gitignore": "build/\n"}
	for i := range files {
		content[fmt.Sprintf("d%02d/f%03d.txt", i%40, i)] = strings.Repeat(fmt.Sprintf("line %d\n", i), 20)
	}
	bb := &benchBed{bed: newBed(b, content), spent: map[string]time.Duration{}, state: []byte(strings.Repeat("state ", 500))}
	bb.desk, bb.judge, bb.head = bb.tree("desk", bb.base), bb.tree("judge", bb.base), bb.base
	return bb
}

func (b *benchBed) step(name string, f func()) {
	start := time.Now()
	f()
	if _, ok := b.spent[name]; !ok {
		b.order = append(b.order, name)
	}
	b.spent[name] += time.Since(start)
}

func (b *benchBed) entry(code string) (repo.Entry, error) {
	b.tsv = fmt.Appendf(b.tsv, "%d\t2026-11-20T12:00:00Z\t84.%d\t+0.10\tyes\tmake it better\n", b.n, b.n)
	return repo.Entry{Ref: "refs/pawl-ledger/x", Prev: b.ledger, Code: code, Message: "iteration", Time: when, Author: who,
		Files: map[string][]byte{"state.json": fmt.Appendf(b.state, "%d", b.n), "events.jsonl": []byte("{}\n{}\n"), "record.json": fmt.Appendf(nil, "{%d}", b.n), "loop-results.tsv": b.tsv}}, nil
}

func (b *benchBed) iteration(keep, push bool) {
	b.n++
	b.step("(for comparison: git version)", func() { git(b, b.dir, "version") })
	b.step("begin: desk.Restore", func() { b.restore(b.desk, b.head, repo.RestoreOptions{}) })
	write(b, filepath.Join(b.desk.Dir, "d00", "f000.txt"), fmt.Sprintf("better %d\n", b.n))
	var c repo.Change
	b.step("commit: desk.Stage", func() { c = b.stage(b.desk, b.head) })
	var commit string
	b.step("commit: store.Commit", func() {
		var err error
		commit, err = b.store.Commit(ctx, b.commitInput(c.Tree, b.head))
		require.NoError(b, err)
	})
	b.step("verify: judge.Restore", func() { b.restore(b.judge, commit, judge) })
	tx := repo.Tx{Entry: b.entry}
	if !keep {
		tx.Revert = &repo.RevertInput{Commit: commit, Branch: b.branch, Author: who, Time: when}
	} else {
		tx.Entry = func(string) (repo.Entry, error) { return b.entry(commit) }
	}
	b.step(fmt.Sprintf("settle: store.Transact kept=%v", keep), func() {
		r, err := b.store.Transact(ctx, tx)
		require.NoError(b, err)
		b.ledger, b.head = r.Entry, r.Code
	})
	if keep {
		b.head = commit
		b.step("settle: desk.Refresh", func() { require.NoError(b, b.desk.Refresh(ctx, commit)) })
		if push {
			b.step("settle: store.Push", func() {
				require.NoError(b, b.store.Push(ctx, b.user, b.branch, "refs/pawl-ledger/x"))
			})
		}
	}
}

func benchIterations(b *testing.B, files int, keep func(n int) bool, push bool) {
	bb := newBenchBed(b, files)
	bb.iteration(true, push)
	bb.spent, bb.order = map[string]time.Duration{}, nil
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		bb.iteration(keep(i), push)
	}
	b.StopTimer()
	var table strings.Builder // one entry: only ten are shown
	for _, name := range bb.order {
		fmt.Fprintf(&table, "\n%-40s %6.2f ms", name, float64(bb.spent[name].Microseconds())/1000/float64(b.N))
	}
	b.Log(table.String())
}

func BenchmarkIterationKept(b *testing.B) {
	benchIterations(b, 100, func(int) bool { return true }, false)
}
func BenchmarkIterationDiscarded(b *testing.B) {
	benchIterations(b, 100, func(int) bool { return false }, false)
}
func BenchmarkIterationKeptAndPushed(b *testing.B) {
	benchIterations(b, 100, func(int) bool { return true }, true)
}
func BenchmarkIterationKept5000Files(b *testing.B) {
	benchIterations(b, 5000, func(int) bool { return true }, false)
}
