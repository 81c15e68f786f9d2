package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"pawl/internal/cli/render"
	"pawl/internal/fault"
	"pawl/internal/git/store"
	"pawl/internal/lib/text/visible"
	"pawl/internal/loop"
)

// patch is a change of a loop, of which a person is or could be asked.
type patch struct {
	base, head string
	preface    string // text that is hashed before the diff
	hash       string // the hash that approves it, "" if nobody is asked
	about      string // what it is, in words
}

// patchOf returns the change of a loop to show: one with new files that waits for approval, else its proposal, else
// what it has kept so far.
func patchOf(s loop.State) patch {
	switch g := s.Gate; {
	case g != nil && g.Kind == loop.GateNewFiles && g.Tree != "":
		return patch{s.Head, g.Tree, g.Preface(), g.Hash, "this change has new files and waits for approval; nothing of it is committed yet"}
	case s.Proposal != nil:
		return proposed(*s.Proposal)
	}
	about := " has made no proposal yet; this is what it has kept so far"
	if s.Status.Ended() {
		about = " has ended (" + string(s.Status) + ") without a proposal; this is what is on its branch"
	}
	return patch{s.Footing(), s.Head, "", "", "the loop " + s.Loop + about}
}

func proposed(p loop.Proposal) patch {
	return patch{p.Base, p.Head, p.Preface(), p.Hash, "proposal " + render.Proposal(p)}
}

// write writes the patch exactly as it is hashed.
func (p patch) write(ctx context.Context, store *store.Store, w io.Writer) error {
	return store.WriteProposal(ctx, p.preface, p.base, p.head, w)
}

// render writes the patch for people. It fails if what it has shown is not what the hash covers.
func (p patch) render(ctx context.Context, store *store.Store, style render.Style, w io.Writer) error {
	sum := sha256.New()
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(p.write(ctx, store, writer)) }()
	if err := style.Patch(w, io.TeeReader(reader, sum)); err != nil {
		reader.CloseWithError(err)
		return err
	}
	if actual := hex.EncodeToString(sum.Sum(nil)); p.hash != "" && actual != p.hash {
		return fault.New(fault.HashMismatch, "the change that was shown has the hash %s, but the change that waits has %s", actual, p.hash).
			Advise("Don't approve it. `pawl log ID --verify` checks the record.")
	}
	return nil
}

// page writes to the reader's pager ($PAGER, else less if it is installed), or straight to stdout.
func (a *app) page(write func(io.Writer) error) error {
	pager, chosen := os.LookupEnv("PAGER")
	if _, err := exec.LookPath("less"); !chosen && err == nil {
		pager = "less"
	}
	if pager = strings.TrimSpace(pager); pager == "" || pager == "cat" || os.Getenv("TERM") == "dumb" {
		return write(a.out)
	}
	cmd := exec.Command("sh", "-c", pager) // Ctrl-C goes to the pager, which has the terminal
	cmd.Stdout, cmd.Stderr = a.out, a.err
	cmd.Env = append([]string{"LESS=FRX", "LV=-c"}, os.Environ()...) // as in git: colours, short texts unpaged; the last value counts
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the pager %s: %w", pager, err)
	}
	err = write(stdin)
	stdin.Close()
	if waited := cmd.Wait(); err == nil && waited != nil {
		err = fmt.Errorf("the pager %s: %w; set PAGER to another one, or to cat", pager, waited)
	}
	if errors.Is(err, syscall.EPIPE) { // the reader has seen enough
		return nil
	}
	return err
}

// pages are a text that is read at a question, page by page. A pager would compete for the terminal's input.
type pages struct {
	lines []string
	at    int
}

// mostPaged limits how many bytes of a change are kept for reading at a question.
const mostPaged = 64 << 20

// open makes the pages of the change that waits, of a loop on this host. If there is nothing to show, it says so.
func (a *app) open(ctx context.Context, s *session, id string, p patch) *pages {
	if _, ok := s.Record(id); !ok {
		a.explain(s.Torn(id, fault.New(fault.PreconditionFailed, "the change of %s is on another host, and can't be shown here", id)))
		return nil
	}
	store, err := s.Store(ctx, id)
	if err != nil {
		a.explain(err)
		return nil
	}
	var text bytes.Buffer
	if err := p.render(ctx, store, a.screen.Style(), &limited{&text, mostPaged}); errors.Is(err, errTooLong) {
		text.WriteString("\n… this is only the beginning; `pawl diff` shows all of it\n")
	} else if err != nil {
		a.explain(err)
		return nil
	}
	return pagesOf(text.String())
}

func pagesOf(text string) *pages {
	return &pages{lines: strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")}
}

// readsChange reports whether a line that is typed at a question is about reading the change, which d opens.
func (a *app) readsChange(ctx context.Context, s *session, id string, p patch, line string) bool {
	return a.reads(line, []string{"d"}, func() *pages { return a.open(ctx, s, id, p) })
}

// readsContract reports whether a line that is typed at a question is about reading the whole contract, which v opens.
func (a *app) readsContract(line string) bool {
	if a.contract == "" {
		return false
	}
	return a.reads(line, viewed, func() *pages { return pagesOf("\n" + a.contract + "\n") })
}

// viewed are the words that open a text other than a change.
var viewed = []string{"v", "view"}

// reads reports whether a line that is typed at a question is about reading a text: one of words opens it, Enter turns to
// its next page, and any other line closes it. After the last page it is closed too.
func (a *app) reads(line string, words []string, open func() *pages) bool {
	switch typed := answered(line); {
	case a.reading == nil && !slices.Contains(words, typed):
		return false
	case a.reading == nil:
		a.reading = open()
	case typed != "":
		a.reading = nil
	}
	if a.reading != nil && !a.turn(a.reading) {
		a.reading = nil
	}
	return true
}

// turn shows the next page and reports whether there is another.
func (a *app) turn(p *pages) bool {
	a.screen.Print(p.next(a.screen.Style(), max(5, a.screen.Rows()-2)))
	if p.at == len(p.lines) {
		return false
	}
	a.screen.Ask(fmt.Sprintf("-- line %d of %d; Enter: more, q: quit -- ", p.at, len(p.lines)))
	return true
}

// next returns the next page, which has at most that many rows on the screen, or one line.
func (p *pages) next(style render.Style, rows int) string {
	begin, used := p.at, 0
	for p.at < len(p.lines) {
		used += style.Rows(p.lines[p.at])
		if used > rows && p.at > begin {
			break
		}
		p.at++
	}
	return strings.Join(p.lines[begin:p.at], "")
}

var errTooLong = errors.New("too long")

// limited accepts a limited number of bytes.
type limited struct {
	to   io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, errTooLong
	}
	return l.to.Write(b)
}

// firstLine returns the first line of a text that is not blank, for people.
func firstLine(content []byte) string {
	for scan := bufio.NewScanner(bytes.NewReader(content)); scan.Scan(); {
		if line := strings.TrimSpace(scan.Text()); line != "" {
			return visible.Line(loop.Clip(line, 60), nil)
		}
	}
	return ""
}
