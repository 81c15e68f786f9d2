package hostrecord

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"pawl/internal/fault"
	"pawl/internal/home"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
)

// End is how the run of a loop or a steward ended that could not record it in its ledger: as the service says it, or as a
// person ended it here while no worker ran.
type End struct {
	FirstRun string     `json:"firstRun"`
	Run      string     `json:"run,omitempty"` // the run that was halted here and has yet to record it; "" if it is over
	Status   string     `json:"status"`        // of the loop
	Code     fault.Code `json:"code,omitempty"`
	Reason   string     `json:"reason"`
	Time     time.Time  `json:"time"`
	// Untold is the message that ended it here while its service did not answer: a worker sends it when the service does.
	Untold *Untold `json:"untold,omitempty"`
}

// Untold is a message that a run has yet to get.
type Untold struct {
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload"`
}

// IsOf reports whether an end is that of the run which Temporal knows by that ID.
func (e End) IsOf(run string) bool { return e.Run == run || e.Untold != nil }

func endFile(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "end.json") }

// NoteEnd notes how the run of a record ended.
func NoteEnd(h home.Home, r Record, end End) error {
	end.FirstRun = r.FirstRun
	err := durable.WriteJSON(endFile(h, r.Ref), end)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return durable.WriteReserved(endFile(h, r.Ref), reserve(h, r.Ref), end)
	}
	return err
}

// reserve is the room for the note of an end on a disk that is full by then.
func reserve(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "end.reserve") }

// reserveSize is enough for a note with a reason of a page.
const reserveSize = 8 << 10

// DropEnd removes the note of an end: the run continues after all.
func DropEnd(h home.Home, r Record) error {
	err := os.Remove(dirfd.At(endFile(h, r.Ref)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// NotedEnd returns how the run of a record ended, and ok=false if nobody has noted an end since it was opened.
func NotedEnd(h home.Home, r Record) (end End, ok bool) {
	err := durable.ReadJSON(endFile(h, r.Ref), &end)
	if err != nil || end.FirstRun != r.FirstRun || end.Time.Before(r.OpenedAt) {
		return End{}, false
	}
	return end, true
}

// Over reports whether the loop or steward of a record has ended, as far as this host knows.
func Over(h home.Home, r Record) bool {
	_, ended := NotedEnd(h, r)
	return r.Closed || ended
}

// Awaits reports whether the loop or steward of a record was halted here while no worker answered, and a worker still has
// to record that.
func Awaits(h home.Home, r Record) bool {
	end, ended := NotedEnd(h, r)
	hasToRecord := end.Run != "" || end.Untold != nil
	return ended && hasToRecord && !r.Closed
}
