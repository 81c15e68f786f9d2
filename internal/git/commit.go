package git

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"time"
)

// Identity is the author of a commit. NewCommit removes what git can't store (line breaks, angle brackets), and
// replaces an empty part by pawl's own.
type Identity struct{ Name, Email string }

// Trailer is one "Key: value" line in a commit message's last paragraph.
type Trailer struct{ Key, Value string }

// Commit is a commit as git stores it.
type Commit struct {
	ID, Tree string
	Parents  []string
	Author   Identity
	Time     time.Time // of the committer, in the committer's zone
	Message  string
}

// NewCommit returns a commit with its ID. It writes nothing into a repository. The author is also the committer. The
// trailers are a paragraph of their own at the end, so no line of text counts as a trailer.
func NewCommit(tree string, parents []string, author Identity, when time.Time, text string, trailers []Trailer) Commit {
	c := Commit{Tree: tree, Parents: parents, Author: author.clean(), Time: when.Truncate(time.Second), Message: message(text, trailers)}
	c.ID = ObjectID("commit", c.Content())
	return c
}

// Content returns the content of the commit object, for a commit from NewCommit.
func (c Commit) Content() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, p := range c.Parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %[1]s\n\n%s", c.Signature(), c.Message)
	return b.Bytes()
}

// Signature returns author and time in git's format.
func (c Commit) Signature() string {
	return fmt.Sprintf("%s <%s> %d %s", c.Author.Name, c.Author.Email, c.Time.Unix(), c.Time.Format("-0700"))
}

// Subject returns the first line of the message.
func (c Commit) Subject() string {
	s, _, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n")
	return s
}

func message(text string, trailers []Trailer) string {
	text = strings.Trim(strings.ReplaceAll(storable(text), "\r\n", "\n"), "\n \t")
	// git finds no trailers in a message that has no subject.
	text = cmp.Or(text, "(no description)") + "\n"
	if len(trailers) > 0 {
		text += "\n"
	}
	oneLine := func(s string) string { return strings.Join(strings.Fields(storable(s)), " ") }
	for _, t := range trailers {
		text += oneLine(t.Key) + ": " + oneLine(t.Value) + "\n"
	}
	return text
}

func storable(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}

// clean changes an identity as git does before it stores one.
func (id Identity) clean() Identity {
	strip := func(s, fallback string) string {
		s = strings.Map(func(r rune) rune {
			if r == '<' || r == '>' || r < 0x20 || r == 0x7f {
				return -1
			}
			return r
		}, strings.ToValidUTF8(s, "\uFFFD"))
		return cmp.Or(strings.Trim(s, " .,:;\"\\'"), fallback)
	}
	return Identity{Name: strip(id.Name, "pawl"), Email: strip(id.Email, "pawl@localhost")}
}

// ObjectID returns the ID that git gives to an object.
func ObjectID(kind string, content []byte) string {
	h := NewHash(kind, int64(len(content)))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// NewHash returns a hash that gives an object's ID after its content is written to it.
func NewHash(kind string, size int64) hash.Hash {
	h := sha1.New()
	fmt.Fprintf(h, "%s %d\x00", kind, size)
	return h
}

// ParseCommit reads a commit object.
func ParseCommit(id string, raw []byte) (Commit, error) {
	c := Commit{ID: id}
	head, msg, ok := strings.Cut(string(raw), "\n\n")
	if !ok {
		return c, fmt.Errorf("git: commit %s is malformed", id)
	}
	c.Message = msg
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			c.Tree = value
		case "parent":
			c.Parents = append(c.Parents, value)
		case "author":
			c.Author, _ = parseSignature(value)
		case "committer":
			_, c.Time = parseSignature(value)
		}
	}
	return c, nil
}

func parseSignature(s string) (Identity, time.Time) {
	name, rest, _ := strings.Cut(s, " <")
	email, date, _ := strings.Cut(rest, "> ")
	secs, zone, _ := strings.Cut(date, " ")
	n, _ := strconv.ParseInt(secs, 10, 64)
	t := time.Unix(n, 0).UTC()
	if z, err := time.Parse("-0700", zone); err == nil {
		if _, off := z.Zone(); off != 0 {
			t = t.In(time.FixedZone("", off))
		}
	}
	return Identity{Name: name, Email: email}, t
}
