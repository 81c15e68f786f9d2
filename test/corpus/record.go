package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// record is what is kept of a case: sections of text, in which everything that differs between two runs of the same build
// has been replaced.
type record struct{ sections strings.Builder }

// screen keeps what a command printed, and its exit code.
func (r *record) screen(title string, said result) {
	r.add(fmt.Sprintf("%s (exit code %d)", title, said.code), said.out+said.err)
}

// json keeps a JSON document, with one value a line.
func (r *record) json(title string, said result) {
	var text bytes.Buffer
	if err := json.Indent(&text, []byte(said.out), "", " "); err != nil {
		r.screen(title, said)
		return
	}
	r.add(title, text.String()+"\n")
}

// events keeps the events of a ledger, one field a line.
func (r *record) events(said result) {
	var text bytes.Buffer
	for line := range strings.Lines(said.out) {
		if err := json.Indent(&text, []byte(line), "", " "); err != nil {
			text.WriteString(line)
		}
	}
	r.add("events", text.String())
}

// add keeps a text, without what differs from run to run.
func (r *record) add(title, text string) { r.keep(title, steady(text)) }

// keep keeps a text as it is.
func (r *record) keep(title, text string) {
	fmt.Fprintf(&r.sections, "-- %s --\n%s", title, text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		r.sections.WriteString("\n")
	}
}

func (r *record) text() string { return r.sections.String() }

// unsteady is what differs between two runs of the same build, and what stands in its place.
var unsteady = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "RUN"},
	{regexp.MustCompile(`\b([dj]-)?[0-9a-f]*([0-9][a-f]|[a-f][0-9])[0-9a-f]*\b`), "HASH"},
	{regexp.MustCompile(`\b127\.0\.0\.1:\d+\b`), "ADDRESS"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|µs|us|s|m|h)( \d+s)?\b`), "DURATION"},
	{regexp.MustCompile(`"(activeMs|durationMs|used|remaining|activeTime|wallClock|seconds|cpuMs)": \d+`), `"$1": NUMBER`},
	{regexp.MustCompile(`just now`), "DURATION"},
}

func steady(text string) string {
	for _, u := range unsteady {
		text = u.pattern.ReplaceAllString(text, u.instead)
	}
	return text
}
