package secretscan

import "maps"

// Secret is a text in a change that looks like a credential. It does not contain the credential, because violations
// are shown, recorded and pushed.
type Secret struct {
	Path string
	Line int    // 0 for the name of the file itself
	Kind string // "a GitHub token"
}

// Scan looks for secrets in the lines of a change. A secret that only moves, because the change also removes it
// elsewhere, is not new.
type Scan struct {
	found []foundSecret
	gone  map[string]int
}

type foundSecret struct {
	Secret
	text string
}

// maxSecrets limits how many secrets of one change are kept.
const maxSecrets = 1000

// Line adds one line, or a part of one, that the change adds or removes.
func (s *Scan) Line(path string, n int, added bool, text string) {
	for _, f := range Find(text) {
		switch {
		case !added && len(s.gone) < maxSecrets:
			if s.gone == nil {
				s.gone = map[string]int{}
			}
			s.gone[f.text]++
		case added && len(s.found) < maxSecrets:
			s.found = append(s.found, foundSecret{Secret{Path: path, Line: n, Kind: f.Kind}, f.text})
		}
	}
}

// Secrets returns the new secrets, in the order of the change.
func (s *Scan) Secrets() []Secret {
	var out []Secret
	gone := maps.Clone(s.gone)
	for _, f := range s.found {
		if gone[f.text] > 0 {
			gone[f.text]--
			continue
		}
		if n := len(out); n > 0 && out[n-1].Path == f.Path && out[n-1].Line == f.Line {
			continue // one secret per line is enough
		}
		out = append(out, f.Secret)
	}
	return out
}
