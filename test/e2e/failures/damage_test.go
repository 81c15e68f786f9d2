package failures_test

import (
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // reads and damages the engine's database

	"pawl/test/harness/world"
)

// damage is a file of $PAWL_HOME that is lost, cut off or overwritten while a loop is in its second iteration.
type damage struct {
	name string
	do   func(*damaged)
	down bool   // only while nothing runs, because the engine has the file open
	told string // what the program's log says about it, "" if it has no effect
	// named is what the loop's log, `show`, `list` and `doctor` say about it afterwards.
	named string
}

// damaged is a host with two loops. One loop's files are damaged.
type damaged struct {
	*world.World
	other string
}

// file returns the path of a file of the loop, of the store or of the home.
func (d *damaged) file(pattern string) string {
	d.T.Helper()
	pattern = strings.NewReplacer("LOOP", filepath.Join("loops", d.Loop), "STORE", filepath.Join("stores", "*.git"), "ID", d.Loop).Replace(pattern)
	found, err := fs.Glob(os.DirFS(d.Home), pattern)
	require.NoError(d.T, err)
	require.NotEmpty(d.T, found, "%s is not there", pattern)
	return filepath.Join(d.Home, found[0])
}

// The ways in which a file is damaged.
func emptied(pattern string) func(*damaged) {
	return func(d *damaged) { require.NoError(d.T, os.Truncate(d.file(pattern), 0)) }
}

func removed(pattern string) func(*damaged) {
	return func(d *damaged) {
		path, err := filepath.EvalSymlinks(d.file(pattern)) // the trees are elsewhere
		require.NoError(d.T, err)
		require.NoError(d.T, os.RemoveAll(path))
	}
}

// database removes the engine's database, with its log.
func database(d *damaged) {
	for _, part := range []string{"", "-wal", "-shm"} {
		require.NoError(d.T, os.RemoveAll(filepath.Join(d.Home, "engine", "temporal.db"+part)))
	}
}

func garbled(pattern string) func(*damaged) {
	return func(d *damaged) {
		path := d.file(pattern)
		require.NoError(d.T, os.Chmod(path, 0o600))
		b, err := os.ReadFile(path)
		require.NoError(d.T, err)
		for i := len(b) / 3; i < len(b)/3+min(len(b)/3, 64); i++ {
			b[i] ^= 0xA5
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		require.NoError(d.T, err)
		defer f.Close()
		_, err = f.WriteAt(b, 0)
		require.NoError(d.T, err)
	}
}

// altered changes one letter, so that the file is still a valid document.
func altered(pattern, after string) func(*damaged) {
	return func(d *damaged) {
		path := d.file(pattern)
		b := []byte(world.ReadFile(path))
		i := strings.Index(string(b), after)
		require.Positive(d.T, i, "%s has no %s", path, after)
		b[i+len(after)] ^= 1
		require.NoError(d.T, os.WriteFile(path, b, 0o600))
	}
}

// packs overwrites the middle of every pack of the store.
func packs(d *damaged) {
	found, err := fs.Glob(os.DirFS(d.Home), filepath.Join("stores", "*.git", "objects", "pack", "*.pack"))
	require.NoError(d.T, err)
	require.NotEmpty(d.T, found)
	for _, name := range found {
		garbled(name)(d)
	}
}

// rowOf overwrites rows of the engine's database.
func rowOf(table, where string) func(*damaged) {
	return func(d *damaged) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(d.Home, "engine", "temporal.db")+"?_pragma=busy_timeout(10000)")
		require.NoError(d.T, err)
		defer db.Close()
		done, err := db.Exec("UPDATE "+table+" SET data = x'ff00ff00ff00ff00ff00ff00' WHERE "+where, d.Loop)
		require.NoError(d.T, err)
		n, err := done.RowsAffected()
		require.NoError(d.T, err)
		require.Positive(d.T, n, "%s has no such row", table)
	}
}

const (
	ofLoop = "workflow_id = ?"
	ofTree = "tree_id IN (SELECT run_id FROM current_executions WHERE workflow_id = ?)"
	ofAny  = "? <> '' AND rowid IN (SELECT max(rowid) FROM %s)"
)

