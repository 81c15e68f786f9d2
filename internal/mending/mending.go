// Package mending remembers what was damaged on this host and has been repaired, in a small file beside the repaired
// one. Without that note nobody would learn of the damage, since everything works again. It repairs nothing itself.
// Start at Note.
package mending

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pawl/internal/durable"
	"pawl/internal/held"
)

// Damage is what was found and mended.
type Damage struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`           // what was damaged and what was done about it, one line
	Told bool      `json:"told,omitempty"` // the loop's ledger has it
}

// The newest are kept, and of each so many bytes.
const (
	keep    = 20
	maxWhat = 500
)

func file(dir string) string { return filepath.Join(dir, "mended.json") }

// turn keeps the writers of a process apart. Each folder has one process that mends.
var turn sync.Mutex

// In returns what was mended of what is in a folder (a loop's, the engine's), the oldest first; nothing where that can't be read.
func In(dir string) []Damage {
	var all []Damage
	if durable.ReadJSON(file(dir), &all) != nil {
		return nil
	}
	return all
}

// Lines returns what In returns in words, a line each.
func Lines(dir string) (lines []string) {
	for _, d := range In(dir) {
		lines = append(lines, d.At.UTC().Format(time.DateTime)+" UTC: "+d.What)
	}
	return lines
}

// Note remembers it, best effort: whoever mends goes on without.
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

// Take returns what In returns, and forgets it: somebody notes it elsewhere.
func Take(dir string) []Damage {
	turn.Lock()
	defer turn.Unlock()
	all := In(dir)
	if len(all) > 0 {
		_ = os.Remove(held.At(file(dir)))
	}
	return all
}

// Untold returns what no ledger has.
func Untold(dir string) (what []string) {
	for _, d := range In(dir) {
		if !d.Told {
			what = append(what, d.What)
		}
	}
	return what
}

// Tell notes that a ledger has it, of the same the oldest.
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
