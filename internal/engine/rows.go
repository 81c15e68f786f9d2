package engine

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/server/api/adminservice/v1"
	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/common/persistence/serialization"
	"google.golang.org/protobuf/proto"

	"pawl/internal/lib/list"
)

// The server reads one row at a time and trusts it. A row that it can't decode blocks all others: a damaged task
// stops the queue of all loops. So every row is decoded before the server starts, and again when the server has
// complained. A damaged row of one run is removed with everything that the database has of that run, and its loop
// continues from its ledger. A damaged task is removed and made again from its run. If any other row is damaged, the
// database is moved aside.

// belonging says what a row belongs to.
type belonging int

const (
	ofAll   belonging = iota // the whole database
	ofRun                    // the run in run_id
	ofTree                   // the run whose history is the tree in tree_id
	ofQueue                  // a task, which is made again from its run
)

// column is a column that contains protobuf messages.
type column struct {
	table, name string
	owner       belonging
	message     proto.Message // nil if the column contains messages of several types
}

var columns = []column{
	{"shards", "data", ofAll, &persistencespb.ShardInfo{}},
	{"namespaces", "data", ofAll, &persistencespb.NamespaceDetail{}},
	{"cluster_metadata_info", "data", ofAll, &persistencespb.ClusterMetadata{}},
	{"queue_metadata", "data", ofAll, &persistencespb.QueueMetadata{}},
	{"task_queues", "data", ofAll, &persistencespb.TaskQueueInfo{}},
	{"task_queues_v2", "data", ofAll, &persistencespb.TaskQueueInfo{}},
	{"task_queue_user_data", "data", ofAll, &persistencespb.TaskQueueUserData{}},
	{"executions", "data", ofRun, &persistencespb.WorkflowExecutionInfo{}},
	{"executions", "state", ofRun, &persistencespb.WorkflowExecutionState{}},
	{"current_executions", "data", ofRun, &persistencespb.WorkflowExecutionState{}},
	{"buffered_events", "data", ofRun, &historypb.History{}},
	{"activity_info_maps", "data", ofRun, &persistencespb.ActivityInfo{}},
	{"timer_info_maps", "data", ofRun, &persistencespb.TimerInfo{}},
	{"child_execution_info_maps", "data", ofRun, &persistencespb.ChildExecutionInfo{}},
	{"request_cancel_info_maps", "data", ofRun, &persistencespb.RequestCancelInfo{}},
	{"signal_info_maps", "data", ofRun, &persistencespb.SignalInfo{}},
	{"chasm_node_maps", "metadata", ofRun, &persistencespb.ChasmNodeMetadata{}},
	{"history_tree", "data", ofTree, &persistencespb.HistoryTreeInfo{}},
	{"history_node", "data", ofTree, &historypb.History{}},
	{"transfer_tasks", "data", ofQueue, &persistencespb.TransferTaskInfo{}},
	{"timer_tasks", "data", ofQueue, &persistencespb.TimerTaskInfo{}},
	{"visibility_tasks", "data", ofQueue, &persistencespb.VisibilityTaskInfo{}},
	{"tasks", "data", ofQueue, &persistencespb.AllocatedTaskInfo{}},
	{"tasks_v2", "data", ofQueue, &persistencespb.AllocatedTaskInfo{}},
	{"history_immediate_tasks", "data", ofQueue, nil},
	{"history_scheduled_tasks", "data", ofQueue, nil},
}

// runTables are the tables whose rows belong to a run.
var runTables = []string{
	"executions", "current_executions", "buffered_events", "activity_info_maps", "timer_info_maps", "child_execution_info_maps",
	"request_cancel_info_maps", "signal_info_maps", "signals_requested_sets", "chasm_node_maps",
}

// badRow is a row that can't be decoded.
type badRow struct {
	column
	rowid int64
	run   []byte // what it belongs to: the ID of a run, or of the tree of its history
	why   error
}

func (b badRow) String() string {
	text := fmt.Sprintf("row %d of %s: %v", b.rowid, b.table, b.why)
	if id, err := uuid.FromBytes(b.run); err == nil {
		text += " (run " + id.String() + ")"
	}
	return text
}

