package supervisor

import (
	"bytes"
	"fmt"
	"regexp"
)

// FoundSuffix ends the name of the file with the lines of stdout that Command.Find matches.
const FoundSuffix = ".found"

// The limits of a finder. A longer line is searched up to its limit. Of more lines, the last ones are kept.
const (
	maxFoundLine = 64 << 10
	maxFound     = 1 << 20
)

// colour matches the escape sequences that colour a text. They may stand in the middle of what a pattern matches.
var colour = regexp.MustCompile(`\x1b\[[0-9;:]*[A-Za-z]`)

// finder searches a stream line by line while it passes, since only a part of a long stream is kept.
type finder struct {
	patterns []*regexp.Regexp
	line     []byte // the line that has begun
	found    []byte // the lines that match, each with its end
}

func newFinder(patterns []string) (*finder, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	f := new(finder)
	for _, text := range patterns {
		pattern, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("a pattern to find in the output: %w", err)
		}
		f.patterns = append(f.patterns, pattern)
	}
	return f, nil
}

// search searches the next piece of the stream.
func (f *finder) search(data []byte) {
	for len(data) > 0 {
		end := bytes.IndexAny(data, "\r\n")
		piece := data
		if end >= 0 {
			piece = data[:end]
		}
		room := max(0, maxFoundLine-len(f.line))
		f.line = append(f.line, piece[:min(len(piece), room)]...)
		if end < 0 {
			return
		}
		f.endLine()
		data = data[end+1:]
	}
}

// endLine keeps the line that has ended if it matches.
func (f *finder) endLine() {
	line := f.line
	f.line = f.line[:0]
	if len(line) == 0 || !f.matches(line) {
		return
	}
	f.found = append(append(f.found, line...), '\n')
	if len(f.found) > maxFound {
		half := len(f.found) - maxFound/2
		rest := f.found[half:]
		f.found = bytes.Clone(rest[bytes.IndexByte(rest, '\n')+1:])
	}
}

func (f *finder) matches(line []byte) bool {
	if bytes.IndexByte(line, 0x1b) >= 0 {
		line = colour.ReplaceAll(line, nil)
	}
	for _, pattern := range f.patterns {
		if pattern.Match(line) {
			return true
		}
	}
	return false
}
