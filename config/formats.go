package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"pawl/internal/spec"
)

// readTOML reads TOML. Its library keeps no lines but that of a syntax error.
func readTOML(text []byte, file string, doc *document) {
	err := toml.Unmarshal(text, &doc.values)
	if err == nil {
		return
	}
	p := spec.Problem{File: file, What: "not valid TOML: " + strings.TrimPrefix(err.Error(), "toml: "), Want: "valid TOML"}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		p.Line, _ = at.Position()
	}
	doc.values = map[string]any{}
	doc.wrong = append(doc.wrong, p)
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
		what := strings.TrimPrefix(err.Error(), "json: ")
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			what = "it ends too early"
		}
		doc.wrong = append(doc.wrong, spec.Problem{File: file, Line: r.line(), What: "not valid JSON: " + what, Want: "valid JSON"})
		return
	}
	object, ok := v.(map[string]any)
	if !ok {
		doc.wrong = append(doc.wrong, spec.Problem{File: file, Line: 1, What: "is not an object", Want: "the keys of a spec in { }"})
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