func (c column) bad(ctx context.Context, db *sql.DB) (bad []badRow, err error) {
	ownerColumn, source := "x''", c.table
	switch c.owner {
	case ofRun:
		ownerColumn = "run_id"
	case ofTree:
		ownerColumn = "tree_id"
		// 3 is the state of an execution that is over, in its row of current_executions.
		source += " WHERE tree_id NOT IN (SELECT run_id FROM current_executions WHERE state = 3)"
	}
	query := fmt.Sprintf("SELECT rowid, %s, %s, %s_encoding FROM %s", ownerColumn, c.name, c.name, source)
	err = each(ctx, db, query, func(rows *sql.Rows) error {
		var data []byte
		var encoding sql.NullString
		row := badRow{column: c}
		if err := rows.Scan(&row.rowid, &row.run, &data, &encoding); err != nil {
			return err
		}
		if row.why = c.decode(data, encoding.String); row.why != nil {
			bad = append(bad, row)
		}
		return nil
	})
	return bad, err
}

// each calls read for every row that a query of a database or a transaction returns.
func each(ctx context.Context, db interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, query string, read func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// decode reads a message as the server would.
func (c column) decode(data []byte, encoding string) error {
	if len(data) == 0 && encoding == "" {
		return nil
	}
	kind, err := enumspb.EncodingTypeFromString(encoding)
	if err != nil || c.message == nil {
		return err
	}
	if len(data) == 0 && c.owner != ofQueue {
		if _, events := c.message.(*historypb.History); events {
			return errors.New("it is empty")
		}
	}
	return serialization.Decode(&commonpb.DataBlob{Data: data, EncodingType: kind}, c.message.ProtoReflect().New().Interface())
}

// amend removes bad rows, and with each row of a run everything that the database has of that run. It reports whether
// that was possible: rows that belong to the whole database can't be removed.
func amend(ctx context.Context, db *sql.DB, bad []badRow) (bool, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	for _, b := range bad {
		switch b.owner {
		case ofAll:
			return false, nil
		case ofQueue:
			_, err = tx.ExecContext(ctx, "DELETE FROM "+b.table+" WHERE rowid = ?", b.rowid)
		case ofTree:
			var runs [][]byte
			if runs, err = treeOf(ctx, tx, b.run); err != nil || len(runs) == 0 {
				return false, err
			}
			for _, run := range runs {
				err = errors.Join(err, forget(ctx, tx, run))
			}
		case ofRun:
			err = forget(ctx, tx, b.run)
		}
		if err != nil {
			return false, err
		}
	}
	return true, tx.Commit()
}

// treeOf returns the runs whose history is that tree. A run that was reset shares the tree of the run before it.
func treeOf(ctx context.Context, tx *sql.Tx, tree []byte) (runs [][]byte, err error) {
	id, err := uuid.FromBytes(tree)
	if err != nil {
		return nil, err
	}
	err = each(ctx, tx, "SELECT run_id, data FROM executions", func(rows *sql.Rows) error {
		var run, data []byte
		err := rows.Scan(&run, &data)
		if bytes.Equal(run, tree) || bytes.Contains(data, []byte(id.String())) { // its branch names the tree
			runs = append(runs, run)
		}
		return err
	})
	return runs, err
}

// forget removes a run from the database.
func forget(ctx context.Context, tx *sql.Tx, run []byte) error {
	for _, table := range runTables {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE run_id = ?", run); err != nil {
			return err
		}
	}
	id, err := uuid.FromBytes(run)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM executions_visibility WHERE run_id = ?", id.String())
	return err
}

// goingOn returns, for each run that has not ended, the request to make its tasks again.
func goingOn(ctx context.Context, db *sql.DB) (items []*adminservice.RefreshWorkflowTasksRequest, err error) {
	err = each(ctx, db, "SELECT namespace_id, workflow_id, run_id FROM current_executions WHERE state <> 3", func(rows *sql.Rows) error {
		var namespace, run uuid.UUID
		var workflow string
		err := rows.Scan(&namespace, &workflow, &run)
		items = append(items, &adminservice.RefreshWorkflowTasksRequest{
			NamespaceId: namespace.String(), Execution: &commonpb.WorkflowExecution{WorkflowId: workflow, RunId: run.String()},
		})
		return err
	})
	return items, err
}

// described returns a text about bad rows, with the first three by name.
func described(bad []badRow) string {
	const most = 3
	texts := list.Map(bad[:min(len(bad), most)], badRow.String)
	texts = slices.Compact(texts)
	if len(bad) > most {
		texts = append(texts, fmt.Sprintf("and %d more", len(bad)-most))
	}
	return strings.Join(texts, "; ")
}
