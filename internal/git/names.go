package git

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"pawl/internal/lib/list"
	"pawl/internal/lib/text/visible"
)

// RefName converts a loop ID to one component of a ref. Characters that git does not allow there become '-'. So does
// '/', because loops "a" and "a/b" could not both have a branch. Different IDs can get the same name;
// userrepo.Source.Loops returns the names in use.
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
	// The ref is a file, and git needs space for ".lock" after its name.
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

// BranchName returns a branch as people name it, without refs/heads/.
func BranchName(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

const (
	maxComponent = 200
	notInRefs    = ` ~^:?*[\`
)

// CheckRef checks a full ref name as git check-ref-format does. So no ref that git gets is an option or anything
// else.
func CheckRef(ref string) error {
	bad := func(reason string) error { return fmt.Errorf("%s is not a ref name: %s", Quote(ref), reason) }
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

// CheckBranch is CheckRef for the short name of a branch.
func CheckBranch(branch string) error {
	if strings.HasPrefix(branch, "-") || branch == "HEAD" {
		return fmt.Errorf("%s is not a branch name", Quote(branch))
	}
	return CheckRef("refs/heads/" + branch)
}

// NoHash is git's ID for a missing object.
const NoHash = "0000000000000000000000000000000000000000"

// IsHash reports whether s is a complete object ID.
func IsHash(s string) bool {
	return len(s) == len(NoHash) && strings.Trim(s, "0123456789abcdef") == ""
}

// CheckRev accepts names of a commit or tree for a command line: a complete object ID or a full ref name. It refuses
// abbreviations and expressions.
func CheckRev(rev string) error {
	if IsHash(rev) {
		return nil
	}
	if strings.HasPrefix(rev, "refs/") {
		return CheckRef(rev)
	}
	return fmt.Errorf("%s is neither an object ID nor a full ref name", Quote(rev))
}

// CheckHashes refuses everything except complete object IDs.
func CheckHashes(hashes ...string) error {
	for _, h := range hashes {
		if !IsHash(h) {
			return fmt.Errorf("%s is not an object ID", Quote(h))
		}
	}
	return nil
}

// Quote returns a path as git shows it with core.quotePath=false: unchanged if that is safe, else in double quotes with C
// escapes. So no name can imitate a line, an escape sequence or another name. Unlike git, it escapes every character that
// can't be seen.
func Quote(path string) string {
	if !strings.ContainsFunc(path, escaped) {
		return path
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(path); {
		r, n := utf8.DecodeRuneInString(path[i:])
		switch {
		case !escaped(r):
			b.WriteString(path[i : i+n])
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= 0x07 && r <= 0x0d:
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[r-0x07])
		default:
			octal(&b, path[i:i+n])
		}
		i += n
	}
	b.WriteByte('"')
	return b.String()
}

// escaped reports whether Quote escapes a character. A byte that is no text reads as U+FFFD.
func escaped(r rune) bool {
	return r == '"' || r == '\\' || r == '\t' || r == utf8.RuneError || !visible.Shows(r)
}

func octal(b *strings.Builder, bytes string) {
	for i := range len(bytes) {
		fmt.Fprintf(b, `\%03o`, bytes[i])
	}
}

// Requoted returns a path as Quote shows it that was quoted as git does by default, with every byte beyond ASCII escaped:
// contracts of older versions have such names.
func Requoted(quoted string) string {
	inner, ok := strings.CutPrefix(quoted, `"`)
	if !ok {
		return quoted
	}
	inner = strings.TrimSuffix(inner, `"`)
	path, err := strconv.Unquote(`"` + inner + `"`) // C's escapes are among Go's
	if err != nil {
		return quoted
	}
	return Quote(path)
}

// Printable escapes all characters that are not graphic, byte by byte as Quote does.
func Printable(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !unicode.IsGraphic(r) {
			octal(&b, s[i:i+n])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

var userInfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*)://[^/\s'"]*@`)

// Redact removes users and passwords from URLs in a text. No URL that pawl gets has any, but git's configuration may
// add them (url.<base>.insteadOf).
func Redact(text string) string { return userInfo.ReplaceAllString(text, "$1://") }

// MaxNamed is how many paths are named in a message; the others are counted.
const MaxNamed = 5

// QuoteSome returns the first paths, MaxNamed at most, and the number of the others.
func QuoteSome(paths []string) string { return firstOf(paths, Quote) }

// PrintSome is QuoteSome for words that are no paths. Characters that can be seen stay as they are.
func PrintSome(words []string) string { return firstOf(words, Printable) }

func firstOf(names []string, show func(string) string) string {
	shown := list.Map(names[:min(len(names), MaxNamed)], show)
	text := strings.Join(shown, ", ")
	if hidden := len(names) - len(shown); hidden > 0 {
		text += fmt.Sprintf(" and %d more", hidden)
	}
	return text
}
