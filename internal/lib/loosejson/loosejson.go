// Package loosejson reads JSON that other programs and services write. What is missing, or has another type than
// expected, is empty; the rest counts all the same. Start at Object.
package loosejson

import (
	"encoding/json"
	"errors"
)

// Object is a JSON object.
type Object map[string]json.RawMessage

// Decode reads JSON. If the text is not well formed, the result is the zero value.
func Decode[V any](raw []byte) V {
	var v, none V
	if len(raw) == 0 { // nothing is there, which is often so
		return none
	}
	err := json.Unmarshal(raw, &v)
	if _, mistyped := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !mistyped {
		return none
	}
	return v
}

// Text returns the first text with one of these names that is not empty.
func (o Object) Text(names ...string) string {
	for _, name := range names {
		if text := Decode[string](o[name]); text != "" {
			return text
		}
	}
	return ""
}

// At returns the object with a name, and List the objects in a list.
func (o Object) At(name string) Object     { return Decode[Object](o[name]) }
func (o Object) List(name string) []Object { return Decode[[]Object](o[name]) }

// Has reports whether there is a value other than null.
func (o Object) Has(name string) bool { return o[name] != nil && string(o[name]) != "null" }

// Is, Int and Count return a truth value, a whole number and a number as Count limits it; Raw the JSON of any value.
func (o Object) Is(name string) bool     { return Decode[bool](o[name]) }
func (o Object) Int(name string) int     { return Decode[int](o[name]) }
func (o Object) Raw(name string) string  { return string(o[name]) }
func (o Object) Count(name string) int64 { return Count(Decode[int64](o[name])) }

// maxCount is more tokens or calls than anything uses. A higher number is a mistake or a lie, and sums must not overflow.
const maxCount = int64(1e12)

// Count limits a number that another program reported, or a sum of such numbers, to a possible one.
func Count(n int64) int64 { return max(0, min(n, maxCount)) }
