package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/spec"
)

// readTOML does for TOML what spec.YAML does for YAML.
func readTOML(text []byte) (object map[string]any, offsets map[string]int, wrong spec.Problems) {
	// The library follows any depth until the stack is full, which ends the process.
	if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{"))+bytes.Count(text, []byte(".")) > spec.MaxValues {
		return nil, nil, spec.Problems{spec.TooMany()}
	}
	offsets, duplicates, complete := tomlPlaces(text)
	if !complete {
		return nil, offsets, spec.Problems{spec.TooMany()}
	}
	object = map[string]any{}
	err := toml.Unmarshal(text, &object)
	if err == nil {
		return object, offsets, nil
	}
	p := spec.Problem{What: "not valid TOML: " + goWords().ReplaceAllString(err.Error(), ""), Want: "valid TOML"}
	var decodeErr *toml.DecodeError
	switch {
	case errors.As(err, &decodeErr):
		p.Line, _ = decodeErr.Position()
	case len(duplicates) > 0: // the library reports no line for this
		return nil, offsets, duplicates
	}
	return nil, offsets, spec.Problems{p}
}

// goWords matches the words in the library's messages that are Go's and not TOML's.
var goWords = lazyregexp.New(`^toml: |strconv\.[A-Za-z]+: parsing `)

// tomlPlaces returns the lines of the keys of a TOML document, which the library does not return with the values, and
// the keys that are given twice. complete is false if there are too many values.
func tomlPlaces(text []byte) (offsets map[string]int, duplicates spec.Problems, complete bool) {
	parser, lines := unstable.Parser{}, linesOf(text)
	parser.Reset(text)
	offsets = map[string]int{}
	table, seen, left := "", map[string]bool{}, spec.MaxValues
	note := func(key string, n *unstable.Node) {
		if n.Raw.Length > 0 {
			offsets[key] = lines.of(int(n.Raw.Offset))
		}
	}
	dotted := func(prefix string, names unstable.Iterator) string {
		for names.Next() {
			prefix = spec.Join(prefix, string(names.Node().Data))
			if _, ok := offsets[prefix]; !ok && prefix != "" {
				note(prefix, names.Node())
			}
		}
		return prefix
	}
	given := func(key string, names unstable.Iterator) {
		if seen[key] && names.Next() {
			line := lines.of(int(names.Node().Raw.Offset))
			duplicates = append(duplicates, spec.Problem{Line: line, Key: key, What: "is given twice", Want: "one of the two"})
		}
		seen[key] = true
	}
	var value func(key string, n *unstable.Node, depth int)
	value = func(key string, n *unstable.Node, depth int) {
		items := n.Children()
		for i := 0; depth < spec.MaxDepth && left > 0 && items.Next(); i++ {
			left--
			switch item := items.Node(); {
			case n.Kind == unstable.Array:
				note(fmt.Sprintf("%s[%d]", key, i), item)
				value(fmt.Sprintf("%s[%d]", key, i), item, depth+1)
			case item.Kind == unstable.KeyValue:
				fullKey := dotted(key, item.Key())
				given(fullKey, item.Key())
				value(fullKey, item.Value(), depth+1)
			}
		}
	}
	for left > 0 && parser.NextExpression() {
		left--
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
	return offsets, duplicates, left > 0
}

// readJSON does for JSON what spec.YAML does for YAML.
func readJSON(text []byte) (object map[string]any, offsets map[string]int, wrong spec.Problems) {
	lines := linesOf(text)
	offsets = map[string]int{}
	v, end, err := spec.JSON(text, func(key string, offset int) {
		if key != "" {
			offsets[key] = lines.of(offset)
		}
	}, func(key string, offset int) {
		wrong = append(wrong, spec.Problem{Line: lines.of(offset), Key: key, What: "is given twice", Want: "one of the two"})
	})
	object, ok := v.(map[string]any)
	switch {
	case errors.Is(err, spec.ErrTooMany):
		return nil, offsets, append(wrong, spec.TooMany())
	case err != nil:
		problem, want := strings.TrimPrefix(err.Error(), "json: "), "valid JSON"
		const blank = " \t\r\n"
		read := min(end, len(text))
		readPart, rest := bytes.TrimRight(text[:read], blank+"]}"), bytes.TrimLeft(text[read:], blank+",")
		switch {
		case len(bytes.TrimSpace(text)) == 0:
			problem = "it is empty"
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			problem = "it ends too early"
		case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")), bytes.HasPrefix(rest, []byte("#")):
			problem, want = "it has comments", "no comments, which YAML and TOML have"
		case bytes.HasSuffix(readPart, []byte(",")), bytes.HasPrefix(bytes.TrimLeft(text[read:], blank), []byte(",")) && bytes.ContainsAny(rest[:min(1, len(rest))], "]}"):
			problem, want = "a comma stands before the closing bracket", "no comma after the last one"
		}
		return nil, offsets, append(wrong, spec.Problem{Line: lines.of(end), What: "not valid JSON: " + problem, Want: want})
	case !ok:
		return nil, offsets, append(wrong, spec.Problem{Line: 1, What: "is not an object", Want: "the keys of a spec in { }"})
	}
	return object, offsets, wrong
}
