package git

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// DiffLine is a line, or a piece of a line, that a change adds or removes.
type DiffLine struct {
	Path  string // of the file after the change; before it if the file is deleted
	N     int    // the line's number after the change if it is added, else before it
	Added bool
	Text  []byte // without the line feed; valid only during the call
	More  bool   // another piece of the same line: the pieces of a long line overlap
}

// Reader gets the lines of a change in order.
type Reader func(DiffLine)

// PatchFormat makes git print the lines after the output of DiffFormat. It also prints files that are binary by
// content as text, because one NUL must not hide the rest of a file.
var PatchFormat = []string{"--patch", "--text", "--unified=0"}

const (
	// maxRead limits how many bytes of a change are read. The rest is skipped.
	maxRead = 64 << 20
	// The size of the pieces of a long line, and how much of a piece the next one repeats.
	pieceSize, pieceOverlap = 64 << 10, 1 << 10
)

// errUnread stops reading a change that is longer than maxRead.
var errUnread = errors.New("the change is too long")

// ReadChanges reads the output of DiffFormat and PatchFormat: records for ParseChanges, an empty one, then the patch.
// unread reports that the change is longer than maxRead.
func ReadChanges(r io.Reader, read Reader) (files []FileChange, unread bool, err error) {
	reader := bufio.NewReaderSize(r, pieceSize)
	var records []byte
	for {
		field, err := reader.ReadBytes(0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, err
		}
		if len(field) == 0 || len(field) == 1 && field[0] == 0 {
			break
		}
		records = append(records, field...)
		if err != nil {
			break
		}
	}
	if files, err = ParseChanges(records); err != nil {
		return nil, false, err
	}
	p := patch{in: reader, left: maxRead, read: read}
	for _, f := range files {
		// git prints a file that becomes a link as one removed and one added file.
		p.paths = append(p.paths, f.Path)
		if f.Status == 'T' {
			p.paths = append(p.paths, f.Path)
		}
	}
	err = p.run()
	if errors.Is(err, errUnread) {
		_, err = io.Copy(io.Discard, reader)
		return files, true, err
	}
	return files, false, err
}

// patch reads a patch without context lines. Each hunk begins with its number of lines, so no content can be mistaken
// for a header.
type patch struct {
	in    *bufio.Reader
	paths []string // of the remaining files, in order
	left  int
	read  Reader
}

func (p *patch) run() error {
	path := ""
	for {
		line, err := p.in.ReadString('\n')
		if line == "" && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		switch {
		case strings.HasPrefix(line, "diff --git "):
			if len(p.paths) == 0 {
				return fmt.Errorf("git's patch has more files than its list: %.200q", line)
			}
			path, p.paths = p.paths[0], p.paths[1:]
		case strings.HasPrefix(line, "@@ "):
			if err := p.hunk(path, line); err != nil {
				return err
			}
		}
	}
}

// hunk reads the lines of a header such as "@@ -3,2 +4 @@": first the removed ones, then the added ones.
func (p *patch) hunk(path, header string) error {
	m := hunkHeader.FindStringSubmatch(header)
	if m == nil {
		return fmt.Errorf("git's patch is not understood: %.200q", header)
	}
	for _, side := range []struct {
		sign        byte
		line, count string
	}{{'-', m[1], m[2]}, {'+', m[3], m[4]}} {
		first, err1 := strconv.Atoi(side.line)
		count, err2 := strconv.Atoi(cmp.Or(side.count, "1"))
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		for i := range count {
			if err := p.line(DiffLine{Path: path, N: first + i, Added: side.sign == '+'}, side.sign); err != nil {
				return err
			}
		}
	}
	return nil
}

var hunkHeader = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? `)

// line passes one line to the Reader, a long line in pieces.
func (p *patch) line(l DiffLine, sign byte) error {
	c, err := p.in.ReadByte()
	if err == nil && c == '\\' { // "\ No newline at end of file", about the line before
		if _, err = p.in.ReadString('\n'); err == nil {
			c, err = p.in.ReadByte()
		}
	}
	if err != nil {
		return err
	}
	if c != sign {
		return fmt.Errorf("git's patch of %s has a line that begins with %q", Quote(l.Path), c)
	}
	var overlap []byte
	for {
		piece, err := p.in.ReadSlice('\n')
		if p.left -= len(piece); p.left < 0 {
			return errUnread
		}
		whole := err == nil || errors.Is(err, io.EOF)
		if !whole && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		l.Text = bytes.TrimSuffix(piece, []byte("\n"))
		if len(overlap) > 0 {
			l.Text = append(overlap, l.Text...)
		}
		p.read(l)
		if whole {
			return nil
		}
		overlap = bytes.Clone(piece[max(0, len(piece)-pieceOverlap):])
		l.More = true
	}
}
