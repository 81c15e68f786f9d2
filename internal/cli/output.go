package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"pawl/internal/cli/render"
	"pawl/internal/lib/fsutil/dirfd"
)

// say writes a message of the program itself to stderr, or to its log.
func (a *app) say(format string, args ...any) {
	text := dirfd.Known(fmt.Sprintf(format, args...))
	if a.told != nil {
		a.told.Info(text)
		return
	}
	a.screen.Print(a.hung("pawl: " + text))
}

// hung wraps the lines of a message at a terminal, behind the width of "pawl: ".
func (a *app) hung(text string) string {
	style := a.screen.Style()
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = style.Hang(line, len("pawl: "))
	}
	return strings.Join(lines, "\n")
}

// terminal reports whether there is a person to ask: stdin and stderr are terminals.
func (a *app) terminal() bool { return a.deps.Terminal(a.in) && a.deps.Terminal(a.err) }

// style returns how data is rendered on stdout.
func (a *app) style() render.Style { return render.NewScreen(a.out).Style() }

// print writes data for people to stdout.
func (a *app) print(text string) error {
	a.leaveQuestion()
	_, err := io.WriteString(a.out, strings.TrimSuffix(text, "\n")+"\n")
	return err
}

// leaveQuestion ends the line of a question that nobody has answered.
func (a *app) leaveQuestion() {
	if a.screen.Asking() {
		a.screen.Print("")
	}
}

// output writes a value to stdout: as JSON with --json, else as text for people.
func (a *app) output(v any, text string) error {
	if a.json {
		return a.printJSON(v)
	}
	return a.print(text)
}

// printJSON writes a value to stdout as indented JSON.
func (a *app) printJSON(v any) error {
	a.answered = true
	a.leaveQuestion()
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
