// Package excerpt keeps the beginning of a diff for a place that has little room, and says what it leaves out. Pure.
// Start at Writer.
package excerpt

import (
	"bytes"
	"fmt"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/lib/secretscan"
	"pawl/internal/lib/text/markdown"
	"pawl/internal/lib/text/visible"
	"pawl/internal/metric"
)

// What an excerpt has room for.
const (
	maxLines = 150
	maxBytes = 8 << 10
	maxLine  = 400         // bytes of one line
	maxKept  = 4 * maxLine // bytes in which a line's credentials are found
	maxFiles = 8           // names of files whose lines are left out
)

// binaryContent stands for what follows git's header of a binary file.
const binaryContent = "[binary content]"

// Excerpt is the beginning of a diff: whole lines, without credentials and with everything in them visible.
type Excerpt struct {
	Hash  string   `json:"hash"` // of the whole diff
	Lines []string `json:"lines"`
	More  int      `json:"more,omitempty"`  // how many lines are left out
	Files []string `json:"files,omitempty"` // the first files with lines that are left out
	Rest  int      `json:"rest,omitempty"`  // how many more such files there are
}

// Writer makes an excerpt of the diff that is written to it. It keeps no more than the excerpt and one line.
type Writer struct {
	out    Excerpt
	line   []byte // the beginning of the line that is being written
	length int    // of that line
	bytes  int    // of the lines that are shown
	file   string // the file that the line belongs to
	named  string // the last file that was counted as left out
	full   bool
	binary bool // what follows is binary content, which nobody can read
}

// Write takes the next bytes of the diff. It never fails.
func (w *Writer) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		room := max(0, maxKept-len(w.line))
		w.line = append(w.line, line[:min(room, len(line))]...)
		w.length += len(line)
		if ended {
			w.endLine()
		}
		rest = after
	}
	return len(p), nil
}

// Excerpt returns the excerpt of what was written, whose hash is given.
func (w *Writer) Excerpt(hash string) Excerpt {
	if w.length > 0 {
		w.endLine()
	}
	w.out.Hash = hash
	return w.out
}

func (w *Writer) endLine() {
	line, length := string(w.line), w.length
	w.line, w.length = w.line[:0], 0

	if names, ok := strings.CutPrefix(line, "diff --git "); ok { // no line of a file's content begins so
		w.file, w.binary = fileOf(names), false
	}
	if w.binary {
		return
	}
	if line == "GIT binary patch" {
		w.binary = true
		line, length = binaryContent, len(binaryContent)
	}
	w.add(line, length)
}

// add shows a line if there is room; after the first line without room none is shown.
func (w *Writer) add(line string, length int) {
	line = shown(line, length)
	w.full = w.full || len(w.out.Lines) == maxLines || w.bytes+len(line) > maxBytes
	if w.full {
		w.leaveOut()
		return
	}
	w.bytes += len(line) + 1
	w.out.Lines = append(w.out.Lines, line)
}

func (w *Writer) leaveOut() {
	w.out.More++
	if w.file == "" || w.file == w.named {
		return
	}
	w.named = w.file
	if len(w.out.Files) == maxFiles {
		w.out.Rest++
		return
	}
	w.out.Files = append(w.out.Files, visible.Clean(secretscan.Redact(w.file)))
}

// shown returns a line as people see it. length is that of the whole line, of which only the beginning may be there.
func shown(line string, length int) string {
	text := visible.Line(secretscan.Redact(line), nil)
	if length <= maxLine && len(text) <= maxKept {
		return text
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxLine)], "")
	return fmt.Sprintf("%s [cut: the line has %d bytes]", text, length)
}

// fileOf returns the file of a header of git's: the names before and after, as git writes them, or the one if both are
// the same.
func fileOf(names string) string {
	half := len(names) / 2
	if len(names)%2 == 0 {
		return names
	}
	before, isBefore := strings.CutPrefix(names[:half], "a/")
	after, isAfter := strings.CutPrefix(names[half+1:], "b/")
	if isBefore && isAfter && before == after {
		return before
	}
	return names
}

// Markdown shows the excerpt. Nothing in it is read as Markdown. all is the command that shows the whole diff.
func (e Excerpt) Markdown(all string) string {
	var w strings.Builder
	if e.More == 0 {
		w.WriteString("The diff that the hash covers:\n\n")
	} else {
		w.WriteString(e.leftOut(all) + "\n\n")
	}
	w.WriteString(markdown.Fenced("diff", strings.Join(e.Lines, "\n")) + "\n\n")
	return w.String()
}

// leftOut says what is not shown, before what is shown: nobody reads on after a long diff.
func (e Excerpt) leftOut(all string) string {
	left := "1 more line is"
	if e.More > 1 {
		left = fmt.Sprintf("%d more lines are", e.More)
	}
	text := "The beginning of the diff that the hash covers. **" + left + " not shown here**"
	if len(e.Files) > 0 {
		text += ", of " + strings.Join(list.Map(e.Files, markdown.Code), ", ")
	}
	if e.Rest > 0 {
		text += " and " + metric.Counted(e.Rest, "more file")
	}
	return text + ": " + markdown.Code(all) + " shows all of it."
}
