package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Parse reads a spec from one JSON object, as a workflow gets it. It is FromMap for a document
// that is still text: what is not JSON, is not one object, or gives a key twice is a problem as
// well. Numbers keep the decimals that they were written with.
func Parse(doc []byte) (Spec, error) {
	var problems Problems
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	tree, err := value(dec, "", 0, &problems)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more follows after the object")
		}
	}
	if err != nil {
		what := strings.TrimPrefix(err.Error(), "json: ")
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			what = "the document ends too early"
		}
		line := 1 + bytes.Count(doc[:min(int(dec.InputOffset()), len(doc))], []byte("\n"))
		return Spec{}, Problems{{What: "not valid JSON: " + what, Want: "one JSON object with the keys of a spec", Line: line}}
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return Spec{}, Problems{{What: "the document is " + show(tree), Want: "one JSON object with the keys of a spec"}}
	}
	return fromMap(object, problems)
}

// maxDepth is deeper than any spec; a document beyond it would only exhaust the stack.
const maxDepth = 32

// value reads one JSON value, noting keys that are given twice.
func value(dec *json.Decoder, key string, depth int, problems *Problems) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		object := map[string]any{}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			at := join(key, name.(string)) // the decoder lets nothing else be a key
			v, err := value(dec, at, depth+1, problems)
			if err != nil {
				return nil, err
			}
			if _, twice := object[name.(string)]; twice {
				problems.add(at, "is given twice", "one of the two")
			}
			object[name.(string)] = v
		}
		_, err = dec.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := value(dec, fmt.Sprintf("%s[%d]", key, len(list)), depth+1, problems)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = dec.Token()
		return list, err
	}
	return t, nil
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// FromMap reads a spec from a document that was parsed already, from YAML, TOML or JSON: maps
// with string keys, lists, strings, booleans and numbers of any of Go's types. It fills in the
// defaults, checks everything, and reports all that is wrong at once, as Problems. A key whose
// value is null counts as not given.
//
// Keys are case-sensitive: a reader that folds them (viper does) must not stand in between.
func FromMap(doc map[string]any) (Spec, error) { return fromMap(doc, nil) }

func fromMap(doc map[string]any, problems Problems) (Spec, error) {
	s := Defaults()
	decode(doc, &s, &problems)
	for _, p := range s.check() {
		if !problems.covers(p.Key) {
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		slices.SortStableFunc(problems, func(a, b Problem) int { return rank(a.Key) - rank(b.Key) })
		return Spec{}, problems
	}
	return s, nil
}
