package repo

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Identity is who a commit is by. What git could not store (line breaks, angle brackets) is
// taken out; an empty part becomes pawl's own.
type Identity struct{ Name, Email string }

// Trailer is one "Key: value" line in a commit message's last paragraph.
type Trailer struct{ Key, Value string }

// CommitInput is everything that a commit is made from: its hash depends on nothing else, so
// that repeating the input repeats the commit.
type CommitInput struct {
	Tree     string // from Change
	Parent   string
	Message  string
	Trailers []Trailer
	Author   Identity  // and committer
	Time     time.Time // the workflow's, not the attempt's: a retry has to repeat it
	Branch   string    // full ref name; moved from Parent to the commit
}

// RevertInput asks for the undoing of one commit.
type RevertInput struct {
	Commit   string // the tip of Branch
	Branch   string // full ref name
	Author   Identity
	Time     time.Time
	Trailers []Trailer
}

// CommitInfo is a commit as it is stored.
type CommitInfo struct {
	Commit, Tree string
	Parents      []string
	Author       Identity
	Time         time.Time // of the committer, in the committer's zone
	Message      string
}

// Subject is the message's first line.
func (c CommitInfo) Subject() string {
	s, _, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n")
	return s
}

// Trailer returns a trailer's value, "" if there is none: only the last paragraph has any.
func (c CommitInfo) Trailer(key string) string {
	text := strings.TrimRight(c.Message, "\n")
	at := strings.LastIndex(text, "\n\n")
	if at < 0 {
		return ""
	}
	for line := range strings.SplitSeq(text[at+2:], "\n") {
		if value, ok := strings.CutPrefix(line, key+": "); ok {
			return value
		}
	}
	return ""
}

// Commit makes the commit and moves Branch from Parent to it. If Branch is at that commit
// already, nothing happens; if it is anywhere else, the error is *Fenced.
func (s *Store) Commit(ctx context.Context, in CommitInput) (string, error) {
	r, err := s.Transact(ctx, Tx{Commit: &in})
	return r.Code, err
}

// Revert makes the commit that `git revert --no-edit` makes of a branch's tip: its tree is the
// parent's. It needs no working tree and cannot conflict.
func (s *Store) Revert(ctx context.Context, in RevertInput) (string, error) {
	r, err := s.Transact(ctx, Tx{Revert: &in})
	return r.Code, err
}

func (in CommitInput) object() (commitObject, error) {
	o := commitObject{tree: in.Tree, parents: []string{in.Parent}, author: in.Author, time: in.Time,
		message: message(in.Message, in.Trailers)}
	if err := checkHashes(in.Tree, in.Parent); err != nil {
		return o, err
	}
	return o, checkRef(in.Branch)
}

// revert is the object that undoes a commit. Merges are not pawl's and have no one parent.
func (s *Store) revert(ctx context.Context, in RevertInput) (commitObject, error) {
	if err := checkHashes(in.Commit); err != nil {
		return commitObject{}, err
	}
	if err := checkRef(in.Branch); err != nil {
		return commitObject{}, err
	}
	undone, err := s.ReadCommit(ctx, in.Commit)
	if err != nil {
		return commitObject{}, err
	}
	if len(undone.Parents) != 1 {
		return commitObject{}, fmt.Errorf("repo: %s has %d parents and cannot be reverted", in.Commit, len(undone.Parents))
	}
	before, err := s.ReadCommit(ctx, undone.Parents[0])
	if err != nil {
		return commitObject{}, err
	}
	text := "Revert \"" + undone.Subject() + "\"\n\nThis reverts commit " + in.Commit + "."
	return commitObject{tree: before.Tree, parents: []string{in.Commit}, author: in.Author, time: in.Time,
		message: message(text, in.Trailers)}, nil
}

// commitObject is a commit before it is written. Its ID is known without asking git.
type commitObject struct {
	tree    string
	parents []string
	author  Identity
	time    time.Time
	message string
}

func (o commitObject) id() string { return objectID("commit", o.content()) }

func (o commitObject) content() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", o.tree)
	for _, p := range o.parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	who := signature(o.author, o.time)
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s", who, who, o.message)
	return b.Bytes()
}

