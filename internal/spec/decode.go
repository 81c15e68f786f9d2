package spec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"pawl/internal/metric"
	"pawl/internal/spec/agents"
)

// Decode writes the document over target, a pointer to a struct with the defaults. A key of the document replaces its
// default, even with a zero; other keys keep theirs. Decode uses the JSON tags of the struct, so that there is only
// one list of keys. It adds a problem for each unknown key and for each value of a wrong type. It keeps the object of
// a json.RawMessage as it is; another package checks its keys.
func Decode(doc map[string]any, target any, problems *Problems) {
	v := reflect.ValueOf(target).Elem()
	decoder{KeysOf(v.Interface()), problems}.object(v, doc, "")
}

// decoder has all keys that the document may have.
type decoder struct {
	keys     []string
	problems *Problems
}

var (
	durationType = reflect.TypeFor[Duration]()
	argvType     = reflect.TypeFor[Argv]()
	rawType      = reflect.TypeFor[json.RawMessage]()
)

// written has the types whose values are written as one text or number: what that is, and how it is read.
var written = map[reflect.Type]struct {
	is   string
	read func(raw any) (value any, err error)
}{
	durationType: {`a duration such as "30s", "10m" or "1h30m"`, func(raw any) (any, error) {
		text, _ := raw.(string)
		length, err := time.ParseDuration(text)
		return Duration(length), err
	}},
	reflect.TypeFor[Size](): {`a size such as "512MiB" or "2GiB"`, func(raw any) (any, error) {
		text, _ := raw.(string)
		return ParseSize(text)
	}},
	reflect.TypeFor[metric.Decimal](): {"a number", func(raw any) (any, error) { return number(raw) }},
	reflect.TypeFor[metric.Threshold](): {`a number, or a percentage such as "2%"`, func(raw any) (any, error) {
		if text, ok := raw.(string); ok {
			return metric.ParseThreshold(text)
		}
		n, err := number(raw)
		return metric.Threshold{Value: n}, err
	}},
}

// forms has the kinds whose values are of one type in a document: that type, and what it is in words.
var forms = map[reflect.Kind]struct {
	of reflect.Type
	is string
}{
	reflect.String: {reflect.TypeFor[string](), "a string"},
	reflect.Bool:   {reflect.TypeFor[bool](), "true or false"},
	reflect.Struct: {reflect.TypeFor[map[string]any](), "an object with keys of its own"},
	reflect.Map:    {reflect.TypeFor[map[string]any](), "an object"},
}

// Fields returns the keys of a struct's fields, in its order. All callers share the result.
func Fields(t reflect.Type) []string {
	if cached, ok := fieldsOf.Load(t); ok {
		return cached.([]string)
	}
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	fieldsOf.Store(t, names)
	return names
}

var fieldsOf sync.Map // the fields of each reflect.Type that was asked for

// valueOf returns the value of a key of a struct.
func valueOf(target any, key string) reflect.Value {
	v := reflect.ValueOf(target)
	for name := range strings.SplitSeq(key, ".") {
		v = v.Field(slices.Index(Fields(v.Type()), name))
	}
	return v
}

// wrapped returns how a text is written as an object of a type, for a person who wrote only the text; "" if nothing says
// for which of its keys the text is.
func wrapped(t reflect.Type, text, key string) string {
	if t.Kind() != reflect.Struct || text == "" || len(text) > longestExample {
		return ""
	}
	names := Fields(t)
	if slices.Contains(names, "use") {
		if agent := Alike(text, agents.Uses()); agent != "" {
			return fmt.Sprintf("%s: {use: %s}", lastName(key), agent)
		}
	}
	for _, name := range []string{"command", "path"} {
		if slices.Contains(names, name) {
			return fmt.Sprintf("%s: {%s: %s}", lastName(key), name, Show(text))
		}
	}
	return ""
}

// longestExample is the most bytes of a wrong value that an example repeats: Show shortens longer ones.
const longestExample = 60

// lastName returns the last part of a key.
func lastName(key string) string { return key[strings.LastIndex(key, ".")+1:] }

