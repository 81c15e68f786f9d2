package activities

import (
	"bytes"
	"strings"

	"pawl/internal/agent"
	"pawl/internal/program"
)

// pinned are the variables that a file of the repository would set for a program, and must not: where its key is sent to.
// A file that can't be read safely is taken for one that names them all.
func pinned(p program.Program, dir string) (env []string) {
	for _, kv := range p.Pinned {
		name, _, _ := strings.Cut(kv, "=")
		for _, file := range p.EnvFiles {
			text, err := agent.Left(maxLeft, dir, strings.Split(file, "/")...)
			if err != nil || bytes.Contains(text, []byte(name)) {
				env = append(env, kv)
				break
			}
		}
	}
	return env
}
