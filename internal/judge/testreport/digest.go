package testreport

import (
	"fmt"
	"strings"

	"pawl/internal/loop"
)

// Digest returns the description of a run for a fixer, at most limit bytes of valid text: first the names of the
// failing tests, then their messages in the same order, then the end of the output. If no results were recognised, the start
// of the output comes before, because a compiler or an interpreter says there what is wrong. Names get at most half of the
// room, so that the first messages have room too. output is the input of Read.
func Digest(r Report, limit int, output ...[]byte) string {
	w := &bounded{limit: limit}
	heads := summary(r)
	if r.Format == "" && tailOf(output, tailOutput) == "" {
		heads = "The test command failed and printed nothing."
	}
	w.add(w.left(), heads+"\n")
	if len(r.Failing) > 0 {
		w.add(w.left(), "\n")
		w.list(w.left()/2, r)
		w.messages(w.left()*4/5, r)
	}
	const begins, heading = "\nThe output begins with:\n", "\nThe output ends with:\n"
	if room := min(w.left()/4, tailOutput); r.Format == "" && room > 200 && tailOf(output, min(w.left(), 4*tailOutput)) != tailOf(output, 1<<20) {
		w.add(room, begins+parts(output, room-len(begins)-1, startOf)+"\n")
	}
	if room := w.left() - len(heading); room > 80 {
		if tail := tailOf(readable(r, output), min(room, 4*tailOutput)); tail != "" {
			w.add(w.left(), heading+tail)
		}
	}
	return strings.TrimRight(w.String(), "\n")
}

// summary returns the result of the run on one line.
func summary(r Report) string {
	if r.Format == "" {
		return "The test command failed; no test results were recognised in its output."
	}
	text := fmt.Sprintf("%d failed, %d passed, %d skipped (%s)", r.Failed, r.Passed, r.Skipped, r.Format)
	if r.Broken {
		text += "; something could not be built, loaded or finished, so tests are missing"
	}
	if r.Partial {
		text += "; a part of the output was left out"
	}
	return text
}

// readable returns the outputs that a person can read. The digest already has everything from events and XML.
func readable(r Report, output [][]byte) [][]byte {
	if (r.Format == "go-json" || r.Format == "junit") && len(r.Failing) > 0 {
		if len(output) > 1 {
			return output[1:2] // standard error
		}
		return nil
	}
	return output
}

// bounded is a text that never gets longer than its limit.
type bounded struct {
	strings.Builder
	limit int
}

func (b *bounded) left() int { return b.limit - b.Len() }

// add appends as much of text as room and the limit allow.
func (b *bounded) add(room int, text string) {
	b.WriteString(loop.Clip(text, max(0, min(room, b.left()))))
}

// list adds the names of as many failing tests as there is room for.
func (b *bounded) list(room int, r Report) {
	const more = "… and %d more\n"
	end := b.Len() + room
	for i, t := range r.Failing {
		line := "- " + t.ID()
		if t.File != "" && !strings.Contains(line, t.File) {
			line += " (" + t.File + ")"
		}
		if b.Len()+len(line)+1+len(more)+8 > end {
			b.add(end-b.Len(), fmt.Sprintf(more, r.Failed-i))
			return
		}
		b.add(end-b.Len(), line+"\n")
	}
	if n := r.Failed - len(r.Failing); n > 0 {
		b.add(end-b.Len(), fmt.Sprintf(more, n))
	}
}

// ends returns at most n bytes of a message of several lines: its start and its end, where Python and others have the
// error.
func ends(s string, n int) string {
	const between = "\n[…]\n"
	if len(s) <= n || n < 200 {
		return loop.Clip(s, n)
	}
	half := (n - len(between)) / 2
	head, tail := s[:half], s[len(s)-half:]
	if end := strings.LastIndexByte(head, '\n'); end > 0 {
		head = head[:end]
	} else {
		head = loop.Clip(head, half)
	}
	if _, rest, hasMore := strings.Cut(tail, "\n"); hasMore && rest != "" {
		tail = rest
	}
	return head + between + strings.ToValidUTF8(tail, "")
}

// messages adds the messages of the failing tests. If there are several, one test gets at most a quarter of the room,
// or an equal share if that is more. A message that comes again is replaced by the ID of the first test with it.
func (b *bounded) messages(room int, r Report) {
	end := b.Len() + room
	share := room
	if len(r.Failing) > 1 {
		share = max(room/4, room/len(r.Failing))
	}
	said := map[string]string{}
	for _, t := range r.Failing {
		if t.Message == "" {
			continue
		}
		text := "\n" + t.ID() + ":\n"
		if first, duplicate := said[t.Message]; duplicate {
			text += "as " + first + "\n"
		} else {
			said[t.Message] = t.ID()
			text += ends(t.Message, share) + "\n"
		}
		if b.Len()+len(text) > end {
			if b.Len()+len(t.ID())+80 < end {
				b.add(end-b.Len(), text)
			}
			return
		}
		b.add(end-b.Len(), text)
	}
}
