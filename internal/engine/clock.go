package engine

import (
	"context"
	"database/sql"
	"errors"
	"time"

	persistencespb "go.temporal.io/server/api/persistence/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// The server reads its timers in the order of their times and keeps in the database how far it has read. If the clock is
// set back, it waits until the clock is there again, with every timer of every loop: retries, timeouts and pauses. So the
// server starts again when the clock was set back, and no server starts with a database that has been read further than
// the clock.

// steadyClock is how far the clock may be set back from one second to the next before the server starts again.
const steadyClock = 5 * time.Second

// moment is a point in time on two clocks: the wall clock, which people and programs set, and one that only goes on.
type moment struct {
	wall   time.Time
	steady time.Duration
}

var started = time.Now() // of this process

func newMoment() moment {
	t := time.Now()
	return moment{t.Round(0), t.Sub(started)}
}

// setBack returns by how much the wall clock was set back since an earlier moment, less than 0 if it was set forward.
func (m moment) setBack(earlier moment) time.Duration {
	return m.steady - earlier.steady - m.wall.Sub(earlier.wall)
}

// rewind makes the server read its timers from a point in time at the latest. It reports whether that changed anything.
func rewind(ctx context.Context, db *sql.DB, target time.Time) (rewound bool, err error) {
	err = change(ctx, db, "shards", "", &persistencespb.ShardInfo{}, func(shard *persistencespb.ShardInfo) (bool, error) {
		for _, queue := range shard.GetQueueStates() {
			rewound = rewindQueue(queue, target) || rewound
		}
		return rewound, nil
	})
	return rewound, err
}

// change calls edit for the message in a row of a table, of which there is at most one, and writes what was changed.
func change[M proto.Message](ctx context.Context, db *sql.DB, table, condition string, m M, edit func(M) (changed bool, err error)) error {
	var data []byte
	err := db.QueryRowContext(ctx, "SELECT data FROM "+table+condition).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = proto.Unmarshal(data, m)
	}
	if err != nil {
		return err
	}
	if changed, err := edit(m); err != nil || !changed {
		return err
	}
	if data, err = proto.Marshal(m); err == nil {
		_, err = db.ExecContext(ctx, "UPDATE "+table+" SET data = ?"+condition, data)
	}
	return err
}

// rewindQueue is rewind for one of the server's queues. Those without times have 1970 everywhere.
func rewindQueue(queue *persistencespb.QueueState, target time.Time) bool {
	if queue.GetExclusiveReaderHighWatermark().GetFireTime().AsTime().Sub(target) <= steadyClock {
		return false
	}
	for _, reader := range queue.GetReaderStates() {
		for _, scope := range reader.GetScopes() { // what was read and is not done
			if first := scope.GetRange().GetInclusiveMin().GetFireTime().AsTime(); first.Before(target) {
				target = first
			}
		}
	}
	queue.ReaderStates, queue.ExclusiveReaderHighWatermark = nil, &persistencespb.TaskKey{FireTime: timestamppb.New(target)}
	return true
}
