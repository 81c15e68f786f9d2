package engine

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/server/api/adminservice/v1"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	sqliteschema "go.temporal.io/server/schema/sqlite"

	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
)

// database is the engine's SQLite file. Its header holds the version of its schema (`PRAGMA user_version`), so the
// version stays with a file that is copied, restored or swapped. The server itself neither migrates nor checks
// (VerifyVersion of its sqlite plugin is commented out), and would write into a file of another schema.
type database struct{ path string }

// Offsets in the header of an SQLite file, https://www.sqlite.org/fileformat.html#the_database_header.
const (
	sqliteMagic         = "SQLite format 3\x00"
	sqliteHeaderSize    = 100
	offsetUserVersion   = 60
	offsetApplicationID = 68

	// applicationID marks the files that pawl made: "pawl".
	applicationID = 0x7061776c

	// Primary result codes, https://www.sqlite.org/rescode.html.
	sqliteCorrupt = 11
	sqliteNotADB  = 26
)

var errNotOurs = errors.New("not a database that this engine can open")

// prepared is what prepare has done.
type prepared struct {
	created  bool   // there was no database
	damaged  bool   // replaced is damaged, and not merely of another version
	replaced string // the path of the database that was moved aside, "" for none
	amended  string // the rows that were removed because they could not be decoded, "" for none
	rewound  bool   // timers had been read further than the clock is
	// goingOn has, for each run that has not ended, the request to make its tasks again.
	goingOn []*adminservice.RefreshWorkflowTasksRequest
}

// prepare makes sure that there is a database of the running code's schema in which every row can be read. It moves
// any other file aside. It never deletes or opens it.
func (d database) prepare(now time.Time) (p prepared, err error) {
	suffix, err := d.version()
	if errors.Is(err, fs.ErrNotExist) {
		p.created = true
		return p, d.create()
	}
	if err == nil && suffix == sqliteschema.Version {
		if err = d.check(); err == nil {
			if p, err = d.amend(now); err == nil {
				return p, nil
			}
		}
	}
	if errors.Is(err, errNotOurs) {
		p.damaged, suffix, err = true, "corrupt", nil
	}
	if err != nil {
		return p, fmt.Errorf("read engine database: %w", err)
	}
	if p.replaced, err = d.moveAside(suffix); err != nil {
		return p, err
	}
	return p, d.create()
}

// rowsTime limits how long reading the rows may take.
const rowsTime = 5 * time.Second

// open opens the file for reading or repair, with or without a running server.
func (d database) open(mode string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", d.dsn()+"?mode="+mode+"&_pragma=busy_timeout(2000)")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// bad decodes every row that the server may read, except the histories of runs that are over. It returns the rows that
// can't be decoded, and none if reading them takes longer than rowsTime.
func (d database) bad(mode string) (bad []badRow, err error) {
	db, err := d.open(mode)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), rowsTime)
	defer cancel()
	for _, c := range columns {
		found, err := c.bad(ctx, db)
		if ctx.Err() != nil {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", c.table, err)
		}
		bad = append(bad, found...)
	}
	return bad, nil
}

// amend removes the rows that can't be decoded, and rewinds timers that were read further than the clock. The error is
// errNotOurs if the rows can't be removed.
func (d database) amend(now time.Time) (p prepared, err error) {
	bad, err := d.bad("rw")
	if err != nil {
		return p, damage(err)
	}
	db, err := d.open("rw")
	if err != nil {
		return p, err
	}
	defer db.Close()
	ctx := context.Background()
	if len(bad) > 0 {
		done, err := amend(ctx, db, bad)
		if err == nil && !done {
			return p, fmt.Errorf("%w: %s", errNotOurs, described(bad))
		}
		if err != nil {
			return p, damage(err)
		}
		p.amended = described(bad)
	}
	p.rewound, err = rewind(ctx, db, now)
	if err == nil && (p.rewound || p.amended != "") {
		p.goingOn, err = goingOn(ctx, db)
	}
	return p, damage(err)
}

// damage adds errNotOurs to an error that damaged pages cause, and returns any other error unchanged.
func damage(err error) error {
	var coded interface {
		error
		Code() int
	}
	if errors.As(err, &coded) && (coded.Code()&0xff == sqliteCorrupt || coded.Code()&0xff == sqliteNotADB) {
		return fmt.Errorf("%w: %w", errNotOurs, err)
	}
	return err
}

// checkTime limits the check of a database, which takes about a millisecond per megabyte. A database that needs
// longer is used unchecked; damage in it shows when it is used.
const checkTime = 150 * time.Millisecond

// check looks for damaged pages: missing, cut off or overwritten. After a crash, SQLite also writes the write-ahead
// log into the file here.
func (d database) check() error {
	db, err := sql.Open("sqlite", d.dsn()+"?mode=rw")
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()

	var found string
	err = db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found)
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil && found != "ok":
		return fmt.Errorf("%w: %s", errNotOurs, found)
	}
	return damage(err)
}

// version returns the schema version of the file, from its header alone.
func (d database) version() (string, error) {
	f, err := os.Open(dirfd.At(d.path))
	if err != nil {
		return "", err
	}
	defer f.Close()

	var header [sqliteHeaderSize]byte
	if _, err := io.ReadFull(f, header[:]); err != nil || !bytes.HasPrefix(header[:], []byte(sqliteMagic)) {
		return "", errNotOurs
	}
	if binary.BigEndian.Uint32(header[offsetApplicationID:]) != applicationID {
		return "unknown", nil
	}
	v := binary.BigEndian.Uint32(header[offsetUserVersion:])
	return fmt.Sprintf("%d.%d", v>>16, v&0xffff), nil
}

