package render

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Screen writes lines, and on a terminal one more line below them that moves. Several goroutines may use it.
type Screen struct {
	mu   sync.Mutex
	out  io.Writer
	fd   int // the terminal's descriptor, -1 for none
	live string
	open bool // the cursor stands behind a question
}

// NewScreen returns a screen on w, which is a terminal's if w is one.
func NewScreen(w io.Writer) *Screen {
	fd, _ := Terminal(w)
	return &Screen{out: w, fd: fd}
}

// Terminal reports whether a reader or writer is a terminal, and its descriptor, -1 if it is none. It checks for a
// window size, because that works in the same way on all systems.
func Terminal(v any) (fd int, ok bool) {
	f, isFile := v.(*os.File)
	if !isFile || f == nil {
		return -1, false
	}
	if _, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err != nil {
		return -1, false
	}
	return int(f.Fd()), true
}

// DropTyped drops what was typed so far and has not been read, if v is a terminal. It reports whether it is one.
func DropTyped(v any) bool {
	fd, ok := Terminal(v)
	if ok {
		_ = dropTyped(fd) // what is left is read as an answer, as on a terminal that can't drop it
	}
	return ok
}

// Moves reports whether the screen can have a moving line: it must be a terminal that can erase.
func (s *Screen) Moves() bool { return s.fd >= 0 && os.Getenv("TERM") != "dumb" }

// Style returns the style for the current size of the screen.
func (s *Screen) Style() Style {
	style := Style{Width: 100, Zone: time.Local}
	if s.fd < 0 { // no terminal
		return style
	}
	style.Wrap = true
	style.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" // https://no-color.org: any text means none
	if size, err := unix.IoctlGetWinsize(s.fd, unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		style.Width = int(size.Col)
	}
	return style
}

// Rows returns how many lines the terminal has, 24 if that is not known.
func (s *Screen) Rows() int {
	if size, err := unix.IoctlGetWinsize(s.fd, unix.TIOCGWINSZ); s.fd >= 0 && err == nil && size.Row > 0 {
		return int(size.Row)
	}
	return 24
}

// Rows returns on how many rows of a terminal a line of text is shown.
func (s Style) Rows(line string) int {
	if !s.Wrap || s.Width < 1 {
		return 1
	}
	used := 0
	for _, r := range strings.TrimRight(strip(line), "\n") {
		if r == '\t' {
			used += tabWidth - used%tabWidth
			continue
		}
		used += columns(string(r))
	}
	return max(1, (used+s.Width-1)/s.Width)
}

const tabWidth = 8

// Print writes a text and a line break, above the moving line if there is one. Behind a question it begins a new line,
// and no text just ends that of the question.
func (s *Screen) Print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text = strings.TrimSuffix(text, "\n") + "\n"
	switch {
	case s.open && text != "\n":
		text = "\n" + text
	case s.live != "":
		text = erase + text + moving(s.live)
	}
	s.open = false
	io.WriteString(s.out, text)
}

// erase removes the moving line, and the rows below it on which a terminal that became narrower has wrapped it.
const erase = "\r\x1b[J"

// moving returns what writes a moving line. The cursor stays at its beginning: a terminal that wraps the line again keeps
// the cursor on its first row, and a terminal that does not keeps it there too.
func moving(line string) string {
	if line == "" {
		return ""
	}
	return line + "\r"
}

// Live puts a text on the moving line, as far as it fits on one row. It does nothing if no line can move.
func (s *Screen) Live(text string) {
	if width := s.Style().Width; columns(strip(text)) >= width {
		text = clip(strip(text), width-1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Moves() || text == s.live {
		return
	}
	s.live = text
	io.WriteString(s.out, erase+moving(text))
}

// Still removes the moving line, for example before a question.
func (s *Screen) Still() { s.Live("") }

// Ask writes a question, on a line of its own, and leaves the cursor after it.
func (s *Screen) Ask(question string) {
	words := strings.TrimRight(question, " ")
	question = s.Style().Hang(words, 2) + question[len(words):]
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open:
		question = "\n" + question
	case s.live != "":
		question, s.live = erase+question, ""
	}
	s.open = true
	io.WriteString(s.out, question)
}

// Asking reports whether the cursor stands behind a question.
func (s *Screen) Asking() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Typed says that a person has ended the line of the question.
func (s *Screen) Typed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
}
