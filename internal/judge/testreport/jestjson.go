package testreport

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// jestSign matches the line that `jest --json` writes: the whole document is one line.
var jestSign = lazyregexp.New(`^\{"num(?:Failed|Passed|Pending|Total)\w+":\d+,`)

type jestDocument struct {
	Results []struct {
		Name    string     `json:"name"` // the file
		Status  string     `json:"status"`
		Message string     `json:"message"`
		Tests   []jestTest `json:"assertionResults"`
	} `json:"testResults"`
}

type jestTest struct {
	Suites   []string `json:"ancestorTitles"`
	Title    string   `json:"title"`
	Status   string   `json:"status"`
	Failures []string `json:"failureMessages"`
}

// readJestJSON reads the documents of `jest --json` in the outputs, which may have other lines around them. A test has the
// name that jest prints.
func readJestJSON(c *collector, outputs [][]byte) {
	for _, output := range outputs {
		for line := range bytes.Lines(output) {
			var document jestDocument
			if bytes.HasPrefix(line, []byte(`{"num`)) && json.Unmarshal(line, &document) == nil {
				c.bookJest(document)
			}
		}
	}
}

func (c *collector) bookJest(document jestDocument) {
	for _, result := range document.Results {
		file := result.Name
		if path.IsAbs(file) { // outside of the tree that the command ran in
			file = path.Base(file)
		}
		for _, test := range result.Tests {
			c.bookJestTest(file, test)
		}
		if len(result.Tests) == 0 && result.Status == "failed" {
			c.Broken = true
			failing := Test{Package: file, Name: jest.broken, File: file, out: &excerpt{}}
			failing.out.write(result.Message)
			c.fail(failing)
		}
	}
}

func (c *collector) bookJestTest(file string, test jestTest) {
	name := strings.Join(append(test.Suites, test.Title), jest.nested)
	switch test.Status {
	case "passed":
		c.pass(file, name)
	case "failed":
		failing := Test{Package: file, Name: name, File: file, out: &excerpt{}}
		failing.out.write(strings.Join(test.Failures, "\n"))
		c.fail(failing)
	default: // pending, skipped, todo, disabled
		c.Skipped++
	}
}