func (d decoder) object(v reflect.Value, doc map[string]any, key string) {
	names := Fields(v.Type())
	for i, name := range names {
		if raw, given := doc[name]; given && raw != nil {
			d.set(v.Field(i), raw, join(key, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if d.problems.full() {
			return // guessing the intended key takes too long for thousands of keys
		}
		if !slices.Contains(names, name) {
			d.problems.Add(Join(key, name), "is not a key of a spec", meant(key, name, names, d.keys))
		}
	}
}

// set writes one value of a document, or adds a problem with it.
func (d decoder) set(v reflect.Value, raw any, key string) {
	wrong := func(want string) { d.problems.Add(key, "is "+Show(raw), want) }
	if form, ok := written[v.Type()]; ok {
		value, err := form.read(raw)
		if err != nil {
			wrong(form.is)
			return
		}
		v.Set(reflect.ValueOf(value))
		return
	}
	switch v.Type() {
	case rawType:
		if _, ok := raw.(map[string]any); !ok {
			wrong("an object with keys of its own")
			return
		}
		text, err := json.Marshal(plain(raw))
		if err != nil {
			wrong("an object that JSON can have")
			return
		}
		v.SetBytes(text)
		return
	case argvType:
		var command Argv
		if _, ok := raw.(string); ok {
			d.set(reflect.ValueOf(&command.Shell).Elem(), raw, key)
		} else if _, ok := raw.([]any); ok {
			d.set(reflect.ValueOf(&command.List).Elem(), raw, key)
		} else {
			wrong(`a list such as ["./agent.sh", "--fast"], or one string for the shell`)
		}
		v.Set(reflect.ValueOf(command))
		return
	}
	if form, ok := forms[v.Kind()]; ok && reflect.TypeOf(raw) != form.of {
		want := form.is
		switch raw := raw.(type) {
		case bool, json.Number: // YAML takes a bare word for one
			if v.Kind() == reflect.String {
				want += fmt.Sprintf(` in quotes, such as "%v"`, raw)
			}
		case string:
			want = cmp.Or(wrapped(v.Type(), raw, key), want)
		}
		wrong(want)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		problems := len(*d.problems)
		d.set(target.Elem(), raw, key)
		if len(*d.problems) == problems {
			v.Set(target)
		}
	case reflect.String:
		if !utf8.ValidString(raw.(string)) {
			d.problems.Add(key, "is not valid UTF-8", "text in UTF-8")
			return
		}
		v.SetString(raw.(string))
	case reflect.Bool:
		v.SetBool(raw.(bool))
	case reflect.Int, reflect.Int64:
		n, ok := integer(raw)
		if !ok || v.OverflowInt(n) {
			want := "a whole number"
			if _, text := raw.(string); !text && strings.Trim(fmt.Sprint(raw), "-0123456789") == "" { // it is one
				want = "a number that is not so large"
			}
			wrong(want)
			return
		}
		v.SetInt(n)
	case reflect.Struct:
		d.object(v, raw.(map[string]any), key)
	case reflect.Slice:
		list, ok := raw.([]any)
		if text, single := raw.(string); single && text != "" && len(text) <= longestExample && v.Type().Elem().Kind() == reflect.String {
			wrong(fmt.Sprintf("%s: [%s]", lastName(key), Show(text)))
			return
		}
		if !ok {
			wrong(map[reflect.Kind]string{reflect.String: `a list of strings, such as ["one", "two"]`, reflect.Struct: "a list of objects"}[v.Type().Elem().Kind()])
			return
		}
		slice := reflect.MakeSlice(v.Type(), len(list), len(list))
		for i, item := range list {
			d.set(slice.Index(i), orEmpty(item), fmt.Sprintf("%s[%d]", key, i))
		}
		v.Set(slice)
	case reflect.Map:
		doc := raw.(map[string]any)
		if len(doc) == 0 {
			v.SetZero()
			return
		}
		m := reflect.MakeMapWithSize(v.Type(), len(doc))
		for _, name := range slices.Sorted(maps.Keys(doc)) {
			if !utf8.ValidString(name) {
				d.problems.Add(Join(key, name), "has a name that is not valid UTF-8", "text in UTF-8")
			}
			item := reflect.New(v.Type().Elem()).Elem()
			d.set(item, orEmpty(doc[name]), Join(key, name))
			m.SetMapIndex(reflect.ValueOf(name), item)
		}
		v.Set(m)
	default:
		panic("spec: no reader for " + v.Type().String()) // a field of a type that set does not know
	}
}

// plain returns a value in types that JSON can be written from. Numbers keep their form.
func plain(raw any) any {
	if doc, ok := raw.(map[string]any); ok {
		values := make(map[string]any, len(doc))
		for name, v := range doc {
			values[name] = plain(v)
		}
		return values
	}
	if list, ok := raw.([]any); ok {
		values := make([]any, len(list))
		for i, v := range list {
			values[i] = plain(v)
		}
		return values
	}
	if n, ok := raw.(json.Number); ok && !json.Valid([]byte(n)) { // YAML allows +5 and .5, JSON does not
		if d, err := number(n); err == nil {
			return json.Number(d.String())
		}
	}
	return raw
}

// orEmpty replaces a null inside a list or map, which would be accepted as a value of any type.
func orEmpty(v any) any {
	if v == nil {
		return struct{}{}
	}
	return v
}

// number returns a number of any type, or of a text.
func number(raw any) (metric.Decimal, error) {
	switch v := raw.(type) {
	case json.Number, string, int, int64:
		return metric.ParseDecimal(fmt.Sprint(v))
	case float64:
		return metric.ParseDecimal(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return metric.Decimal{}, errors.New("it is no number")
}

// integer returns a whole number of any type. 3.0 is one; 3.5 and "3" are not.
func integer(raw any) (int64, bool) {
	const exact = 1 << 53
	d, err := number(raw)
	if _, text := raw.(string); text || err != nil {
		return 0, false
	}
	if n, err := strconv.ParseInt(d.String(), 10, 64); err == nil {
		return n, true
	}
	f := d.Float()
	return int64(f), f == math.Trunc(f) && math.Abs(f) <= exact
}