// create makes the file under another name and renames it, so a file called temporal.db is always complete. It uses
// one transaction: the server's SetupSchema would commit, and so sync, each of its hundred statements.
func (d database) create() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("create engine database: %w", err)
		}
	}()
	var major, minor uint16
	_, _ = fmt.Sscanf(sqliteschema.Version, "%d.%d", &major, &minor)
	draft := database{d.path + ".new"}
	if err := draft.remove(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", draft.dsn())
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	if err := sqliteschema.SetupSchemaOnDB(schemaTx{tx: tx}); err != nil {
		return err
	}
	statements := append(slices.Clip(hintPlanner),
		fmt.Sprintf("PRAGMA user_version = %d", uint32(major)<<16|uint32(minor)), fmt.Sprintf("PRAGMA application_id = %d", applicationID))
	for _, statement := range statements {
		if _, err := tx.Exec(statement); err != nil {
			return err
		}
	}
	if err := errors.Join(tx.Commit(), db.Close(), os.Chmod(dirfd.At(draft.path), 0o600)); err != nil {
		return err
	}
	return durable.Rename(draft.path, d.path)
}

// listIndexes are those indexes of the table executions_visibility that lists need. The server's schema has 58, one for
// each search attribute. Each change of a loop's phase rewrites all of them, which takes 6 ms of processor time; the
// others take more than half of it. Without them, queries scan the loops of one machine.
var listIndexes = []string{"default_idx", "by_workflow_id", "by_workflow_type", "by_status"}

// hintPlanner makes the cost of a step independent of the length of its history. The server reads the newest events
// by `((node_id = ? AND txn_id > ?) OR node_id > ?) AND node_id < ?`. SQLite believes that the table is small and
// searches by the last condition only, which takes a millisecond for each thousand steps. With these statistics it
// expects long branches and searches by both sides of the OR.
var hintPlanner = []string{
	"ANALYZE sqlite_schema", // creates sqlite_stat1
	"INSERT INTO sqlite_stat1 VALUES ('history_node', 'sqlite_autoindex_history_node_1', '10000000 10000000 100000 100000 1 1')",
}

// schemaTx runs the server's schema statements inside a transaction, without the indexes that no list needs.
// SetupSchemaOnDB uses nothing else of AdminDB.
type schemaTx struct {
	sqlplugin.AdminDB
	tx *sql.Tx
}

func (s schemaTx) Exec(stmt string, args ...any) error {
	// CREATE INDEX name ON executions_visibility (…)
	f := strings.Fields(stmt)
	if len(f) > 4 && f[1] == "INDEX" && f[4] == "executions_visibility" && !slices.Contains(listIndexes, f[2]) {
		return nil
	}
	_, err := s.tx.ExecContext(context.Background(), stmt, args...)
	return err
}

// parts are the suffixes of a database's files. The log is moved first: SQLite just drops a log without its file, but
// a file without its log has lost what was committed last.
var parts = []string{"-wal", "-shm", "-journal", ""}

// moveAside renames the database's files to temporal.db.<suffix>, or to temporal.db.<suffix>.2 and so on if that name
// is taken. It returns the new path.
func (d database) moveAside(suffix string) (string, error) {
	target := d.path + "." + suffix
	for n := 2; ; n++ {
		if _, err := os.Lstat(dirfd.At(target)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		target = fmt.Sprintf("%s.%s.%d", d.path, suffix, n)
	}
	for _, part := range parts {
		err := durable.Rename(d.path+part, target+part)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("move engine database aside: %w", err)
		}
	}
	return target, nil
}

func (d database) remove() error {
	for _, part := range parts {
		if err := os.Remove(dirfd.At(d.path + part)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (d database) dsn() string { return "file:" + d.escaped() }

// escaped returns the path as SQLite reads it in a URI, where `?`, `#` and `%` have a meaning. SQLite asks the system
// for the path of the held folder and opens the file by that path. opened checks that it was the same folder.
func (d database) escaped() string {
	return (&url.URL{Path: filepath.ToSlash(dirfd.At(d.path))}).EscapedPath()
}

// opened returns an error if this process has not opened the database in the folder that it holds: somebody has
// replaced a folder at that very moment. It returns nil if the system does not say which files are open.
func (d database) opened() error {
	want, err := os.Stat(dirfd.At(d.path))
	if err != nil {
		return fmt.Errorf("the engine's database is not where it was: %w", dirfd.Named(err, d.path))
	}
	const files = "/proc/self/fd"
	open, err := os.ReadDir(files)
	if err != nil {
		return nil //nolint:nilerr // macOS
	}
	for _, f := range open {
		if info, err := os.Stat(filepath.Join(files, f.Name())); err == nil && os.SameFile(info, want) {
			return nil
		}
	}
	return fmt.Errorf("the engine has opened another database than %s: something was put in the place of a folder above it", d.path)
}

// starts counts the engines that this process has started.
var starts atomic.Int64

// config returns the server's configuration for the file.
func (d database) config() *config.SQL {
	return &config.SQL{
		PluginName:   sqliteplugin.PluginName,
		DatabaseName: d.escaped(),
		ConnectAttributes: map[string]string{
			"mode": "rw",
			// The server's plugin keeps the connection to a data source as long as the process lives, even if the
			// file has been replaced since. This value makes each start another data source. The plugin understands
			// only `setup=true`, and SQLite ignores the key.
			"setup": strconv.FormatInt(starts.Add(1), 10),
		},
		// One connection: the server's transactions read before they write. In WAL mode with a second connection that
		// upgrade fails with SQLITE_BUSY instead of waiting.
		MaxConns:     1,
		MaxIdleConns: 1,
	}
}
