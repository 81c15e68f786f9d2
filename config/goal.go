package config

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"pawl/internal/spec"
	"pawl/internal/spec/issue"
)

// maxGoal is how many bytes of an issue become the goal; the prompt has no more.
const maxGoal = 16 << 10

// GoalFile returns the flag that reads a goal from a Markdown file.
func GoalFile(path string) Flag { return Flag{"--goal-file", "goal", "@" + path} }

// putGoal sets the goal to the issue in a Markdown file. The spec has the text and not the name of the file, so
// workflow input and contract have the text as it was at the start of the loop. flag is the one that names the file.
func putGoal(doc *document, path, flag string) {
	file := "the name of a Markdown file"
	wrong := func(problem, want string) {
		doc.wrong = append(doc.wrong, spec.Problem{File: flag, Key: "goal", What: problem, Want: want})
	}
	if flag == setFlag {
		file += `, or --set 'goal="@…"' for a goal that begins with an @`
		if strings.TrimSpace(path) == "" {
			wrong("names no file after the @", "--set goal=@issue.md")
			return
		}
	}
	source, err := readFile(path, issue.MaxSource)
	if problem, _, _ := notText(source); err == nil && problem != "" {
		err = fmt.Errorf("%s %s", path, problem)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		wrong("there is no file "+path, file)
	case err != nil:
		wrong("can't be read from its file: "+err.Error(), "a Markdown file")
	default:
		doc.put([]string{"goal"}, issue.Parse(source).Goal(maxGoal), flag)
	}
}
