package testreport

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
)

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
		d := xml.NewDecoder(&xmlText{src: out[from:]})
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
				if text := a["message"]; text != "" {
					message.line(text)
				} else if text := a["type"]; text != "" {
					message.line(text)
				}
			case test != nil && verdict == "" && (name == "skipped" || name == "disabled"):
				verdict = "skipped"
			}
		case xml.CharData:
			if inside != "" && strings.TrimSpace(string(t)) != "" {
				message.write(string(unstyled(t)))
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

// xmlText is a reader that makes XML out of what was meant to be XML: of text between tags it
// passes on the start alone, so that the decoder, which holds each text in memory, stays small;
// comments are left out, characters that XML does not allow become question marks.
type xmlText struct {
	src  []byte
	next []byte // to be read before src goes on
}

// What is passed on of one text between tags, and the longest tag.
const (
	maxText = 16 << 10
	maxTag  = 1 << 20
)

func (x *xmlText) Read(p []byte) (int, error) {
	for len(x.next) == 0 {
		if len(x.src) == 0 {
			return 0, io.EOF
		}
		if !x.piece() {
			x.src = nil
		}
	}
	n := copy(p, x.next)
	x.next = x.next[n:]
	return n, nil
}

// piece takes the next tag or text from the source; false ends the document.
func (x *xmlText) piece() bool {
	src := x.src
	open := []byte("<")
	switch {
	case bytes.HasPrefix(src, []byte("<!--")):
		end := bytes.Index(src, []byte("-->"))
		if end < 0 {
			return false
		}
		x.src = src[end+3:]
		return true
	case bytes.HasPrefix(src, []byte("<![CDATA[")):
		end := bytes.Index(src, []byte("]]>"))
		if end < 0 {
			return false
		}
		const start = len("<![CDATA[")
		text := allowed(src[start:max(start, min(end, start+maxText))])
		x.next = append(append([]byte("<![CDATA["), bytes.ReplaceAll(text, []byte("]]"), []byte("] ]"))...), "]]>"...)
		x.src = src[end+3:]
		return true
	case bytes.HasPrefix(src, []byte("<!")), bytes.HasPrefix(src, []byte("<?")):
		end := bytes.IndexByte(src, '>') // a DOCTYPE and an XML declaration say nothing here
		if end < 0 {
			return false
		}
		x.src = src[end+1:]
		return true
	case src[0] == '<':
		end := tagEnd(src[:min(len(src), maxTag)])
		if end < 0 {
			return false
		}
		x.next, x.src = allowed(src[:end]), src[end:]
		return true
	}
	end := bytes.Index(src, open)
	if end < 0 {
		end = len(src)
	}
	text := src[:min(end, maxText)]
	if cut := bytes.LastIndexByte(text, '&'); len(text) < end && cut >= 0 && bytes.IndexByte(text[cut:], ';') < 0 {
		text = text[:cut] // not half an entity
	}
	x.next, x.src = allowed(text), src[end:]
	return true
}

// tagEnd is the length of the tag that src starts with, -1 where it has no end. A > inside of
// quotes does not end it.
func tagEnd(src []byte) int {
	var quote byte
	for i, b := range src {
		switch {
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '"' || b == '\'':
			quote = b
		case b == '>':
			return i + 1
		}
	}
	return -1
}

// allowed are the characters of text, with ? for those that no XML may have.
func allowed(text []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, bytes.ToValidUTF8(text, []byte("?")))
}
