package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/jmoiron/sqlx"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	persistencesql "go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/resolver"
)

// connect opens the database for the server, and puts a pool of pawl's own, which it returns, into the server's plugin.
// The plugin has one pool for each data source, as long as the process lives, and no option for another.
func (d database) connect(cfg *config.SQL) (*sql.DB, error) {
	db, err := persistencesql.NewSQLDB(sqlplugin.DbKindMain, cfg, resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	field := reflect.ValueOf(db).Elem().FieldByName("db")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*sqlx.DB]() {
		return nil, errors.New("the server's SQLite plugin is not the one that pawl was made for")
	}
	pool := (*sqlx.DB)(field.UnsafePointer())
	conn := sql.OpenDB(connector{pool.Driver(), d.dsn() + "?mode=rw&_time_format=sqlite&_pragma=journal_mode(wal)&_pragma=" + syncAll})
	conn.SetMaxOpenConns(cfg.MaxConns)
	conn.SetMaxIdleConns(cfg.MaxIdleConns)
	theirs := pool.DB
	pool.DB = conn
	return conn, theirs.Close()
}

// maxKept limits how many statements a connection keeps. The server has about a hundred, and one for each kind of list
// that somebody asks for.
const maxKept = 200

const (
	// FULL: a decision that was reported survives a power cut.
	syncAll = "synchronous(2)"
	// NORMAL: what is written is synced together with the next transaction.
	syncLater = "synchronous(1)"
	// historyNode is the beginning of the statement that writes events.
	historyNode = "REPLACE INTO history_node "
)

// connector opens connections for a pool.
type connector struct {
	driver driver.Driver
	dsn    string
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	opened, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	conn, ok := opened.(sqliteConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%T is no connection that the engine can use", opened), opened.Close())
	}
	return &connection{sqliteConn: conn, kept: map[string]statement{}}, nil
}

// sqliteConn is what the driver's connections can do.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// connection keeps the statements that it has executed: to parse them again each time takes a sixth of a step's
// processor time. While a query's rows are read, the server executes nothing else on its connection.
type connection struct {
	sqliteConn
	kept   map[string]statement
	unsure bool // synchronous may not be FULL
}

func (c *connection) statement(ctx context.Context, query string) (statement, error) {
	if s, ok := c.kept[query]; ok {
		return s, nil
	}
	if len(c.kept) >= maxKept {
		if err := c.forget(); err != nil {
			return nil, err
		}
	}
	prepared, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	c.kept[query] = prepared.(statement)
	return c.kept[query], nil
}

func (c *connection) forget() (err error) {
	for query, s := range c.kept {
		delete(c.kept, query)
		err = errors.Join(err, s.Close())
	}
	return err
}

// ExecContext executes a statement. The server writes events outside the transaction that refers to them, just before it.
// Without that transaction nobody reads them, so they are synced together with it. In a transaction, SQLite refuses to
// change what is synced, and nothing needs to change: the transaction is synced as a whole.
func (c *connection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(query, historyNode) && c.pragma(syncLater) == nil {
		defer func() { c.unsure = c.pragma(syncAll) != nil }()
	}
	return s.ExecContext(ctx, args)
}

// pragma is not a kept statement, because it takes effect when it is parsed.
func (c *connection) pragma(setting string) error {
	_, err := c.sqliteConn.ExecContext(context.Background(), "PRAGMA "+setting, nil)
	return err
}

func (c *connection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args)
}

// IsValid reports whether the pool may keep the connection.
func (c *connection) IsValid() bool { return !c.unsure && c.sqliteConn.IsValid() }

func (c *connection) Close() error { return errors.Join(c.forget(), c.sqliteConn.Close()) }