var damages = []damage{
	{"workspace record emptied", emptied("LOOP/workspace.json"), false, "made again from the ledger", "made again from the ledger"},
	{"workspace record garbled", garbled("LOOP/workspace.json"), false, "made again from the ledger", "made again from the ledger"},
	{"workspace record altered", altered("LOOP/workspace.json", `"branch": "refs/heads/`), false, "made again from the ledger", "made again from the ledger"},
	{"workspace record removed", removed("LOOP/workspace.json"), false, "made again from the ledger", "made again from the ledger"},
	{"result of a step emptied", emptied("LOOP/steps/0001.1-verify/result.json"), false, "", ""},
	{"environment garbled", garbled("LOOP/environment.json"), false, "", ""},
	{"places of the refs garbled", garbled("LOOP/heads.json"), false, "it is written again", "it is written again"},
	{"desk removed", removed("LOOP/desk"), true, "it is made again", "it is made again"},
	{"desk's git directory removed", removed("LOOP/desk/.git"), true, "", ""},
	{"index of the desk emptied", emptied("LOOP/admin/desk/index"), false, "it is made again", "it is made again"},
	{"index of the desk garbled", garbled("LOOP/admin/desk/index"), false, "it is made again", "it is made again"},
	{"state of the desk garbled", garbled("LOOP/admin/desk/state.json"), false, "it is made again", "it is made again"},
	{"judge removed", removed("LOOP/judge"), false, "", ""},
	{"index of the judge emptied", emptied("LOOP/admin/judge/index"), false, "", ""},
	{"store removed", removed("STORE"), false, "damaged and is mended", "it is mended"},
	{"packs of the store garbled", packs, false, "damaged and is mended", "it is mended"},
	{"ledger's ref emptied", emptied("STORE/refs/pawl-ledger/ID"), false, "damaged and is mended", "it is mended"},
	{"ledger's ref removed", removed("STORE/refs/pawl-ledger/ID"), false, "damaged and is mended", "it is mended"},
	{"branch's ref emptied", emptied("STORE/refs/heads/pawl/ID"), false, "damaged and is mended", "it is mended"},
	{"branch's ref garbled", garbled("STORE/refs/heads/pawl/ID"), false, "damaged and is mended", "it is mended"},
	{"config of the store emptied", emptied("STORE/config"), false, "it is written again", "it is written again"},
	{"config of the store garbled", garbled("STORE/config"), false, "it is written again", "it is written again"},
	{"HEAD of the store emptied", emptied("STORE/HEAD"), false, "is mended", "is mended"},
	{"engine's address emptied", emptied("engine/engine.json"), true, "", ""},
	{"engine's database removed", database, true, "had lost continues from its ledger", ""},
	{"engine's database cut", emptied("engine/temporal.db"), true, "had lost continues from its ledger", ""},
	{"row of an execution", rowOf("executions", ofLoop), false, "", ""},
	{"row of a current execution", rowOf("current_executions", ofLoop), false, "", ""},
	{"rows of a history", rowOf("history_node", ofTree), false, "", ""},
	{"row of an activity", rowOf("activity_info_maps", ofLoop), false, "", ""},
	{"row of a timer", rowOf("timer_tasks", fmt.Sprintf(ofAny, "timer_tasks")), false, "", ""},
	{"row of the shard", rowOf("shards", "? <> ''"), false, "", ""},
	{"row of the namespace", rowOf("namespaces", "name = 'default' AND ? <> ''"), false, "", ""},
	{"rows of the task queues", rowOf("task_queues_v2", "? <> ''"), false, "", ""},
}

// Whatever is damaged, the damaged loop ends as if nothing had happened, and so does the other one.
func TestDamageStallsNoLoop(t *testing.T) {
	for _, when := range []string{"while it is at work", "while nothing runs"} {
		t.Run(when, func(t *testing.T) {
			down := when == "while nothing runs"
			if down {
				world.Slow(t, "it is found while the loop is at work")
			}
			for _, d := range world.Sample(1, damages) {
				if d.down && !down {
					continue
				}
				t.Run(d.name, func(t *testing.T) { d.strike(t, down) })
			}
		})
	}
}

