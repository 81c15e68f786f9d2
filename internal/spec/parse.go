package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// Parse reads a spec from one JSON object, as a workflow gets it. It is FromMap for a document
// that is still text: what is not JSON, is not one object, or gives a key twice is a problem as
// well. Numbers keep the decimals that they were written with.
func Parse(doc []byte) (Spec, error) {
	s := Defaults()
	if err := Fill(doc, &s, func() Problems { return s.check() }); err != nil {
		return Spec{}, err
	}
	return s, nil
}

// Fill reads one JSON object over target, which holds the defaults, and has it checked, as Parse does
// for a Spec. It returns everything that is wrong, as Problems.
func Fill(doc []byte, target any, check func() Problems) error {
	var problems Problems
	tree, at, err := read(doc, &problems)
	if err != nil {
		line := 1 + bytes.Count(doc[:min(at, len(doc))], []byte("\n"))
		what := strings.TrimPrefix(err.Error(), "json: ")
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			what = "the document ends too early"
		}
		return Problems{{What: "not valid JSON: " + what, Want: "one JSON object with the keys of a spec", Line: line}}
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return Problems{{What: "the document is " + Show(tree), Want: "one JSON object with the keys of a spec"}}
	}
	return FillMap(object, target, problems, check).Err()
}

// read is JSON, with the keys that are given twice as problems.
func read(doc []byte, problems *Problems) (tree any, at int, err error) {
	return JSON(doc, func(string, int) {}, func(key string, _ int) { problems.Add(key, "is given twice", "one of the two") })
}

// JSON reads one JSON value and nothing after it, token by token: encoding/json would lose keys that are given twice.
// It calls met with the key of each value, and twice with each key that its object has already, both with how many
// bytes it has read by then. at is how many it has read in all. An error says what is no JSON, or is ErrTooMany.
func JSON(text []byte, met, twice func(key string, at int)) (value any, at int, err error) {
	r := reader{json.NewDecoder(bytes.NewReader(text)), MaxValues, met, twice}
	r.dec.UseNumber()
	value, err = r.value("", 0)
	if err == nil {
		if _, more := r.dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more follows after the object")
		}
	}
	return value, r.at(), err
}

// ErrTooMany is what JSON returns of a document that goes on and on.
var ErrTooMany = fmt.Errorf("it holds more than %d values", MaxValues)

type reader struct {
	dec        *json.Decoder
	left       int // values that may still be read
	met, twice func(key string, at int)
}

func (r *reader) at() int { return int(r.dec.InputOffset()) }

// The bounds of a document, far beyond those of any spec: one beyond them would only exhaust the
// stack, or the time that a workflow has to read its input.
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
			name, _ := t.(string) // the decoder lets nothing else be a key
			full := Join(key, name)
			if _, twice := object[name]; twice {
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

// Join is the key of a name in an object, as Problems have it: dotted, and not longer than can be
// read where somebody made the name up.
func Join(key, name string) string { return join(key, shorten(name)) }

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// FromMap reads a spec from a document that was parsed already, from YAML, TOML or JSON: of map[string]any,
// []any, string, bool, json.Number, int, int64 and float64. It fills in the
// defaults, checks everything, and reports all that is wrong at once, as Problems. A key whose
// value is null counts as not given.
//
// Keys are case-sensitive: a reader that folds them (viper does) must not stand in between.
func FromMap(doc map[string]any) (Spec, error) {
	s := Defaults()
	if problems := FillMap(doc, &s, nil, func() Problems { return s.check() }); len(problems) > 0 {
		return Spec{}, problems
	}
	return s, nil
}

// FillMap is Fill for a document that was parsed already. known is what is known to be wrong with it;
// it comes with the rest, in the order of the keys.
func FillMap(doc map[string]any, target any, known Problems, check func() Problems) Problems {
	all := KeysOf(reflect.ValueOf(target).Elem().Interface())
	Decode(doc, target, &known)
	for _, p := range check() {
		if !known.Covers(p.Key) {
			known.Add(p.Key, p.What, p.Want)
		}
	}
	slices.SortStableFunc(known, func(a, b Problem) int { return rank(a.Key, all) - rank(b.Key, all) })
	return known
}