func (o commitObject) info() CommitInfo {
	return CommitInfo{Commit: o.id(), Tree: o.tree, Parents: o.parents, Author: o.author.clean(), Time: o.time.Truncate(time.Second), Message: o.message}
}

func objectID(kind string, content []byte) string {
	h := newObjectHash(kind, int64(len(content)))
	h.Write(content)
	return sumText(h)
}

func newObjectHash(kind string, size int64) hash.Hash {
	h := sha1.New()
	fmt.Fprintf(h, "%s %d\x00", kind, size)
	return h
}

func sumText(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// message is the text and, as a paragraph of its own and so the one that git looks for trailers
// in, the trailers: nothing in the text can pass for one.
func message(text string, trailers []Trailer) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n \t")
	if text == "" {
		text = "(no description)" // git finds no trailers in a message without a subject
	}
	var b strings.Builder
	b.WriteString(text)
	b.WriteString("\n")
	for i, t := range trailers {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(oneLine(t.Key) + ": " + oneLine(t.Value) + "\n")
	}
	return b.String()
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")), " ")
}

// clean does to an identity what git does before it stores one.
func (id Identity) clean() Identity {
	strip := func(s, or string) string {
		s = strings.Map(func(r rune) rune {
			if r == '<' || r == '>' || r < 0x20 || r == 0x7f {
				return -1
			}
			return r
		}, strings.ToValidUTF8(s, "\uFFFD"))
		if s = strings.Trim(s, " .,:;\"\\'"); s == "" {
			return or
		}
		return s
	}
	return Identity{Name: strip(id.Name, "pawl"), Email: strip(id.Email, "pawl@localhost")}
}

func signature(id Identity, t time.Time) string {
	id = id.clean()
	return fmt.Sprintf("%s <%s> %d %s", id.Name, id.Email, t.Unix(), t.Format("-0700"))
}

// ReadCommit reads a commit; ErrNotFound if there is none.
func (s *Store) ReadCommit(ctx context.Context, commit string) (CommitInfo, error) {
	if err := checkHashes(commit); err != nil {
		return CommitInfo{}, err
	}
	if c, ok := s.commits.get(commit); ok {
		return c, nil
	}
	return s.readCommit(ctx, commit)
}

// readCommit is ReadCommit from the store itself.
func (s *Store) readCommit(ctx context.Context, commit string) (CommitInfo, error) {
	var c CommitInfo
	err := s.batch(ctx, func(b *batch) error {
		var err error
		c, err = b.commit(commit)
		if err == nil && len(c.Parents) == 1 {
			// A revert asks for the parent next.
			if p, err := b.commit(c.Parents[0]); err == nil {
				s.commits.put(p)
			}
		}
		return err
	})
	if err == nil {
		s.commits.put(c)
	}
	return c, err
}

func parseCommit(id string, raw []byte) (CommitInfo, error) {
	c := CommitInfo{Commit: id}
	head, msg, ok := strings.Cut(string(raw), "\n\n")
	if !ok {
		return c, fmt.Errorf("repo: commit %s is malformed", id)
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
	email, when, _ := strings.Cut(rest, "> ")
	secs, zone, _ := strings.Cut(when, " ")
	n, _ := strconv.ParseInt(secs, 10, 64)
	t := time.Unix(n, 0).UTC()
	if z, err := time.Parse("-0700", zone); err == nil {
		if _, off := z.Zone(); off != 0 {
			t = t.In(time.FixedZone("", off))
		}
	}
	return Identity{Name: name, Email: email}, t
}

// commitCache remembers the last commits that this process made or read: a revert usually
// follows the commit and then needs no process to look it up. Commits never change.
type commitCache struct {
	mu   sync.Mutex
	info map[string]CommitInfo
	fifo []string
}

const commitCacheSize = 128

func (c *commitCache) get(id string) (CommitInfo, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.info[id]
	return i, ok
}

func (c *commitCache) put(i CommitInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.info == nil {
		c.info = map[string]CommitInfo{}
	}
	if _, ok := c.info[i.Commit]; ok {
		return
	}
	c.info[i.Commit] = i
	if c.fifo = append(c.fifo, i.Commit); len(c.fifo) > commitCacheSize {
		delete(c.info, c.fifo[0])
		c.fifo = c.fifo[1:]
	}
}
