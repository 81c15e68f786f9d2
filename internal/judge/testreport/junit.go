package testreport

import (
	"bytes"
	"cmp"
	"html"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/metric"
)

// The limits of what is read: bytes of one text between tags, bytes of one tag, attributes of one tag. Most tags are
// shorter than usualTag, and the pattern is faster on short texts.
const (
	maxText       = 16 << 10
	maxTag        = 1 << 20
	usualTag      = 512
	maxAttributes = 100
)

var (
	xmlTag       = lazyregexp.New(`^<(/?)(?:[\w.-]+:)?([\w.-]+)((?:[^"'>]|"[^"]*"|'[^']*')*)>`)
	xmlAttribute = lazyregexp.New(`([\w.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')`)
)

// junitReader reads the testcases of JUnit XML. It finds the tags by itself: a decoder would stop at the first
// character that XML does not allow, and would hold each text in memory.
type junitReader struct {
	*collector
	test    *Test  // the open testcase
	inside  string // the open verdict: failure or error
	verdict string
}

// readJUnit reads the JUnit XML in the outputs, which may have other text around it. In all dialects a testcase has a
// name, and a class or file, and contains the result: failure, error or skipped. Without any of them it
// passed.
func readJUnit(c *collector, outputs [][]byte) {
	for _, out := range outputs {
		if start := bytes.Index(out, []byte("<testsuite")); start >= 0 {
			r := junitReader{collector: c}
			r.read(out[start:])
		}
	}
}

// read reads tags and texts until the XML ends or is no longer XML.
func (r *junitReader) read(src []byte) {
	for whole := true; whole && len(src) > 0; {
		next := bytes.IndexByte(src, '<')
		if next < 0 {
			return
		}
		text := src[:min(next, maxText)]
		if cut := bytes.LastIndexByte(text, '&'); len(text) < next && cut >= 0 && bytes.IndexByte(text[cut:], ';') < 0 {
			text = text[:cut] // cuts no entity in half
		}
		r.say(text, html.UnescapeString)
		src = src[next:]
		switch {
		case bytes.HasPrefix(src, []byte("<!--")):
			_, src, whole = bytes.Cut(src, []byte("-->"))
		case bytes.HasPrefix(src, []byte("<![CDATA[")):
			text, src, whole = bytes.Cut(src[len("<![CDATA["):], []byte("]]>"))
			r.say(text[:min(len(text), maxText)], strings.Clone)
		case bytes.HasPrefix(src, []byte("<!")), bytes.HasPrefix(src, []byte("<?")): // a DOCTYPE, an XML declaration
			_, src, whole = bytes.Cut(src, []byte(">"))
		default:
			m := xmlTag().FindSubmatch(src[:min(len(src), usualTag)])
			if m == nil {
				m = xmlTag().FindSubmatch(src[:min(len(src), maxTag)])
			}
			if m == nil {
				return
			}
			src = src[len(m[0]):]
			name, ends := string(m[2]), bytes.HasSuffix(m[3], []byte("/"))
			if len(m[1]) == 0 {
				r.start(name, m[3])
			}
			if len(m[1]) > 0 || ends {
				r.end(name)
			}
		}
	}
}

// say adds to the message of the open verdict.
func (r *junitReader) say(text []byte, decode func(string) string) {
	if r.inside != "" && len(bytes.TrimSpace(text)) > 0 {
		r.test.out.write(string(metric.Plain([]byte(decode(string(text))))))
	}
}

func (r *junitReader) start(name string, attributes []byte) {
	switch {
	case name == "testcase":
		a := attributesOf(attributes)
		r.test = &Test{Package: a["classname"], Name: a["name"], File: a["file"], out: &excerpt{}}
		r.verdict = ""
	case r.test != nil && (name == "failure" || name == "error"):
		r.verdict, r.inside = "failed", name
		if a := attributesOf(attributes); a["message"]+a["type"] != "" {
			r.test.out.line(cmp.Or(a["message"], a["type"]))
		}
	case r.test != nil && r.verdict == "" && (name == "skipped" || name == "disabled"):
		r.verdict = "skipped"
	}
}

func (r *junitReader) end(name string) {
	switch {
	case name == r.inside:
		r.inside = ""
		r.test.out.line("")
	case name == "testcase" && r.test != nil:
		switch r.verdict {
		case "failed":
			r.fail(*r.test)
		case "skipped":
			r.Skipped++
		default:
			r.pass(r.test.Package, r.test.Name)
		}
		r.test, r.inside = nil, ""
	}
}

// attributesOf returns the attributes of an element, each with a limited length.
func attributesOf(text []byte) map[string]string {
	a := map[string]string{}
	for _, m := range xmlAttribute().FindAllSubmatch(text, maxAttributes) {
		value := html.UnescapeString(string(m[2]) + string(m[3]))
		a[string(m[1])] = value[:min(len(value), headBytes)]
	}
	return a
}
