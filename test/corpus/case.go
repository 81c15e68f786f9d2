package main

import (
	"maps"
	"strings"
)

// doc is a spec, or a part of one.
type doc = map[string]any

// course is one case: a loop or a steward that is taken from its start to its end.
type course struct {
	name    string
	spec    doc               // merged into the spec of its kind
	files   map[string]string // merged into the files of the repository; an empty text removes one
	agent   string            // a shell script, which runs on the desk
	answers answers           // what a person answers at gates, in this order
	deeds   []deed            // what a person does at other times
	tasks   []string          // of a steward: Markdown files
	alone   bool              // it has an engine of its own, which its deeds may kill
}

// answers are a person's answers by kind of gate. Each is a message, and what follows it on the command line. When they are
// used up, the last one is given again. A gate without answers is approved if it can be, else the loop is halted.
type answers map[string][]string

// deed is what a person does once a file has appeared in the world's folder, which the agent makes. The agent goes on when
// the deed is done, by waiting for the file with the ending ".done".
type deed struct {
	when string
	do   []string // commands for the shell, with pawl on the PATH and the loop's ID in $LOOP
}

const (
	raise = `echo $(($(cat work/n) + 1)) >work/n; echo "raise the number"`

	// reach makes a file in the world's folder, and waits until the deed that belongs to it is done.
	reach = `reach() { touch "$WORLD/$1"; until [ -e "$WORLD/$1.done" ]; do sleep 0.05; done; }
`
)

// by is an agent that does one thing in each iteration, or in one attempt of it. A line is "1) commands" or "1.2) commands".
func by(lines ...string) string {
	var script strings.Builder
	script.WriteString("n() { echo \"$1\" >work/n; }\n" + reach + "case $PAWL_ITERATION.$PAWL_ATTEMPT in\n")
	for _, line := range lines {
		pattern, commands, _ := strings.Cut(line, ") ")
		if !strings.Contains(pattern, ".") {
			pattern += ".*"
		}
		script.WriteString(pattern + ")\n" + commands + "\n;;\n")
	}
	script.WriteString("esac\nexit 0\n")
	return script.String()
}

// as is an agent of several roles. A line is "writer) commands".
func as(lines ...string) string {
	script := "n() { echo \"$1\" >work/n; }\n" + reach + `calls() { grep -c "^$PAWL_ROLE$" "$WORLD/calls"; }
echo "$PAWL_ROLE" >>"$WORLD/calls"
case $PAWL_ROLE in
`
	return script + strings.Join(lines, "\n;;\n") + "\n;;\nesac\nexit 0\n"
}

// baseFiles are the files of every repository. The metric of a loop is the number in work/n.
var baseFiles = map[string]string{
	"README.md":  "a hill\n",
	"work/n":     "10\n",
	"work/other": "good\n",
	"measure.sh": "cat work/n\n",
	"guard.sh":   "! grep -q bad work/other\n",
	"check.sh":   "[ ! -e work/syntax ] || ! grep -q bad work/syntax\n",
	"test.sh":    "cat work/n\n! grep -q '^not ok' work/n\n",
}

// baseSpec is the spec of every loop.
func baseSpec(w *world) doc {
	return doc{
		"goal": "climb", "repo": doc{"path": w.repo}, "scope": []string{"work/**"},
		"verify":    doc{"command": "sh measure.sh"},
		"guard":     doc{"command": "sh guard.sh"},
		"agent":     doc{"command": []string{"sh", w.path("agent.sh")}, "env": doc{"WORLD": w.dir}},
		"limits":    doc{"iterations": 1, "toolCalls": 1000, "activeTime": "1h"},
		"approvals": doc{"tools": []string{"*"}},
		"sandbox":   doc{"allow": []string{w.dir}}, // the agent leaves marks beside its tree
		"validate":  doc{"canary": false},          // there is no code here that a guard could check
	}
}

// merge merges a change into a document, to every depth.
func merge(into, change doc) doc {
	merged := maps.Clone(into)
	for key, value := range change {
		inner, isDoc := value.(doc)
		old, wasDoc := merged[key].(doc)
		if isDoc && wasDoc {
			value = merge(old, inner)
		}
		merged[key] = value
	}
	return merged
}
