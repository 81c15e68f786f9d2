// Package repairlog notes what was damaged on this host and has been repaired, in a small file beside the repaired one.
// Without that note nobody would learn of the damage, because everything works again. It repairs nothing itself. Start
// at Note.
package repairlog

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/list"
)

// Damage is what was found and repaired.
type Damage struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`           // what was damaged and what was done about it, in one line
	Told bool      `json:"told,omitempty"` // the loop's ledger has it
}

// How many notes are kept, the newest ones, and how many bytes of each.
const (
	keep    = 20
	maxWhat = 500
)

func file(dir string) string { return filepath.Join(dir, "mended.json") }

// turn lets one goroutine write at a time. Only one process writes the notes of a folder.
var turn sync.Mutex

// In returns the notes of a folder (a loop's, the engine's), the oldest first, and nothing if they can't be read.
func In(dir string) []Damage {
	var all []Damage
	if durable.ReadJSON(file(dir), &all) != nil {
		return nil
	}
	return all
}

// Lines returns the notes of a folder as text, one line each.
func Lines(dir string) (lines []string) {
	return list.Map(In(dir), func(d Damage) string { return d.At.UTC().Format(time.DateTime) + " UTC: " + d.What })
}

// Note adds a note, if it can. Its caller goes on if it can't.
func Note(dir, what string) {
	what = strings.Join(strings.Fields(what), " ")
	if len(what) > maxWhat {
		what = strings.ToValidUTF8(what[:maxWhat], "") + "…"
	}
	turn.Lock()
	defer turn.Unlock()
	all := append(In(dir), Damage{At: time.Now().UTC(), What: what})
	_ = durable.WriteJSON(file(dir), all[max(0, len(all)-keep):])
}

// Take returns the notes of a folder and removes them, for a caller that stores them elsewhere.
func Take(dir string) []Damage {
	turn.Lock()
	defer turn.Unlock()
	all := In(dir)
	if len(all) > 0 {
		_ = os.Remove(dirfd.At(file(dir)))
	}
	return all
}

// Untold returns the notes that no ledger has.
func Untold(dir string) (what []string) {
	for _, d := range In(dir) {
		if !d.Told {
			what = append(what, d.What)
		}
	}
	return what
}

// Tell marks the oldest such note that no ledger had: now one has it.
func Tell(dir, what string) {
	turn.Lock()
	defer turn.Unlock()
	all := In(dir)
	for i := range all {
		if !all[i].Told && all[i].What == what {
			all[i].Told = true
			_ = durable.WriteJSON(file(dir), all)
			return
		}
	}
}
