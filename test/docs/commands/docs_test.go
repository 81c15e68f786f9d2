package commands_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// consoleBlock matches what a page shows of a terminal.
var consoleBlock = regexp.MustCompile("(?s)\n```console\n(.*?)\n```")

// One reader runs everything in docs/tutorials/first-loop.md, from top to bottom.
func TestTheFirstLoopOfTheDocsWorksToTheLetter(t *testing.T) {
	w := world.Alone(t, world.Raises)
	t.Parallel()
	require.Greater(t, readerOf(w).reads("docs/tutorials/first-loop.md"), 15)
	w.NothingRuns()
}

// The same for the first steward in docs/tutorials/first-steward.md, with `pawl up` in another terminal.
func TestTheFirstStewardOfTheDocsWorksToTheLetter(t *testing.T) {
	world.Slow(t, "test/e2e/steward has one through the program")
	w := world.Alone(t, world.Raises)
	t.Parallel()
	up, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, up.Stop()) })
	r := readerOf(w)
	text := regexp.MustCompile("(?s)\n```markdown\n(.*?)\n```").FindStringSubmatch(world.ReadFile("docs/tutorials/first-steward.md"))
	require.NotNil(t, text)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "smaller.md"), []byte(text[1]+"\n"), 0o600))
	require.Greater(t, r.reads("docs/tutorials/first-steward.md"), 15)
}

// reader is a person who types what a page shows of a terminal.
type reader struct {
	*world.World
	dir  string
	env  []string
	hash string // the hash that a command has shown last
}

func readerOf(w *world.World) *reader {
	w.Git("config", "--global", "user.name", "Ada")
	w.Git("config", "--global", "user.email", "ada@example.com")
	calls(w, map[string]string{"pawl": world.Program(w.T)})
	examples, err := filepath.Abs("examples")
	require.NoError(w.T, err)
	r := &reader{World: w, dir: filepath.Join(w.Dir, "reader")}
	r.env = append(append(world.Environ(w.Home, w.Dir), w.Env...), "EXAMPLES="+examples)
	require.NoError(w.T, os.Mkdir(r.dir, 0o700))
	return r
}

// looks matches the commands that a reader repeats until they show what the page shows.
var looks = regexp.MustCompile(`^pawl (inbox|steward show|log) ?`)

// reads types everything that a page shows of a terminal, and returns the number of commands. Each must print what the
// page shows. "--hash …" stands for the hash that was shown last.
func (r *reader) reads(page string) (n int) {
	for _, block := range consoleBlock.FindAllStringSubmatch(world.ReadFile(page), -1) {
		for _, step := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			line, shown, _ := strings.Cut(step, "\n")
			if to, is := strings.CutPrefix(line, "cd "); is {
				r.dir = filepath.Join(r.dir, to)
				continue
			}
			want := regexp.MustCompile(pattern(shown))
			out := r.types(line, shown)
			if looks.MatchString(line) && !want.MatchString(out) {
				r.Until(line, func() bool { out = r.types(line, shown); return want.MatchString(out) })
			}
			require.Regexp(r.T, want, out, "%s does not print what the page shows", line)
			if m := regexp.MustCompile(`--hash ([0-9a-f]{16})`).FindStringSubmatch(out); m != nil {
				r.hash = m[1]
			}
			n++
		}
	}
	return n
}

// types runs one line, and returns its output.
func (r *reader) types(line, shown string) string {
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(line, "--hash …", "--hash "+r.hash))
	cmd.Dir, cmd.Env = r.dir, r.env
	world.TieToParent(cmd)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 0 && !(code == 2 && strings.Contains(shown, "PRECONDITION_FAILED")) {
		require.NoError(r.T, err, "%s\n%s", line, out)
	}
	return string(out)
}

// pattern returns what a page shows as a regular expression: … stands for anything on its line, and for any lines if
// it is alone on a line.
func pattern(shown string) string {
	var b strings.Builder
	b.WriteString(`\A`)
	for line := range strings.SplitSeq(shown, "\n") {
		switch {
		case shown == "":
		case strings.TrimSpace(line) == "…":
			b.WriteString(`(?:.*\n)*?`)
		default:
			text := strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
			if strings.HasSuffix(text, ".*") {
				text += `(?:\n {10,}.*)*` // a long path wraps
			}
			b.WriteString(text + `\s*\n`)
		}
	}
	return b.String() + `\z`
}
