// Package list has what package slices lacks: slices made from slices. A result is nil if it would be empty, because
// JSON differs between the two.
package list

// Map returns the results of a function for each value.
func Map[T, R any](values []T, of func(T) R) (results []R) {
	for _, v := range values {
		results = append(results, of(v))
	}
	return results
}

// Filter returns the values of which a function says true, in a new slice.
func Filter[T any](values []T, is func(T) bool) (some []T) {
	for _, v := range values {
		if is(v) {
			some = append(some, v)
		}
	}
	return some
}

// First returns the first value of which a function says true; found is false if there is none.
func First[T any](values []T, is func(T) bool) (first T, found bool) {
	for _, v := range values {
		if is(v) {
			return v, true
		}
	}
	return first, false
}

// Set returns a set of the values.
func Set[T comparable](values []T) map[T]bool {
	set := make(map[T]bool, len(values))
	for _, v := range values {
		set[v] = true
	}
	return set
}

// Last returns the last n values at most. They share the memory of the slice.
func Last[T any](values []T, n int) []T { return values[max(0, len(values)-n):] }
