package testreport

import (
	"fmt"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/loop"
	"pawl/internal/metric"
)

var (
	tapTest      = lazyregexp.New(`^(not )?ok\b(?: +(\d+))?(?: +(.*))?$`)
	tapPlan      = lazyregexp.New(`^1\.\.(\d+)\b`)
	tapDirective = lazyregexp.New(`(?i)(?:^|[^\\])#\s*(skip|todo)\b`)
	tapTime      = lazyregexp.New(`\s#\s*time=[\d.]+\s*(?:ms|s)\b.*$`)
	tapFailed    = lazyregexp.New(`^#\s+Failed test '(.*)'$`)
	tapLocation  = lazyregexp.New(`^location: '?(.+?)(?::\d+){0,2}'?$`)
)

var unescape = strings.NewReplacer(`\#`, "#", `\\`, `\`)

// tapNode is a test point.
type tapNode struct {
	level     int // of the subtests that it is one of
	name      string
	file      string
	ok, skip  bool
	leaf      bool
	diagnosis excerpt
}

// tapReader reads TAP 12 to 14. Subtests have four more spaces for each level, and come before the test that contains
// them.
type tapReader struct {
	*collector
	points        []*tapNode // that are not recorded yet; no level is above one before it
	last          *tapNode   // the test point of the next diagnosis
	yaml          string     // the start of the open YAML block: indentation and dashes
	planned, seen int
	group         string   // the comment above the test points, which tape uses as their group
	said          excerpts // diagnoses by the name of a failing test, which Perl prints on standard error
	saying        *excerpt
}

func readTAP(c *collector, outputs [][]byte) {
	r := &tapReader{collector: c, said: excerpts{}}
	for _, out := range outputs {
		eachLine([][]byte{out}, r.line)
		r.last, r.yaml = nil, ""
	}
	r.flush(len(r.points))
	for i := range c.Failing {
		if t := &c.Failing[i]; t.Message == "" {
			parts := strings.Split(t.Name, " > ")
			t.Message = r.said[parts[len(parts)-1]].String()
		}
	}
	if r.planned > r.seen && !r.Partial {
		r.Broken = true
		r.fail(Test{Name: "(plan)", Message: fmt.Sprintf("%s planned, %d run", metric.Counted(r.planned, "test"), r.seen)})
	}
}

func (r *tapReader) line(line string) {
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	if r.yaml != "" {
		if strings.TrimRight(line, " ") == strings.Replace(r.yaml, "---", "...", 1) {
			r.yaml, r.last = "", nil // the block was the whole diagnosis
		} else {
			r.diagnose(strings.TrimPrefix(line, strings.TrimSuffix(r.yaml, "---")))
		}
		return
	}
	var m match
	switch {
	case text == "---" && r.last != nil:
		r.yaml = strings.Repeat(" ", indent) + "---"
	case strings.HasPrefix(text, "Bail out!"):
		r.flush(len(r.points))
		r.Broken = true
		r.fail(Test{Name: "Bail out!", Message: tidy(strings.TrimSpace(strings.TrimPrefix(text, "Bail out!")))})
	case strings.HasPrefix(text, "# Subtest"), strings.HasPrefix(text, "TAP version "):
		r.last = nil
	case strings.HasPrefix(text, "# duration_ms ") && indent == 0:
	case strings.HasPrefix(text, "#"):
		r.comment(text)
	case m.by(tapPlan, text):
		if r.last = nil; indent == 0 {
			r.planned = count(r.planned + atoi(m[1]))
		}
	case line == "ok" && r.planned > 0 && r.seen >= r.planned: // prove -v says so of the file
	case m.by(tapTest, text):
		r.point(indent/4, m[1] == "", m[2], m[3])
	}
}

// comment reads a comment: about the test point before it, about a test that it names, or about the test points after
// it.
func (r *tapReader) comment(line string) {
	text := strings.TrimPrefix(strings.TrimPrefix(line, "#"), " ")
	if m := tapFailed().FindStringSubmatch(line); m != nil && r.last == nil {
		r.saying = r.said.of(loop.Clip(m[1], maxName), MaxTests)
	}
	switch {
	case r.last != nil && !r.last.ok:
		r.last.diagnosis.line(text)
	case strings.HasPrefix(text, "  "):
		r.saying.line(text)
	default:
		r.saying, r.group = nil, text
	}
}

// diagnose reads a line of a YAML block.
func (r *tapReader) diagnose(line string) {
	text := strings.TrimSpace(line)
	if strings.HasPrefix(text, "duration_ms:") {
		return
	}
	if m := tapLocation().FindStringSubmatch(text); m != nil && r.last.file == "" {
		r.last.file = loop.Clip(m[1], maxName)
	}
	if !r.last.ok {
		r.last.diagnosis.line(line)
	}
}

// point reads a test point. The subtests before it are its parts.
func (r *tapReader) point(level int, ok bool, number, rest string) {
	n := &tapNode{level: level, ok: ok}
	grouped := level == 0 && r.group != "" && !strings.HasPrefix(rest, "-") // tape prints no dash
	if strings.Contains(rest, "#") {
		rest = tapTime().ReplaceAllString(rest, "")
		if m := tapDirective().FindStringSubmatchIndex(rest); m != nil {
			n.skip = true
			rest = rest[:strings.LastIndexByte(rest[:m[2]], '#')]
		}
	}
	rest = strings.TrimSuffix(strings.TrimSpace(rest), " {") // TAP 14 and node-tap may open a block
	n.name = unescape.Replace(loop.Clip(strings.TrimSpace(strings.TrimPrefix(rest, "-")), maxName))
	if n.name == "" {
		n.name = "test " + number
	} else if grouped {
		n.name = loop.Clip(loop.Clip(r.group, maxName/2)+" > "+n.name, maxName)
	}
	points := len(r.points)
	for points > 0 && r.points[points-1].level > level {
		points--
	}
	parts := r.points[points:]
	if level == 0 {
		r.seen++
		r.flush(points)
	}
	failed := false
	for _, part := range parts {
		part.level, part.name = level, loop.Clip(n.name+" > "+part.name, maxName)
		failed = failed || !part.ok && !part.skip
	}
	n.leaf = len(parts) == 0 || !ok && !failed && !n.skip
	r.points = append(r.points, n)
	r.last = n
	if len(r.points) > maxNodes {
		r.flush(len(r.points))
	}
}

// flush records the first points. A test with parts counts by its parts.
func (r *tapReader) flush(first int) {
	for _, n := range r.points[:first] {
		switch {
		case !n.leaf:
		case n.skip:
			r.Skipped++
		case n.ok:
			r.pass("", n.name)
		default:
			r.fail(Test{Name: n.name, File: n.file, Message: n.diagnosis.String()})
		}
	}
	r.points = r.points[first:]
}
