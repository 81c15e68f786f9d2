package sandbox

import (
	"os"
	"sync"
	"time"

	"pawl/internal/held"
)

// glance is what there is at a path.
type glance struct {
	at    string // as the kernel has it, "" where there is nothing
	dir   bool
	links []Place // so that the name that people use leads there too
}

// now looks.
func now(path string) glance {
	g := glance{at: resolved(path)}
	if g.at == "" {
		return g
	}
	if info, err := os.Stat(held.At(g.at)); err == nil {
		g.dir = info.IsDir()
	}
	if g.at != path {
		g.links = links(path)
	}
	return g
}

// lately is now, or what that was in the last second: for what is the machine's own, which no command can change. A policy
// is made of hundreds of such paths, for every command.
func lately(path string) glance { return glances.of(path, now) }

// What was found in the last second.
var (
	glances recent[glance]
	chosen  recent[[]Place] // preferred
)

// recent has answers that are at most a second old.
type recent[V any] struct {
	mu    sync.Mutex
	since time.Time
	all   map[string]V
}

// of returns the answer to a question, the last one or a new one.
func (r *recent[V]) of(question string, answer func(string) V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || time.Since(r.since) > time.Second {
		r.since, r.all = time.Now(), map[string]V{}
	}
	v, known := r.all[question]
	if !known {
		v = answer(question)
		r.all[question] = v
	}
	return v
}
