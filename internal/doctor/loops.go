package doctor

import (
	"maps"
	"slices"
	"strings"
)

// loops names those of this host that can't go on.
func (e *examination) loops() {
	if e.o.Troubles == nil || e.o.HomeErr != nil {
		return
	}
	found, err := e.o.Troubles(e.ctx)
	if err != nil {
		e.note("loops", "Check the folder "+e.o.Home.Dir+".", "they can't be listed: %s", firstLine(err))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		what, _, _ := strings.Cut(found[name], "\n")
		e.failed("loop "+name, "The worker mends what it can, and tries again: `pawl up` where none runs; the log says what it did. `pawl show "+name+"` says where the loop stands.", "%s", what)
	}
	if len(found) == 0 {
		e.ok("loops", "none of this host is held up by damage or by something that fails")
	}
}
