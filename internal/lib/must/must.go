// Package must takes results whose errors can't happen, such as the JSON of plain values. If one does happen, pawl itself
// is wrong.
package must

// Have returns a value, and panics if there is an error.
func Have[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
