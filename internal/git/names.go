package git

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RefName turns a loop ID into one component of a ref: everything that git does not allow in
// one becomes '-', and so does '/', because loops "a" and "a/b" could not both have a branch.
// Different IDs can become the same name; userrepo.Source.Loops has those that are taken.
func RefName(loop string) string {
	name := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < 0x20 || r == 0x7f || strings.ContainsRune(notInRefs+"/", r) {
			return '-'
		}
		return r
	}, loop)
	for strings.Contains(name, "..") {
		name = strings.ReplaceAll(name, "..", "-.")
	}
	name = strings.ReplaceAll(name, "@{", "@-")
	if rest, ok := strings.CutPrefix(name, "."); ok {
		name = "-" + rest
	}
	if rest, ok := strings.CutSuffix(name, "."); ok {
		name = rest + "-"
	}
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
	if name == "" || name == "@" {
		return "loop"
	}
	return name
}

// BranchName is a branch as people name it: without what the refs of all branches begin with.
func BranchName(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

const (
	maxComponent = 200
	notInRefs    = ` ~^:?*[\`
)

// CheckRef is git check-ref-format for full names: what a git process gets as a ref can't be an
// option or anything else.
func CheckRef(ref string) error {
	bad := func(why string) error { return fmt.Errorf("%s is not a ref name: %s", Quote(ref), why) }
	if !strings.HasPrefix(ref, "refs/") {
		return bad("it does not begin with refs/")
	}
	for c := range strings.SplitSeq(ref, "/") {
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
	if strings.ContainsFunc(ref, func(r rune) bool { return r < 0x20 || r == 0x7f || strings.ContainsRune(notInRefs, r) }) {
		return bad("a character that refs cannot have")
	}
	return nil
}

// CheckBranch is CheckRef for a branch's short name.
func CheckBranch(branch string) error {
	if strings.HasPrefix(branch, "-") || branch == "HEAD" {
		return fmt.Errorf("%s is not a branch name", Quote(branch))
	}
	return CheckRef("refs/heads/" + branch)
}

// NoHash is git's ID for an object that is not there.
const NoHash = "0000000000000000000000000000000000000000"

// IsHash reports whether s is a whole object ID.
func IsHash(s string) bool {
	return len(s) == len(NoHash) && strings.Trim(s, "0123456789abcdef") == ""
}

// CheckRev accepts what may name a commit or tree on a command line: a whole object ID or a full
// ref name, no abbreviation and no expression.
func CheckRev(rev string) error {
	if IsHash(rev) {
		return nil
	}
	if strings.HasPrefix(rev, "refs/") {
		return CheckRef(rev)
	}
	return fmt.Errorf("%s is neither an object ID nor a full ref name", Quote(rev))
}

// CheckHashes refuses what is not a whole object ID.
func CheckHashes(hashes ...string) error {
	for _, h := range hashes {
		if !IsHash(h) {
			return fmt.Errorf("%s is not an object ID", Quote(h))
		}
	}
	return nil
}

// Quote shows a path as git shows it: as it is where that is safe, else in double quotes with
// C escapes, so that no name can forge a line, an escape sequence or another name.
func Quote(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool { return r < 0x20 || r >= 0x7f || r == '"' || r == '\\' }) {
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

// Printable escapes what is not a graphic character, byte by byte as Quote does.
func Printable(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !unicode.IsGraphic(r) {
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

var userInfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*)://[^/\s'"]*@`)

// Redact removes users and passwords from the URLs in a text. git's configuration may put them
// there (url.<base>.insteadOf), though no URL that pawl gets has any.
func Redact(text string) string { return userInfo.ReplaceAllString(text, "$1://") }

// FirstOf are the paths that a message names: the first few.
func FirstOf(paths []string) []string { return paths[:min(len(paths), 5)] }

// QuoteSome shows the first few of the paths, and how many more there are.
func QuoteSome(paths []string) string {
	var quoted []string
	for _, p := range FirstOf(paths) {
		quoted = append(quoted, Quote(p))
	}
	text := strings.Join(quoted, ", ")
	if more := len(paths) - len(quoted); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
