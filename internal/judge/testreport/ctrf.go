package testreport

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// ctrfSign matches a line of a CTRF document, written in one line or in many. Reports before CTRF 1.0 name no format.
var ctrfSign = lazyregexp.New(`^\s*\{?.*"(?:reportFormat"\s*:\s*"CTRF"|results"\s*:\s*\{)`)

// ctrfDocument is a document of the Common Test Report Format, after its specification (ctrf.io).
type ctrfDocument struct {
	Results struct {
		Tool    *struct{}  `json:"tool"`
		Summary *struct{}  `json:"summary"`
		Tests   []ctrfTest `json:"tests"`
	} `json:"results"`
}

type ctrfTest struct {
	Name     string          `json:"name"`
	Status   string          `json:"status"`
	Suite    json.RawMessage `json:"suite"` // a list of names; before CTRF 1.0 one text
	FilePath string          `json:"filePath"`
	Message  string          `json:"message"`
	Trace    string          `json:"trace"`
}

// readCTRF reads the CTRF documents in the outputs, which may have other lines around them. A document begins a line.
func readCTRF(c *collector, outputs [][]byte) {
	for _, output := range outputs {
		for len(output) > 0 {
			output = c.nextCTRF(output)
		}
	}
}

// nextCTRF reads a document at the start of the output, and returns the output from the next line on that may begin
// another one. It reads no byte of the output twice, except those of one line.
func (c *collector) nextCTRF(output []byte) []byte {
	if !bytes.HasPrefix(output, []byte("{")) {
		return afterLine(output, 0)
	}

	var document ctrfDocument
	decoder := json.NewDecoder(bytes.NewReader(output))
	err := decoder.Decode(&document)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fromLine(output, int(syntax.Offset))
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !ok {
		return nil // the output ends within the document
	}

	results := document.Results
	if err == nil && results.Tool != nil && results.Summary != nil {
		for _, test := range results.Tests {
			c.bookCTRF(test)
		}
	}
	return afterLine(output, int(decoder.InputOffset()))
}

func (c *collector) bookCTRF(test ctrfTest) {
	group := test.group()
	switch test.Status {
	case "passed":
		c.pass(group, test.Name)
	case "failed":
		message := strings.TrimSpace(test.Message + "\n" + test.Trace)
		if strings.HasPrefix(test.Trace, test.Message) {
			message = test.Trace
		}
		failing := Test{Package: group, Name: test.Name, File: test.FilePath, out: &excerpt{}}
		failing.out.write(message)
		c.fail(failing)
	default: // skipped, pending, other
		c.Skipped++
	}
}

// group returns the suites of a test, else its file.
func (t ctrfTest) group() string {
	var suites []string
	if json.Unmarshal(t.Suite, &suites) == nil && len(suites) > 0 {
		return strings.Join(suites, " > ")
	}
	var suite string
	if json.Unmarshal(t.Suite, &suite) == nil && suite != "" {
		return suite
	}
	return t.FilePath
}

// afterLine returns the output after the line of the offset.
func afterLine(output []byte, offset int) []byte {
	end := bytes.IndexByte(output[offset:], '\n')
	if end < 0 {
		return nil
	}
	return output[offset+end+1:]
}

// fromLine returns the output from the line of the offset on, but never from its first line.
func fromLine(output []byte, offset int) []byte {
	offset = min(offset, len(output))
	start := bytes.LastIndexByte(output[:offset], '\n')
	if start < 0 {
		return afterLine(output, 0)
	}
	return output[start+1:]
}
