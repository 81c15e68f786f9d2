package risk

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"pawl/internal/spec"
)

// Overlap reports whether a path could match both globs. It is cautious: of the name of a folder or file it compares only
// the beginning and the end, up to the first special character and from the last one on. It ignores case, as some file
// systems do.
func Overlap(a, b string) bool {
	return slices.ContainsFunc(forms(strings.ToLower(spec.Tidy(a))), func(a string) bool {
		return slices.ContainsFunc(forms(strings.ToLower(spec.Tidy(b))), func(b string) bool {
			return strings.Contains(a+b, "{") || meet(strings.Split(a, "/"), strings.Split(b, "/"))
		})
	})
}

// meet reports whether two globs, by their segments, can match the same path.
func meet(a, b []string) bool {
	for len(a) > 0 && len(b) > 0 && a[0] != "**" && b[0] != "**" {
		if !alike(a[0], b[0]) {
			return false
		}
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] != "**" && b[len(b)-1] != "**" {
		if !alike(a[len(a)-1], b[len(b)-1]) {
			return false
		}
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	// If both have something left, one begins with **, which stands for any folders.
	return len(a) > 0 && len(b) > 0 || !slices.ContainsFunc(slices.Concat(a, b), func(s string) bool { return s != "**" })
}

// alike reports whether a name could match both segments.
func alike(a, b string) bool {
	begins := func(glob string) string { return glob[:len(glob)-len(strings.TrimLeftFunc(glob, plain))] }
	ends := func(glob string) string { return glob[len(strings.TrimRightFunc(glob, plain)):] }
	agree := func(a, b string, cut func(s, part string) bool) bool { return cut(a, b) || cut(b, a) }
	return agree(begins(a), begins(b), strings.HasPrefix) && agree(ends(a), ends(b), strings.HasSuffix)
}

func plain(r rune) bool { return !strings.ContainsRune(special, r) }

// forms returns a glob without braces for each of the alternatives. A glob that would have very many stays as it is.
func forms(glob string) (spellings []string) {
	word := &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: glob}}}
	if strings.Contains(glob, "..") || strings.Count(glob, "{") > 3 || len(glob) > 100 || !syntax.SplitBraces(word) {
		return []string{glob}
	}
	for w, err := range expand.BracesSeq(nil, word) {
		if err != nil {
			return []string{glob}
		}
		spellings = append(spellings, w.Lit())
	}
	return spellings
}

// within reports whether one of the globs certainly matches everything that a scope matches. It knows three forms of
// globs, folder/**, **/folder/** and **/*ending, and returns false if it is not certain.
func within(scope string, globs []string) bool {
	return !slices.ContainsFunc(forms(spec.Tidy(scope)), func(scope string) bool {
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
