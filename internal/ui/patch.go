package ui

import (
	"bufio"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"pawl/internal/visible"
)

// Exact is a line of somebody else's as it is, with everything that a terminal would not show, or would
// obey, written out: control characters, what changes the direction of text, what has no width, blanks
// that are no spaces, bytes that are no text. Tabs stay, since they indent. It goes back to color after
// what it has made stand out.
func (s Style) Exact(line, color string) string {
	return visible.Line(line, func(text string) string { return s.standOut(text, color) })
}

func (s Style) standOut(text, color string) string {
	if !s.Color {
		return text
	}
	return reverse + text + reset + color
}

// Patch writes a patch of git's for people: each line exact, in colour where there is colour. What is
// read is the patch and nothing else, so that whoever hashes it on the way knows what was shown.
func (s Style) Patch(to io.Writer, patch io.Reader) error {
	in := bufio.NewReader(patch)
	h := hunk{}
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			text := strings.TrimSuffix(line, "\n")
			color := h.color(text)
			if !s.Color {
				color = ""
			}
			end := ""
			if color != "" {
				end = reset
			}
			if _, err := io.WriteString(to, color+s.Exact(text, color)+end+"\n"); err != nil {
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

// hunk is where a patch has come to. How many lines a hunk has stands before it, so that no content is
// ever taken for a header, nor looks like one.
type hunk struct {
	before, after int
	binary        bool // base85 follows
}

var hunkHeader = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// color takes the next line and returns its colour.
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
