package assess

import (
	"slices"
	"strings"

	"pawl/internal/list"
	"pawl/internal/spec"
)

// maxForms is the maximum number of globs for which one glob with braces may stand. A glob that stands for more
// overlaps with every glob.
const maxForms = 64

// Overlap reports whether a path could match both globs. It is cautious: if it can't tell, for example because of a
// class of characters, it returns true. It ignores case, as some file systems do.
func Overlap(a, b string) bool {
	as, all := forms(strings.ToLower(spec.Tidy(a)))
	bs, every := forms(strings.ToLower(spec.Tidy(b)))
	if !all || !every {
		return true
	}
	return slices.ContainsFunc(as, func(a string) bool {
		return slices.ContainsFunc(bs, func(b string) bool {
			return meet(strings.Split(a, "/"), strings.Split(b, "/"), func(s string) bool { return s == "**" }, segments)
		})
	})
}

// forms returns a glob without braces for each of the alternatives; ok is false if there are too many.
func forms(glob string) (all []string, ok bool) {
	todo := []string{glob}
	for len(todo) > 0 {
		if len(all)+len(todo) > maxForms {
			return nil, false
		}
		next := todo[0]
		todo = todo[1:]
		open, end, parts := braces(next)
		if open < 0 {
			all = append(all, next)
			continue
		}
		todo = append(todo, list.Map(parts, func(part string) string { return next[:open] + part + next[end:] })...)
	}
	return all, true
}

// braces finds the first group of alternatives in a glob: where it begins and ends, and its parts.
func braces(glob string) (open, end int, parts []string) {
	open = -1
	depth, from := 0, 0
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case c == '\\':
			i++
		case c == '{':
			if depth++; depth == 1 {
				open, from = i, i+1
			}
		case c == ',' && depth == 1:
			parts, from = append(parts, glob[from:i]), i+1
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				return open, i + 1, append(parts, glob[from:i])
			}
		}
	}
	return -1, 0, nil
}

// segments reports whether a name could match both segments of globs.
func segments(a, b string) bool {
	return meet(tokens(a), tokens(b), func(t string) bool { return t == "*" }, func(a, b string) bool { return a == "?" || b == "?" || a == b })
}

// tokens splits a segment of a glob: "*" for any text, "?" for any character, and every other character for itself,
// with a backslash in front if it is special.
func tokens(segment string) (all []string) {
	for i := 0; i < len(segment); {
		switch c := segment[i]; c {
		case '*':
			if len(all) == 0 || all[len(all)-1] != "*" {
				all = append(all, "*")
			}
			i++
		case '[':
			end := strings.IndexByte(segment[i:], ']')
			if end < 0 {
				return append(all, "*")
			}
			all = append(all, "?", "*") // a class that begins with ] ends later
			i += end + 1
		case '\\':
			i++
			if i < len(segment) {
				all = append(all, `\`+segment[i:i+1])
				i++
			}
		case '?':
			all = append(all, "?", "*") // one character may be several bytes
			i++
		default:
			all = append(all, `\`+segment[i:i+1])
			i++
		}
	}
	return all
}

// meet reports whether two patterns can stand for the same sequence. wild reports whether an element stands for any
// number of elements. same compares two other elements.
func meet(a, b []string, wild func(string) bool, same func(a, b string) bool) bool {
	// next[j] says whether a[i+1:] and b[j:] meet; row[j] says it of a[i:].
	next := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		row := make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				row[j] = true
			case i < len(a) && wild(a[i]):
				row[j] = next[j] || j < len(b) && row[j+1]
			case j < len(b) && wild(b[j]):
				row[j] = row[j+1] || i < len(a) && next[j]
			case i < len(a) && j < len(b):
				row[j] = next[j+1] && same(a[i], b[j])
			}
		}
		next = row
	}
	return next[0]
}

// within reports whether one of the globs certainly matches everything that a scope matches. It knows three forms of
// globs, folder/**, **/folder/** and **/*ending, and returns false if it is not certain.
func within(scope string, globs []string) bool {
	scopes, ok := forms(spec.Tidy(scope))
	if !ok {
		return false
	}
	return !slices.ContainsFunc(scopes, func(scope string) bool {
		return !slices.ContainsFunc(globs, func(glob string) bool { return inside(scope, spec.Tidy(glob)) })
	})
}

func inside(scope, glob string) bool {
	if scope == glob {
		return true
	}
	parts := strings.Split(scope, "/")
	fixed := parts[:len(parts)-1] // folders whose names are certain
	if i := slices.IndexFunc(fixed, func(s string) bool { return strings.ContainsAny(s, special) }); i >= 0 {
		fixed = fixed[:i]
	}
	folder, isFolder := strings.CutSuffix(glob, "/**")
	anywhere, isAnywhere := strings.CutPrefix(glob, "**/")
	switch {
	case isFolder && !strings.ContainsAny(folder, special):
		return strings.HasPrefix(strings.Join(fixed, "/")+"/", folder+"/")
	case isFolder && isAnywhere:
		name := strings.TrimPrefix(folder, "**/")
		return !strings.ContainsAny(name, special+"/") && slices.Contains(fixed, name)
	case isAnywhere:
		ending, isEnding := strings.CutPrefix(anywhere, "*")
		last := parts[len(parts)-1]
		return isEnding && !strings.ContainsAny(ending, special+"/") && strings.HasSuffix(last, ending) && !strings.Contains(last, "[")
	}
	return false
}

// special has the special characters of globs.
const special = `*?[]{}\`
