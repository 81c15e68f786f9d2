package calls

import (
	"fmt"
	"os"

	"pawl/activities/hosted"
	"pawl/internal/held"
	"pawl/internal/program"
	"pawl/internal/spec"
)

// maxLeft is the maximum size of a file in which a program keeps its own settings.
const maxLeft = 1 << 20

// spare returns the files on the desk in which programs keep their own settings. Changes to them are not part of the
// loop's change. It leaves out those that the scope names: they are changed like any other file.
func spare(ws *hosted.Workspace, programs []program.Program, s spec.Spec) (all deskFiles, err error) {
	root, err := os.OpenRoot(held.At(ws.Desk.Dir))
	if err != nil {
		return nil, fmt.Errorf("opening the desk: %w", err)
	}
	defer root.Close()
	for _, p := range programs {
		for _, name := range p.Leaves {
			if f, err := look(root, name); err == nil && f.Link == "" && !f.Dir && !s.Match(name) { // otherwise it is not a file of the program
				all = append(all, f)
			}
		}
	}
	return all, nil
}
