package sandbox

import (
	"os"
	"sync"
	"time"

	"pawl/internal/lib/fsutil/dirfd"
)

// glance is what exists at a path.
type glance struct {
	at    string // the kernel's path, "" if nothing exists
	dir   bool
	links []Place // symlinks on the way, so that the path that people use leads there too
}

// now inspects a path.
func now(path string) glance {
	g := glance{at: resolved(path)}
	if g.at == "" {
		return g
	}
	if info, err := os.Stat(dirfd.At(g.at)); err == nil {
		g.dir = info.IsDir()
	}
	if g.at != path {
		g.links = links(path)
	}
	return g
}

// lately returns the result of now, at most a second old. It is for paths of the machine, which no command can change.
// Every command's policy is made of hundreds of them.
func lately(path string) glance { return glances.of(path, now) }

// What is remembered of the machine.
var (
	glances  = recent[glance]{life: time.Second}
	chosen   = recent[[]preference]{life: time.Second} // preferred
	roots    = recent[string]{life: time.Second}       // the outermost folder or file on the way to a path that is root's alone, "" if there is none
	masked   = recent[[]Place]{life: time.Minute}      // rootsOwn
	programs = recent[bool]{life: time.Hour}           // whether a program is in this process's PATH
)

// recent caches answers for some time.
type recent[V any] struct {
	life  time.Duration
	mu    sync.Mutex
	since time.Time
	all   map[string]V
}

// of returns the answer to a question, from the cache or a new one.
func (r *recent[V]) of(question string, answer func(string) V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || time.Since(r.since) > r.life {
		r.since, r.all = time.Now(), map[string]V{}
	}
	v, ok := r.all[question]
	if !ok {
		v = answer(question)
		r.all[question] = v
	}
	return v
}
