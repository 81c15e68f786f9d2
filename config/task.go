package config

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/lib/lazyregexp"
	"pawl/internal/spec"
	"pawl/internal/spec/issue"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// LoadTask reads a task from a Markdown, YAML, TOML or JSON file, by its extension. With "-" it reads from reader, and
// the first line decides the format. In a Markdown file the front matter has the task's keys, and the rest is its
// body. The first heading is the title if no key sets one. The error has all problems at once, as spec.Problems with
// file and line.
func LoadTask(path string, reader io.Reader) (t task.Task, err error) {
	text, name, ext := []byte(nil), path, strings.ToLower(filepath.Ext(path))
	if path == "-" {
		name, ext = "stdin", ""
		text, err = bounded(reader, name, task.MaxTask)
	} else {
		text, err = readFile(path, task.MaxTask)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t, fault.New(fault.InvalidSpec, "there is no file %s", path).Advise("Name a Markdown, YAML or JSON file with a task in it, or - for stdin.")
	case err != nil:
		return t, fault.New(fault.InvalidSpec, "the task can't be read: %v", err).Advise("Name a task file that you may read.")
	}
	doc := newDocument(name)
	if problem, want, line := notText(text); problem != "" {
		return t, spec.Problems{{File: name, Line: line, What: problem, Want: want}}
	}
	if ext == "" {
		ext = guess(text)
	}
	body := ""
	switch ext {
	case ".md", ".markdown":
		matter, rest := issue.FrontMatter(string(text))
		doc.read([]byte(matter), name, ".yaml")
		body = strings.TrimSpace(rest)
	default:
		doc.read(text, name, ext)
	}
	if doc.lost {
		return t, doc.problems(nil)
	}
	var found spec.Problems
	if body != "" {
		if doc.values["body"] != nil {
			found.Add("body", "is given in the front matter, and text follows that", "one of the two")
		}
		doc.values["body"] = body
		if m := heading().FindStringSubmatch(body); m != nil && doc.values["title"] == nil {
			doc.values["title"] = m[1]
		}
	}
	t, found = spec.FillMap(doc.values, t, found, func(t *task.Task) spec.Problems {
		if list, given := doc.values["plan"].([]any); given && len(list) == 0 {
			t.Plan = []task.Step{} // an empty list decodes to nothing
		}
		return append(t.Check(""), charter.Specs("", *t)...)
	})
	if problems := doc.problems(task.Called("task", found)); len(problems) > 0 {
		return task.Task{}, problems
	}
	return t, nil
}

var (
	heading = lazyregexp.New(`(?m)\A#+[ \t]+(.+?)[ \t#]*$`)
	aKey    = lazyregexp.New(`\A\s*(#[^\n]*\n\s*)*[A-Za-z]+:(\s|$)`)
)

// guess returns the extension for a text without a file name.
func guess(text []byte) string {
	switch start := bytes.TrimSpace(text); {
	case bytes.HasPrefix(start, []byte("{")):
		return ".json"
	case aKey().Match(start):
		return ".yaml"
	}
	return ".md"
}
