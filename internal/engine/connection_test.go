package engine_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/engine"
)

// node is the server's statement for events, of a smaller table.
const node = "REPLACE INTO history_node (id, data) VALUES (?, ?)"

func events(t *testing.T, opened func(engine.SqliteConn) engine.SqliteConn) *sql.DB {
	db := engine.Pool(filepath.Join(t.TempDir(), "db"), opened)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err := db.Exec("CREATE TABLE history_node (id INTEGER PRIMARY KEY, data TEXT NOT NULL)")
	require.NoError(t, err)
	return db
}

func asItIs(c engine.SqliteConn) engine.SqliteConn { return c }

// requireFull checks that the next transaction is synced.
func requireFull(t *testing.T, db *sql.DB) {
	t.Helper()
	var level int
	require.NoError(t, db.QueryRow("SELECT synchronous FROM pragma_synchronous").Scan(&level))
	require.Equal(t, 2, level)
}

func TestWhatAReportedDecisionNeedsIsSynced(t *testing.T) {
	db := events(t, asItIs)
	requireFull(t, db)
	_, err := db.Exec(node, 1, "alone")
	require.NoError(t, err)
	requireFull(t, db)

	tx, err := db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec(node, 2, "in a transaction")
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	requireFull(t, db)

	_, err = db.Exec(node, 3, nil)
	require.ErrorContains(t, err, "NOT NULL")
	requireFull(t, db)

	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = db.ExecContext(stopped, node, 4, "too late")
	require.ErrorIs(t, err, context.Canceled)
	requireFull(t, db)

	var rows int
	require.NoError(t, db.QueryRow("SELECT count(*) FROM history_node").Scan(&rows))
	require.Equal(t, 2, rows)
}

// TestEventsAreSyncedWithTheirTransaction writes how much is synced while events are written.
func TestEventsAreSyncedWithTheirTransaction(t *testing.T) {
	db := events(t, asItIs)
	const level = "REPLACE INTO history_node (id, data) SELECT ?, synchronous FROM pragma_synchronous"
	_, err := db.Exec(level, 1)
	require.NoError(t, err)
	tx, err := db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec(level, 2)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	var alone, together string
	require.NoError(t, db.QueryRow("SELECT a.data, b.data FROM history_node a, history_node b WHERE a.id = 1 AND b.id = 2").Scan(&alone, &together))
	require.Equal(t, "1", alone)
	require.Equal(t, "2", together)
}

// stuck is a connection that can't be made to sync everything again.
type stuck struct{ engine.SqliteConn }

func (s stuck) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if query == "PRAGMA synchronous(2)" {
		return nil, errors.New("stuck")
	}
	return s.SqliteConn.ExecContext(ctx, query, args)
}

func TestAConnectionThatDoesNotSyncEverythingIsNotUsedAgain(t *testing.T) {
	opened := 0
	db := events(t, func(c engine.SqliteConn) engine.SqliteConn {
		opened++
		return stuck{c}
	})
	for i := range 3 {
		_, err := db.Exec(node, i, "written")
		require.NoError(t, err)
		requireFull(t, db)
	}
	require.Equal(t, 4, opened)
}

func TestAConnectionKeepsItsStatements(t *testing.T) {
	db := events(t, asItIs)
	first, err := engine.Kept(db)
	require.NoError(t, err)
	for i := range 10 {
		_, err := db.Exec(node, i, fmt.Sprint(i))
		require.NoError(t, err)
		var data string
		require.NoError(t, db.QueryRow("SELECT data FROM history_node WHERE id = ?", i).Scan(&data))
		require.Equal(t, fmt.Sprint(i), data)
	}
	kept, err := engine.Kept(db)
	require.NoError(t, err)
	require.Equal(t, first+2, kept)

	columns := func() []string {
		rows, err := db.Query("SELECT * FROM history_node WHERE id = ?", 3)
		require.NoError(t, err)
		defer rows.Close()
		names, err := rows.Columns()
		require.NoError(t, err)
		return names
	}
	require.Equal(t, []string{"id", "data"}, columns())
	_, err = db.Exec("ALTER TABLE history_node ADD COLUMN more TEXT DEFAULT 'more'")
	require.NoError(t, err)
	require.Equal(t, []string{"id", "data", "more"}, columns())

	for i := range engine.MaxKept + 10 {
		var n int
		require.NoError(t, db.QueryRow(fmt.Sprintf("SELECT %d", i)).Scan(&n))
		require.Equal(t, i, n)
	}
	kept, err = engine.Kept(db)
	require.NoError(t, err)
	require.LessOrEqual(t, kept, engine.MaxKept)
}