func (kind damage) strike(t *testing.T, down bool) {
	t.Parallel()
	w := world.Alone(t, `echo "$PAWL_LOOP $PAWL_ITERATION" >>"$WORLD/at"
		until [ -e "$WORLD/go-$PAWL_LOOP-$PAWL_ITERATION" ]; do sleep 0.05; done; `+world.Raises)
	w.Set(doc{"limits": doc{"iterations": 3}})
	d := &damaged{World: w, other: w.Loop + "-b"}
	up, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, up.Stop()) })
	for _, id := range []string{w.Loop, d.other} {
		require.Equal(t, 0, w.Pawl("start", "--yes", w.SpecFile(), "--id", id).Code)
	}
	at := func(id string, iteration int) {
		w.Until(fmt.Sprintf("%s is in iteration %d", id, iteration), func() bool {
			return strings.Contains(w.Read("at"), fmt.Sprintf("%s %d\n", id, iteration))
		})
	}
	for _, id := range []string{w.Loop, d.other} {
		at(id, 1)
		w.Write("go-"+id+"-1", "")
	}
	for _, id := range []string{w.Loop, d.other} {
		at(id, 2)
		w.Until("the repository has what "+id+" has recorded", func() bool {
			return w.Git("rev-parse", "refs/pawl-ledger/"+id) == strings.TrimSpace(world.ReadFile(d.file("STORE/refs/pawl-ledger/"+id)))
		})
	}
	if down {
		require.NoError(t, up.Stop())
	}
	kind.do(d)
	if down {
		next, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up2"))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, next.Stop()) })
	}
	for _, id := range []string{w.Loop, d.other} {
		for i := 2; i <= 3; i++ {
			w.Write(fmt.Sprintf("go-%s-%d", id, i), "")
		}
	}
	for _, id := range []string{d.other, w.Loop} {
		w.Until(id+" has ended", func() bool {
			s := w.Pawl("show", "--json", id)
			return s.Code == 0 && strings.Contains(s.Out, `"status": "completed"`)
		})
		require.Equal(t, []row{
			{"0", "10", "+0.00", "yes", "baseline"}, {"1", "11", "+1.00", "yes", "raise the number"},
			{"2", "12", "+1.00", "yes", "raise the number"}, {"3", "13", "+1.00", "yes", "raise the number"},
		}, w.Results(id), "%s must end as an undisturbed one", id)
	}
	if !down && strings.HasPrefix(kind.name, "workspace record") {
		return // the loop may have written the file again at its end, before anybody read it
	}
	if kind.told != "" {
		require.Contains(t, world.ReadFile(filepath.Join(w.Home, "logs", "pawl.log")), kind.told)
	}
	if kind.named != "" {
		for _, args := range [][]string{{"show", w.Loop}, {"list"}, {"log", w.Loop}, {"doctor"}} {
			require.Contains(t, w.Pawl(args...).Out, kind.named, args)
		}
	}
	if strings.HasPrefix(kind.told, "had lost") {
		require.Contains(t, w.Pawl("doctor").Out, "mended engine")
	}
}

// The store of a loop that has ended is deleted. pawl says so, and the next worker brings it back from the repository, with
// the proposal.
func TestTheStoreOfAnEndedLoopComesBack(t *testing.T) {
	w := world.Alone(t, world.Raises)
	t.Parallel()
	require.Equal(t, 0, w.Pawl("run", "--yes", w.SpecFile()).Code)
	hash := w.Show().Proposal.Hash
	require.NoError(t, os.RemoveAll(filepath.Join(w.Home, "stores")))
	const gone = "is missing from the store"
	require.Contains(t, w.Pawl("list").Out, gone)
	require.Contains(t, w.Pawl("doctor").Out, gone)
	for _, args := range [][]string{{"show", w.Loop}, {"diff", w.Loop}, {"apply", w.Loop}, {"approve", w.Loop, "--hash", hash}} {
		s := w.Pawl(args...)
		require.Equal(t, 3, s.Code, args)
		require.Contains(t, s.Err, gone, args)
	}
	up, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up"))
	require.NoError(t, err)
	defer func() { require.NoError(t, up.Stop()) }()
	w.Until("the worker has mended the store", func() bool { return w.Pawl("diff", w.Loop).Code == 0 })
	require.NotContains(t, w.Pawl("doctor").Out, gone)
	require.Equal(t, 0, w.Pawl("approve", w.Loop, "--hash", hash).Code)
}
