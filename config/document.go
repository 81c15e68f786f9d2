package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/spec"
)

// document is a spec as it was written: its values in the form that spec.FromMap reads, and the position of each key.
type document struct {
	values map[string]any
	at     map[string]position // by dotted key; "scope[2]" for the items of a list
	wrong  spec.Problems
	lost   bool // the file could not be read, so its missing keys are unknown
}

// newDocument returns a document without values. Problems are those of source.
func newDocument(source string) *document {
	return &document{values: map[string]any{}, at: map[string]position{"": {source: source}}}
}

// read reads a file of some extension, as YAML if that is not another format's.
func (d *document) read(text []byte, file, ext string) {
	var values map[string]any
	var offsets map[string]int
	var wrong spec.Problems
	switch ext {
	case ".toml":
		values, offsets, wrong = readTOML(text)
	case ".json":
		values, offsets, wrong = readJSON(text)
	default:
		values, offsets, wrong = spec.YAML(text, false)
	}
	for key, line := range offsets {
		d.at[key] = position{file, line}
	}
	if values == nil {
		d.unread(wrong...)
		return
	}
	d.values, d.wrong = values, append(d.wrong, wrong...)
}

// unread records why the file could not be read.
func (d *document) unread(problems ...spec.Problem) {
	d.values, d.lost = map[string]any{}, true
	d.wrong = append(d.wrong, problems...)
}

// position is where a value was written. Only the file has lines.
type position struct {
	source string // the file, --set or the environment variable
	line   int
}

// lines are the offsets of the line ends of a text.
type lines []int

func linesOf(text []byte) (ends lines) {
	for i, c := range text {
		if c == '\n' {
			ends = append(ends, i)
		}
	}
	return ends
}

// of returns the line of an offset, from 1.
func (l lines) of(offset int) int {
	lineBreaks, _ := slices.BinarySearch(l, offset)
	return 1 + lineBreaks
}

// put sets a key, given by its parts, to a value that is not from the file. It creates missing objects on the way.
func (d *document) put(parts []string, value any, source string) {
	key := ""
	for _, part := range parts {
		key = spec.Join(key, part)
	}
	object, outer := d.values, ""
	for _, part := range parts[:len(parts)-1] {
		outer = spec.Join(outer, part)
		switch next := object[part].(type) {
		case map[string]any:
			object = next
		case nil:
			made := map[string]any{}
			object[part] = made
			object = made
			if _, stands := d.at[outer]; !stands {
				d.at[outer] = position{source: source}
			}
		default:
			d.wrong = append(d.wrong, spec.Problem{
				File: source, Key: key, What: fmt.Sprintf("can't be set: %s is a value, not an object", outer), Want: "set " + outer,
			})
			return
		}
	}
	object[parts[len(parts)-1]] = value
	for known := range d.at {
		if known == key || strings.HasPrefix(known, key+".") || strings.HasPrefix(known, key+"[") {
			delete(d.at, known)
		}
	}
	if value != nil { // an empty value restores the default, and the position in the file
		d.at[key] = position{source: source}
	}
}

// locate returns the position of a key, or else that of what contains it.
func (d *document) locate(key string) position {
	for key != "" {
		if p, ok := d.at[key]; ok {
			return p
		}
		key = key[:max(strings.LastIndex(key, "."), strings.LastIndex(key, "["), 0)]
	}
	return d.at[""]
}

// pair splits "key=value", which came with a flag. If it has another form, that is a problem.
func (d *document) pair(flag, set, example string) (key []string, value string, ok bool) {
	if key, value, ok = path(set); !ok {
		d.wrong = append(d.wrong, spec.Problem{File: flag, What: fmt.Sprintf("%q is not of the form key=value", set), Want: flag + " " + example})
	}
	return key, value, ok
}

// keyPart matches a part of a dotted key, with what comes after it.
var keyPart = lazyregexp.New(`^(?:"([^"]+)" *|([^".=][^.=]*))([.=])`)

// path splits a dotted key and its value. A part in quotes may contain anything: policies."v1.2".maxFiles=3.
func path(text string) (parts []string, value string, ok bool) {
	for {
		text = strings.TrimLeft(text, " ")
		m := keyPart().FindStringSubmatch(text)
		if m == nil || m[1]+strings.TrimSpace(m[2]) == "" {
			return nil, "", false
		}
		parts, text = append(parts, m[1]+strings.TrimSpace(m[2])), text[len(m[0]):]
		if m[3] == "=" {
			return parts, text, true
		}
	}
}

// problems adds positions, sorts by line (problems without one come last), and limits the number.
func (d *document) problems(found spec.Problems) spec.Problems {
	problems := slices.Concat(d.wrong, found)
	for i, p := range problems {
		switch place := d.locate(p.Key); {
		case p.File != "":
		case p.Line > 0: // a reader saw it, and it reads the file only
			problems[i].File = d.at[""].source
		default:
			problems[i].File, problems[i].Line = place.source, place.line
		}
	}
	slices.SortStableFunc(problems, func(a, b spec.Problem) int {
		return cmp.Compare(uint(a.Line-1), uint(b.Line-1)) // problems without a line come last
	})
	return problems.Capped()
}

// Fragment returns the JSON object of a list of "key=value", in the syntax of Open's sets. Problems name the flag
// with which they came. The caller checks the meaning of the keys.
func Fragment(flag string, sets []string) (json.RawMessage, error) {
	doc := newDocument(flag)
	for _, set := range sets {
		if key, value, ok := doc.pair(flag, set, "key=value"); ok {
			doc.put(key, text(value), flag)
		}
	}
	if problems := doc.problems(nil); len(problems) > 0 {
		return nil, problems
	}
	return json.Marshal(doc.values)
}
