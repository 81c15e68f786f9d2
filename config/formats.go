package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"pawl/internal/spec"
)

// readTOML reads TOML.
func readTOML(text []byte, file string, doc *document) {
	if line := tooDeep(text); line > 0 {
		doc.unread(spec.Problem{File: file, Line: line, What: fmt.Sprintf("not valid TOML: it is nested more than %d deep", maxDepth), Want: "valid TOML"})
		return
	}
	twice := tomlPlaces(text, file, doc)
	err := toml.Unmarshal(text, &doc.values)
	if err == nil {
		return
	}
	p := spec.Problem{File: file, What: "not valid TOML: " + strings.TrimPrefix(err.Error(), "toml: "), Want: "valid TOML"}
	var at *toml.DecodeError
	switch {
	case errors.As(err, &at):
		p.Line, _ = at.Position()
	case len(twice) > 0: // for this the library has no line
		doc.unread(twice...)
		return
	}
	doc.unread(p)
}

// tooDeep returns the line in which a TOML document is nested too deeply, by brackets or by dots in a
// key; 0 where it is not. The library follows any depth until the stack is used up, which ends the
// process.
func tooDeep(text []byte) int {
	line, depth, dots := 1, 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\n':
			line, dots = line+1, 0
		case '#':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case '"', '\'':
			quote := text[i : i+1]
			if bytes.HasPrefix(text[i:], bytes.Repeat(quote, 3)) {
				quote = bytes.Repeat(quote, 3)
			}
			i += len(quote)
			for i < len(text) && !bytes.HasPrefix(text[i:], quote) && (len(quote) == 3 || text[i] != '\n') {
				if c == '"' && text[i] == '\\' && i+1 < len(text) {
					i++
				}
				if text[i] == '\n' {
					line++
				}
				i++
			}
			i += len(quote) - 1
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		case '.':
			dots++
		}
		if depth > maxDepth || dots > maxDepth {
			return line
		}
	}
	return 0
}

// tomlPlaces notes where the keys of a TOML document stand, which its library does not tell with
// the values, and returns those that are given twice.
func tomlPlaces(text []byte, file string, doc *document) (twice spec.Problems) {
	parser := unstable.Parser{}
	parser.Reset(text)
	table, seen := "", map[string]bool{}
	note := func(key string, n *unstable.Node) {
		if n.Raw.Length > 0 {
			doc.at[key] = place{file, parser.Shape(n.Raw).Start.Line}
		}
	}
	dotted := func(under string, names unstable.Iterator) string {
		for names.Next() {
			under = join(under, string(names.Node().Data))
			if _, known := doc.at[under]; !known {
				note(under, names.Node())
			}
		}
		return under
	}
	given := func(key string, names unstable.Iterator) {
		if seen[key] && names.Next() {
			line := parser.Shape(names.Node().Raw).Start.Line
			twice = append(twice, spec.Problem{File: file, Line: line, Key: key, What: "is given twice", Want: "one of the two"})
		}
		seen[key] = true
	}
	var value func(key string, n *unstable.Node, depth int)
	value = func(key string, n *unstable.Node, depth int) {
		items := n.Children()
		for i := 0; depth < maxDepth && items.Next(); i++ {
			switch item := items.Node(); {
			case n.Kind == unstable.Array:
				note(fmt.Sprintf("%s[%d]", key, i), item)
				value(fmt.Sprintf("%s[%d]", key, i), item, depth+1)
			case item.Kind == unstable.KeyValue:
				value(dotted(key, item.Key()), item.Value(), depth+1)
			}
		}
	}
	for parser.NextExpression() {
		switch n := parser.Expression(); n.Kind {
		case unstable.Table:
			table = dotted("", n.Key())
			given(table, n.Key())
		case unstable.ArrayTable:
			table = dotted("", n.Key())
		case unstable.KeyValue:
			key := dotted(table, n.Key())
			given(key, n.Key())
			value(key, n.Value(), 0)
		}
	}
	return twice
}

// jsonReader reads JSON token by token: encoding/json would lose the lines and keys that are
// given twice.
type jsonReader struct {
	doc  *document
	file string
	text []byte
	dec  *json.Decoder
}

func readJSON(text []byte, file string, doc *document) {
	r := jsonReader{doc, file, text, json.NewDecoder(bytes.NewReader(text))}
	r.dec.UseNumber()
	v, err := r.value("", 0)
	if err == nil {
		if _, more := r.dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more follows after the object")
		}
	}
	if err != nil {
		what, want := strings.TrimPrefix(err.Error(), "json: "), "valid JSON"
		const blank = " \t\r\n"
		at := min(int(r.dec.InputOffset()), len(text))
		before, rest := bytes.TrimRight(text[:at], blank+"]}"), bytes.TrimLeft(text[at:], blank+",")
		switch {
		case len(bytes.TrimSpace(text)) == 0:
			what = "it is empty"
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			what = "it ends too early"
		case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")), bytes.HasPrefix(rest, []byte("#")):
			what, want = "it has comments", "no comments, which YAML and TOML have"
		case bytes.HasSuffix(before, []byte(",")), bytes.HasPrefix(bytes.TrimLeft(text[at:], blank), []byte(",")) && bytes.ContainsAny(rest[:min(1, len(rest))], "]}"):
			what, want = "a comma stands before the closing bracket", "no comma after the last one"
		}
		doc.unread(spec.Problem{File: file, Line: r.line(), What: "not valid JSON: " + what, Want: want})
		return
	}
	object, ok := v.(map[string]any)
	if !ok {
		doc.unread(spec.Problem{File: file, Line: 1, What: "is not an object", Want: "the keys of a spec in { }"})
		return
	}
	doc.values = object
}

// line is the line that the decoder has come to.
func (r *jsonReader) line() int {
	return 1 + bytes.Count(r.text[:min(int(r.dec.InputOffset()), len(r.text))], []byte("\n"))
}

func (r *jsonReader) value(key string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	t, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	if key != "" {
		r.doc.at[key] = place{r.file, r.line()}
	}
	switch t {
	case json.Delim('{'):
		object := map[string]any{}
		for r.dec.More() {
			t, err := r.dec.Token()
			if err != nil {
				return nil, err
			}
			name, _ := t.(string) // the decoder lets nothing else be a key
			at := join(key, name)
			if _, twice := object[name]; twice {
				r.doc.wrong = append(r.doc.wrong, spec.Problem{File: r.file, Line: r.line(), Key: at, What: "is given twice", Want: "one of the two"})
			}
			if object[name], err = r.value(at, depth+1); err != nil {
				return nil, err
			}
		}
		_, err = r.dec.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for r.dec.More() {
			v, err := r.value(fmt.Sprintf("%s[%d]", key, len(list)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = r.dec.Token()
		return list, err
	}
	return t, nil
}
