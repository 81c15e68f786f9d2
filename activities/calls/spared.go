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

// maxLeft is the maximum size of a file in which a program keeps its own settings.
const maxLeft = 1 << 20

// spared are files on the desk in which an agent's program keeps its own settings, as they were before it ran; nil
// for one that did not exist. Changes to them are not part of the loop's change.
type spared map[string][]byte

// spare reads these files. It leaves out those that the scope names: they are changed like any other file.
func spare(ws *hosted.Workspace, programs []program.Program, s spec.Spec) spared {
	before := spared{}
	for _, p := range programs {
		for _, name := range p.Leaves {
			if s.Match(name) {
				continue
			}
			if b, err := agent.Left(maxLeft, ws.Desk.Dir, strings.Split(name, "/")...); err == nil { // otherwise it is not a file of the program
				before[name] = b
			}
		}
	}
	return before
}

// putBack restores the files. If the agent has put something else in the place of one, it is never followed.
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
			continue // a removed or replaced file is a change, which is judged
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
