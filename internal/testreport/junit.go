package testreport

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"io"
	"strings"
)

func sniffJUnit(line string) bool { return strings.Contains(line, "<testsuite") }

// maxDepth is deeper than any report is nested.
const maxDepth = 100

// readJUnit reads the JUnit XML that stands in the outputs, whatever else is around it. All
// dialects have in common a testcase with a name, a class or file and a time, and in it what came
// of it: failure, error, skipped; without any it passed.
func readJUnit(c *collector, outputs [][]byte) {
	for _, out := range outputs {
		from := bytes.Index(out, []byte("<testsuite"))
		if from < 0 {
			continue
		}
		d := xml.NewDecoder(bytes.NewReader(allowed(unstyled(out[from:]))))
		d.Strict = false
		d.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
		readSuites(c, d)
	}
}

// readSuites takes testcases until the XML ends or is none any more.
func readSuites(c *collector, d *xml.Decoder) {
	var (
		test    *Test
		message excerpt
		inside  string // the verdict that is open: failure, error
		verdict string
	)
	for depth := 0; depth < maxDepth; {
		token, err := d.RawToken() // RawToken asks for no matching end, so that half a report is read too
		if err != nil {
			break
		}
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			switch name := t.Name.Local; {
			case name == "testcase":
				a := attributes(t)
				test = &Test{Package: a["classname"], Name: a["name"], File: a["file"], DurationMs: seconds(a["time"])}
				message, verdict = excerpt{}, ""
				c.took(test.DurationMs)
			case test != nil && (name == "failure" || name == "error"):
				a := attributes(t)
				verdict, inside = "failed", name
				message.line(cmp.Or(a["message"], a["type"]))
			case test != nil && verdict == "" && (name == "skipped" || name == "disabled"):
				verdict = "skipped"
			}
		case xml.CharData:
			if inside != "" && strings.TrimSpace(string(t)) != "" {
				message.write(string(t))
			}
		case xml.EndElement:
			depth = max(depth-1, 0)
			switch {
			case t.Name.Local == inside:
				inside = ""
				message.line("")
			case t.Name.Local == "testcase" && test != nil:
				switch verdict {
				case "failed":
					test.Message = message.String()
					c.fail(*test)
				case "skipped":
					c.skipped++
				default:
					c.pass(test.Package, test.Name)
				}
				test, inside = nil, ""
			}
		}
	}
}

// attributes are an element's, each bounded.
func attributes(t xml.StartElement) map[string]string {
	a := map[string]string{}
	for _, attr := range t.Attr[:min(len(t.Attr), maxDepth)] {
		a[attr.Name.Local] = attr.Value[:min(len(attr.Value), headBytes)]
	}
	return a
}

// allowed returns text with ? for the characters that XML does not allow.
func allowed(text []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, bytes.ToValidUTF8(text, []byte("?")))
}
