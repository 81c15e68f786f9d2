package hostrecord

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
}

func endFile(h home.Home, ref string) string { return filepath.Join(h.Loop(ref), "end.json") }

// NoteEnd notes how the run of a record ended.
func NoteEnd(h home.Home, r Record, end End) error {
	end.FirstRun = r.FirstRun
	return durable.WriteJSON(endFile(h, r.Ref), end)
}

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

// Awaits reports whether the loop or steward of a record was halted here while no worker ran, and a worker still has to
// record that.
func Awaits(h home.Home, r Record) bool {
	end, ended := NotedEnd(h, r)
	return ended && end.Run != "" && !r.Closed
}
