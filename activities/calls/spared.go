package calls

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"pawl/activities/hosted"
	"pawl/internal/agent"
	"pawl/internal/held"
	"pawl/internal/program"
	"pawl/internal/spec"
)

// maxLeft bounds a file in which a program keeps settings of its own.
const maxLeft = 1 << 20

// spared are the files of the desk in which an agent's program writes for itself, as they were before it ran; nil for one
// that was not there. What it does to them is no part of a change.
type spared map[string][]byte

// spare reads them. Those that the scope names are a change like any other.
func spare(ws *hosted.Workspace, programs []program.Program, s spec.Spec) spared {
	before := spared{}
	for _, p := range programs {
		for _, name := range p.Leaves {
			if s.Match(name) {
				continue
			}
			if b, err := agent.Left(maxLeft, ws.Desk.Dir, strings.Split(name, "/")...); err == nil { // else it is none of the program's
				before[name] = b
			}
		}
	}
	return before
}

// putBack makes the files what they were. The desk is the agent's: what it has put in a file's place is never followed.
func (before spared) putBack(desk string) error {
	if len(before) == 0 {
		return nil
	}
	root, err := os.OpenRoot(held.At(desk))
	if err != nil {
		return fmt.Errorf("opening the desk: %w", err)
	}
	defer root.Close()
	for name, was := range before {
		info, err := root.Lstat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue // that it has removed or replaced one is a change, which is judged
		}
		if was == nil {
			if err := root.Remove(name); err != nil {
				return fmt.Errorf("removing what the agent's program left in %s: %w", name, err)
			}
			continue
		}
		if now, err := agent.Left(maxLeft, desk, strings.Split(name, "/")...); err != nil || bytes.Equal(now, was) {
			continue
		}
		if err := root.WriteFile(name, was, info.Mode().Perm()); err != nil {
			return fmt.Errorf("putting %s back: %w", name, err)
		}
	}
	return nil
}
