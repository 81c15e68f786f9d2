package spec

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Keys returns all keys of the contract, dotted, in the order of its table: "verify.timeout". A key whose value is an
// object with the user's own names, such as agent.env, stands for all of them.
func Keys() []string { return slices.Clone(keys()) }

var keys = sync.OnceValue(func() []string { return KeysOf(Spec{}) })

// KeysOf returns the keys of a struct in its order, dotted. A list is one key, whatever its items are.
func KeysOf(target any) []string { return leaves(reflect.TypeOf(target), "") }

func leaves(t reflect.Type, key string) []string {
	var paths []string
	for i, name := range Fields(t) {
		field := t.Field(i).Type
		if _, isWritten := written[field]; field.Kind() == reflect.Struct && !isWritten && field != argvType {
			paths = append(paths, leaves(field, join(key, name))...)
		} else {
			paths = append(paths, join(key, name))
		}
	}
	return paths
}

// rank returns the position of a key in the contract's table. An unknown key comes after the keys beside it.
func rank(key string, paths []string) int {
	depth := -1
	parent := key[:strings.LastIndex(key, ".")+1]
	for i, candidate := range paths {
		if candidate == key || strings.HasPrefix(candidate, key+".") || strings.HasPrefix(key, candidate+".") || strings.HasPrefix(key, candidate+"[") {
			return i
		}
		if parent != "" && strings.HasPrefix(candidate, parent) {
			depth = i
		}
	}
	if depth < 0 {
		return len(paths)
	}
	return depth
}

// meant suggests the key that was meant: one beside it with a similar spelling, else one elsewhere of this name.
func meant(parent, name string, siblings, paths []string) string {
	if best := Alike(name, siblings); best != "" {
		return join(parent, best) + " (did you mean it?)"
	}
	for _, key := range paths {
		index := strings.LastIndex(key, ".")
		if fold(key[index+1:]) == fold(name) || fold(key) == fold(name) {
			if index < 0 {
				return key + ", at the top level (did you mean it?)"
			}
			return strings.ReplaceAll(key, ".", ": {") + ": …" + strings.Repeat("}", strings.Count(key, ".")) + " (did you mean it?)"
		}
	}
	return "one of " + strings.Join(siblings, ", ")
}

// Alike returns the name with the most similar spelling, "" if none is similar.
func Alike(name string, names []string) (best string) {
	distance := 1 + max(1, (len(name)+1)/3)
	for _, candidate := range names {
		if len(name) >= 4 && strings.HasPrefix(fold(candidate), fold(name)) {
			best, distance = candidate, 0
		}
		if d := edits(fold(name), fold(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

// fold makes minDelta, min_delta, min-delta and MINDELTA equal.
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(shorten(name)))
}

// shorten limits the length of a key in messages, because its author may have made it up.
func shorten(name string) string {
	if r := []rune(strings.ToValidUTF8(name, "\uFFFD")); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// edits returns the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
