package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/world"
)

// consoleBlock is what a page shows of a terminal.
var consoleBlock = regexp.MustCompile("(?s)\n```console\n(.*?)\n```")

// Everything in docs/first-loop.md is run, from top to bottom, by one reader.
func TestTheFirstLoopOfTheDocsWorksToTheLetter(t *testing.T) {
	w := world.Alone(t, world.Raises)
	t.Parallel()
	w.Git("config", "--global", "user.name", "Ada")
	w.Git("config", "--global", "user.email", "ada@example.com")
	bin := filepath.Join(w.Dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	require.NoError(t, os.Symlink(world.Program(t), filepath.Join(bin, "pawl")))
	examples, err := filepath.Abs("examples")
	require.NoError(t, err)

	dir, n := filepath.Join(w.Dir, "reader"), 0
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, block := range consoleBlock.FindAllStringSubmatch(world.ReadFile("docs/first-loop.md"), -1) {
		for _, step := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			line, shown, _ := strings.Cut(step, "\n")
			if to, is := strings.CutPrefix(line, "cd "); is {
				dir = filepath.Join(dir, to)
				continue
			}
			cmd := exec.Command("sh", "-c", line)
			cmd.Dir = dir
			cmd.Env = append(world.Environ(w.Home, w.Dir), "EXAMPLES="+examples, "PATH="+bin+":"+os.Getenv("PATH"))
			world.TieToParent(cmd)
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 0 && !(code == 2 && strings.Contains(shown, "PRECONDITION_FAILED")) {
				require.NoError(t, err, "%s\n%s", line, out)
			}
			require.Regexp(t, pattern(shown), string(out), "%s does not print what the page shows", line)
			n++
		}
	}
	require.Greater(t, n, 15)
	w.NothingRuns()
}

// pattern is what a page shows as a regular expression: … stands for anything on its line, and on a
// line of its own for any lines.
func pattern(shown string) string {
	var b strings.Builder
	b.WriteString(`\A`)
	for line := range strings.SplitSeq(shown, "\n") {
		switch {
		case shown == "":
		case strings.TrimSpace(line) == "…":
			b.WriteString(`(?:.*\n)*?`)
		default:
			b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + `\s*\n`)
		}
	}
	return b.String() + `\z`
}

// The drawing of docs/deliver.md is the one that is made from the machine.
func TestL6_DeliverIsDrawnFromItsMachine(t *testing.T) {
	drawing := regexp.MustCompile("(?s)```mermaid\n.*?```")
	_, deliver, found := strings.Cut(world.ReadFile("docs/phases.md"), "\n## Deliver\n")
	require.True(t, found)
	require.Equal(t, drawing.FindString(deliver), drawing.FindString(world.ReadFile("docs/deliver.md")))
}
