package render

import (
	"bufio"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"pawl/internal/git"
	"pawl/internal/lib/text/visible"
)

// Exact returns a line of somebody else's text unchanged, except for what a terminal would hide or obey, which is
// written out: control characters, characters that change the direction of text or have no width, blanks that are not
// spaces, bytes that are not text. Tabs stay, because they indent. After each such mark it switches back to color.
func (s Style) Exact(line, color string) string {
	return visible.Line(line, func(text string) string {
		if !s.Color {
			return text
		}
		return reverse + text + reset + color
	})
}

// Patch writes a git patch for people: each line exact but for the escapes of names in headers, and in colour if there
// is colour. It reads the patch and nothing else, so a caller that hashes the reader knows what was shown.
func (s Style) Patch(out io.Writer, patch io.Reader) error {
	reader := bufio.NewReader(patch)
	h := hunk{}
	for {
		line, err := reader.ReadString('\n')
		if line != "" {
			text := strings.TrimSuffix(line, "\n")
			color := h.color(text)
			if color == bold {
				text = named(text)
			}
			shown := s.Exact(text, color)
			if s.Color && color != "" {
				shown = color + shown + reset
			}
			if _, err := io.WriteString(out, shown+"\n"); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

var (
	nameLine   = regexp.MustCompile(`^(?:diff --git|---|\+\+\+|rename (?:from|to)|copy (?:from|to)|Binary files) `)
	quotedName = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// named returns a header of a patch with the names as pawl shows them elsewhere: git escapes every byte beyond ASCII.
func named(header string) string {
	if !nameLine.MatchString(header) {
		return header
	}
	return quotedName.ReplaceAllStringFunc(header, git.Requoted)
}

// hunk is the position in a patch. The header of a hunk gives its number of lines, so content is never taken for a
// header, and never looks like one.
type hunk struct {
	before, after int
	binary        bool // base85 follows
}

var hunkHeader = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// color handles the next line and returns its colour.
func (h *hunk) color(line string) string {
	if h.before > 0 || h.after > 0 {
		switch {
		case strings.HasPrefix(line, "+"):
			h.after--
			return green
		case strings.HasPrefix(line, "-"):
			h.before--
			return red
		case !strings.HasPrefix(line, `\`): // "\ No newline at end of file" is no line
			h.before, h.after = h.before-1, h.after-1
		}
		return ""
	}
	if m := hunkHeader.FindStringSubmatch(line); m != nil {
		h.before, h.after = many(m[1]), many(m[2])
		return cyan
	}
	h.binary = h.binary && !strings.HasPrefix(line, "diff --git ")
	if h.binary || strings.HasPrefix(line, `\`) {
		return ""
	}
	h.binary = line == "GIT binary patch"
	return bold
}

func many(count string) int {
	if n, err := strconv.Atoi(count); err == nil {
		return n
	}
	return 1
}
