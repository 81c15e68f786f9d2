package repo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// RefName turns a loop ID into one component of a ref: everything that git does not allow in
// one becomes '-', and so does '/', because loops "a" and "a/b" could not both have a branch.
// Different IDs can become the same name; Source.Loops says which are taken.
func RefName(loop string) string {
	var b strings.Builder
	for i := 0; i < len(loop); {
		r, n := utf8.DecodeRuneInString(loop[i:])
		i += n
		switch {
		case r == utf8.RuneError && n <= 1, r < 0x20, r == 0x7f, strings.ContainsRune(" ~^:?*[\\/", r):
			b.WriteByte('-')
		case r == '.' && (b.Len() == 0 || i == len(loop) || loop[i] == '.'):
			b.WriteByte('-') // no leading or trailing dot, no ".."
		case r == '{' && strings.HasSuffix(b.String(), "@"):
			b.WriteByte('-') // no "@{"
		default:
			b.WriteRune(r)
		}
	}
	name := b.String()
	if s, ok := strings.CutSuffix(name, ".lock"); ok {
		name = s + "-lock"
	}
	// The ref is a file, and git needs room for ".lock" after its name.
	if len(name) > maxComponent {
		sum := sha256.Sum256([]byte(loop))
		cut := maxComponent - 17
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = strings.TrimRight(name[:cut], ".") + "-" + hex.EncodeToString(sum[:8])
	}
	switch name {
	case "", "@":
		return "loop"
	}
	return name
}

const maxComponent = 200

// checkRef is git check-ref-format for full names: what reaches a git process as a ref can be
// nothing else, least of all an option.
func checkRef(ref string) error {
	bad := func(why string) error { return fmt.Errorf("repo: %s is not a ref name: %s", Quote(ref), why) }
	if !strings.HasPrefix(ref, "refs/") {
		return bad("it does not begin with refs/")
	}
	for _, c := range strings.Split(ref, "/") {
		switch {
		case c == "":
			return bad("empty component")
		case c[0] == '.' || strings.HasSuffix(c, ".lock") || strings.HasSuffix(c, "."):
			return bad("a component begins or ends with a dot, or ends with .lock")
		}
	}
	if strings.Contains(ref, "..") || strings.Contains(ref, "@{") {
		return bad(`".." or "@{"`)
	}
	for i := 0; i < len(ref); i++ {
		if c := ref[i]; c < 0x20 || c == 0x7f || strings.IndexByte(" ~^:?*[\\", c) >= 0 {
			return bad("a character that refs cannot have")
		}
	}
	return nil
}

// checkBranch is checkRef for a branch's short name.
func checkBranch(branch string) error {
	if strings.HasPrefix(branch, "-") || branch == "HEAD" {
		return fmt.Errorf("repo: %s is not a branch name", Quote(branch))
	}
	return checkRef("refs/heads/" + branch)
}

const hashLen = 40

func isHash(s string) bool {
	if len(s) != hashLen {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// checkRev admits what may name a commit or tree on a command line: a whole object ID or a full
// ref name. Abbreviations and expressions are the user interface's business.
func checkRev(rev string) error {
	if isHash(rev) {
		return nil
	}
	if strings.HasPrefix(rev, "refs/") {
		return checkRef(rev)
	}
	return fmt.Errorf("repo: %s is neither an object ID nor a full ref name", Quote(rev))
}

func checkHashes(hashes ...string) error {
	for _, h := range hashes {
		if !isHash(h) {
			return fmt.Errorf("repo: %s is not an object ID", Quote(h))
		}
	}
	return nil
}

// Quote shows a path as git shows it: as it is where that is safe, else in double quotes with
// C escapes, so that no name can forge a line, an escape sequence or another name.
func Quote(path string) string {
	safe := true
	for i := 0; i < len(path); i++ {
		if c := path[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			safe = false
			break
		}
	}
	if safe {
		return path
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= 0x07 && c <= 0x0d:
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[c-0x07])
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
