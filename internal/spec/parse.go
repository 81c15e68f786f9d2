package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Parse reads a spec from one JSON object, the form of a workflow's input. It does what FromMap does, for a document
// that is not parsed yet. It also reports text that is not JSON or not one object, and keys that are given twice.
// Numbers keep their decimals.
func Parse(doc []byte) (Spec, error) {
	return Fill(doc, Defaults(), (*Spec).check)
}

// Fill returns the defaults with one JSON object over them, as Parse does for a Spec. The error has all problems, also
// those that check finds, as Problems.
func Fill[T any](doc []byte, defaults T, check func(*T) Problems) (filled T, err error) {
	var problems Problems
	var zero T
	tree, offset, err := read(doc, &problems)
	if err != nil {
		line := 1 + bytes.Count(doc[:min(offset, len(doc))], []byte("\n"))
		text := strings.TrimPrefix(err.Error(), "json: ")
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			text = "the document ends too early"
		}
		return zero, Problems{{What: "not valid JSON: " + text, Want: "one JSON object with the keys of a spec", Line: line}}
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return zero, Problems{{What: "the document is " + Show(tree), Want: "one JSON object with the keys of a spec"}}
	}
	filled, problems = FillMap(object, defaults, problems, check)
	if len(problems) > 0 {
		return zero, problems.Err()
	}
	return filled, nil
}

// read is JSON, with a problem for each key that is given twice.
func read(doc []byte, problems *Problems) (tree any, offset int, err error) {
	return JSON(doc, func(string, int) {}, func(key string, _ int) { problems.Add(key, "is given twice", "one of the two") })
}

// JSON reads one JSON value and nothing after it, token by token, because encoding/json would drop keys that are
// given twice. It calls met with the key of each value, and onDuplicate with each key that its object already has; the
// second argument is how many bytes it has read so far. offset is how many bytes it has read in all. The error says why
// the text is not JSON, or is ErrTooMany.
func JSON(text []byte, met, onDuplicate func(key string, offset int)) (value any, offset int, err error) {
	r := reader{json.NewDecoder(bytes.NewReader(text)), MaxValues, met, onDuplicate}
	r.dec.UseNumber()
	value, err = r.value("", 0)
	if err == nil {
		if _, trailing := r.dec.Token(); !errors.Is(trailing, io.EOF) {
			err = errors.New("more follows after the object")
		}
	}
	return value, r.at(), err
}

// ErrTooMany is the error of JSON for a document with too many values.
var ErrTooMany = fmt.Errorf("it holds more than %d values", MaxValues)

// TooMany returns the problem of a document with too many values.
func TooMany() Problem {
	return Problem{What: fmt.Sprintf("holds more than %d values", MaxValues), Want: "a spec that a person can read"}
}

type reader struct {
	dec        *json.Decoder
	left       int // how many more values may be read
	met, twice func(key string, offset int)
}

func (r *reader) at() int { return int(r.dec.InputOffset()) }

// The limits of a document, far above those of any spec. A larger document would only use up the stack, or the time
// that a workflow has to read its input.
const (
	MaxDepth  = 32
	MaxValues = 20_000
)

func (r *reader) value(key string, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("it is nested more than %d deep", MaxDepth)
	}
	if r.left--; r.left <= 0 {
		return nil, ErrTooMany
	}
	t, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	r.met(key, r.at())
	switch t {
	case json.Delim('{'):
		object := map[string]any{}
		for r.dec.More() {
			t, err := r.dec.Token()
			if err != nil {
				return nil, err
			}
			name, _ := t.(string) // the decoder accepts only strings as keys
			full := Join(key, name)
			if _, duplicate := object[name]; duplicate {
				r.twice(full, r.at())
			}
			if object[name], err = r.value(full, depth+1); err != nil {
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

// Join returns the key of a name in an object, as Problems have it: dotted, and with the name shortened, because
// somebody may have made it up.
func Join(key, name string) string { return join(key, shorten(name)) }

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// FromMap reads a spec from a document that is already parsed, from YAML, TOML or JSON, with values of the types
// map[string]any, []any, string, bool, json.Number, int, int64 and float64. It fills in the defaults, checks
// everything, and returns all problems at once, as Problems. A key with the value null counts as not given.
//
// Keys are case-sensitive. A reader that changes their case (viper does) must not be used before it.
func FromMap(doc map[string]any) (Spec, error) {
	s, problems := FillMap(doc, Defaults(), nil, (*Spec).check)
	if len(problems) > 0 {
		return Spec{}, problems
	}
	return s, nil
}

// FillMap is Fill for a document that is already parsed. earlier are problems that are already known; they are returned
// with the others, in the order of the keys.
func FillMap[T any](doc map[string]any, defaults T, earlier Problems, check func(*T) Problems) (T, Problems) {
	filled := defaults
	Decode(doc, &filled, &earlier)
	for _, p := range check(&filled) {
		if !earlier.Covers(p.Key) {
			earlier.Add(p.Key, p.What, p.Want)
		}
	}
	earlier.sort(KeysOf(defaults))
	return filled, earlier
}
