package rules

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Reach says how near a new file is to being run: a person who approves many new files sees the nearest first.
type Reach int

// The nearest is the lowest.
const (
	Runnable Reach = iota // a command could run it, or runs what it says: an executable, a script, a hidden file
	Source                // an interpreter could be given it
	Other
)

// shells are the endings of scripts; tools name files whose contents programs run; sources are endings of code that
// needs no compiler.
var (
	shells = []string{".sh", ".bash", ".zsh", ".fish", ".ksh", ".csh", ".command", ".ps1", ".psm1", ".bat", ".cmd", ".vbs", ".mk", ".pth", ".service", ".desktop"}
	tools  = []string{
		"makefile", "gnumakefile", "justfile", "taskfile.yml", "rakefile", "dockerfile", "jenkinsfile", "procfile", "cmakelists.txt", "package.json", "setup.py",
		"conftest.py", "noxfile.py", "sitecustomize.py", "usercustomize.py", "build.rs", "build.gradle", "build.gradle.kts", "gruntfile.js", "gulpfile.js",
	}
	sources = []string{".py", ".pyw", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".rb", ".pl", ".pm", ".php", ".lua", ".tcl", ".awk", ".r", ".jl", ".exs", ".groovy"}
)

// ReachOf returns how near a new file is to being run.
func ReachOf(f Diff) Reach {
	name := strings.ToLower(path.Base(f.Path))
	ending := path.Ext(name)
	marked := f.Executable || f.Script || f.Link
	named := slices.Contains(tools, name) || slices.Contains(shells, ending)
	switch {
	case marked || named || hasHiddenPart(f.Path):
		return Runnable
	case slices.Contains(sources, ending):
		return Source
	}
	return Other
}

// hasHiddenPart reports whether a file, or a folder above it, is one that people do not see and tools read by itself.
func hasHiddenPart(file string) bool {
	return slices.ContainsFunc(strings.Split(file, "/"), func(part string) bool { return strings.HasPrefix(part, ".") })
}

// nearestFirst orders new files by their reach, and counts those that a command could run.
func nearestFirst(files []Diff) (names []string, runnable int) {
	slices.SortStableFunc(files, func(a, b Diff) int { return cmp.Compare(ReachOf(a), ReachOf(b)) })
	for _, f := range files {
		names = append(names, f.Path)
		if ReachOf(f) == Runnable {
			runnable++
		}
	}
	return names, runnable
}

// RunnableInWords says, after the count of new files, how many of them a command could run. They are the first that are
// named.
func RunnableInWords(runnable, total int) string {
	switch {
	case runnable == 0:
		return ""
	case total == 1:
		return " that a command could run"
	case runnable == total:
		return ", which a command could run"
	}
	return fmt.Sprintf(", first the %d that a command could run", runnable)
}
