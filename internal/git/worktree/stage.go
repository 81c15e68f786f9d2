package worktree

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/safego"
)

// Change is the difference between a tree and a commit, written into the store.
type Change struct {
	Tree       string // the ID of the resulting tree, which Commit takes
	Files      []git.FileChange
	Violations []Unaddable // not empty: the change cannot be committed, and Files lacks these
	Unread     bool        // the change is longer than what a git.Reader gets
	LeftOut    []string    // what is changed in submodules, and in no commit
}

// Empty reports whether nothing was changed that a commit could contain.
func (c Change) Empty() bool { return len(c.Files) == 0 && len(c.Violations) == 0 }

// Unaddable is something in the tree that a commit can't or must not contain.
type Unaddable struct {
	Path string // unescaped; "." for the whole tree
	Why  string // for people
	Size int64  // the size of a file too large to read; else 0
	New  bool   // the large file is not in head
}

// Stage writes the difference between the tree and head into the store's objects, as `git add -A` would, without
// committing. The state of the tree's own .git does not matter. What git can't or must not add (a nested repository, a
// FIFO, an unreadable file) is a violation, not an error.
func (t *Tree) Stage(ctx context.Context, head string) (Change, error) {
	return t.StageRead(ctx, head, StageOptions{Largest: maxChange})
}

// StageOptions say what a Stage includes, and who reads the lines.
type StageOptions struct {
	Largest   int64             // a changed file of more bytes is a violation with its size, and git never reads it
	Leftovers []string          // paths that are not part of the change, unless head has something in them
	Begin     func() git.Reader // nil if nobody reads the lines
}

// StageRead is Stage for a caller that also reads the added and removed lines. Begin may be called again; the lines
// read before that don't count. Files that setup made and leftovers are not part of a change.
func (t *Tree) StageRead(ctx context.Context, head string, o StageOptions) (Change, error) {
	if err := git.CheckHashes(head); err != nil {
		return Change{}, err
	}
	v, err := t.enter(ctx)
	if err != nil {
		return Change{}, err
	}
	defer v.leave()
	if v.root == nil {
		return Change{Violations: []Unaddable{{Path: ".", Why: "the working tree was removed, replaced or made unreadable"}}}, nil
	}
	s := staging{StageOptions: o, visit: v, head: head, atHead: v.indexIsAt(head)}
	c, err := s.run(ctx)
	c.LeftOut = s.leftOut
	if err != nil || c.Tree == "" {
		return c, err
	}
	if err := v.noteIndex("", c.Tree); err != nil {
		return Change{}, err
	}
	return c, v.saveState()
}

type staging struct {
	StageOptions
	*visit
	head   string
	atHead bool // the index is head's tree

	ix         *index
	attributes bool // there is a .gitattributes somewhere
	excluded   []string
	violations []Unaddable
	leftOut    []string // in submodules
}

func (s *staging) run(ctx context.Context) (Change, error) {
	if err := s.survey(ctx); err != nil {
		return Change{}, err
	}
	if len(s.violations) >= maxUnaddable {
		return Change{Violations: s.violations}, nil
	}
	if done, err := s.add(ctx); err != nil || done {
		return Change{Violations: s.violations}, err
	}
	c, err := s.diff(ctx)
	if err != nil {
		return Change{}, err
	}
	if retry, err := s.dropConversions(ctx, c.Files); err != nil {
		return Change{}, err
	} else if retry {
		if c, err = s.diff(ctx); err != nil {
			return Change{}, err
		}
	}
	for i, f := range c.Files {
		if f.OldMode == git.ModeGitlink || f.NewMode == git.ModeGitlink {
			s.violate(f.Path, "a submodule was added, removed or moved")
		}
		if f.HasContent() {
			current, _ := s.root.lstatAt(f.Path) // a file that is gone counts as 0
			c.Files[i].Size = current.Size
		}
	}
	if err := s.contents(ctx, c.Files); err != nil {
		return Change{}, err
	}
	c.Violations = s.violations
	return c, s.store.Git().ReadTargets(ctx, c.Files)
}

// maxUnaddable is how many violations are looked for: with as many, they are the whole result. git compares each file
// with each path that it must not touch, so a million FIFOs would keep it at work for hours.
const maxUnaddable = 1000

func (s *staging) violate(path, reason string) {
	if !slices.ContainsFunc(s.violations, func(v Unaddable) bool { return v.Path == path }) {
		s.violations = append(s.violations, Unaddable{Path: path, Why: reason})
	}
}

// survey finds what git must not touch, before any git command runs. In a folder with a .git, git would consult that
// repository, whose config is the agent's.
func (s *staging) survey(ctx context.Context) (err error) {
	s.ix, err = readIndex(s.indexPath())
	if git.Starved(err) {
		return err
	}
	if err != nil || !s.atHead {
		// What an earlier Stage added to the index must not count. A tracked file stays tracked even if the agent has
		// since had it ignored.
		if err != nil {
			s.Torn = "the index"
			_ = os.Remove(dirfd.At(s.indexPath()))
		}
		if _, err := s.call("read-tree", "--reset", s.head).Run(ctx); err != nil {
			return err
		}
		if s.ix, err = readIndex(s.indexPath()); err != nil {
			return err
		}
	}
	index, err := stampFile(s.indexPath())
	if err != nil {
		return err
	}
	entries, err := walk(s.root, false, func(string) bool { return true })
	if err != nil {
		return err
	}
	for _, p := range store.RootFiles {
		if _, tracked := s.ix.entries[p]; tracked { // by a tool that came before pawl
			s.excluded = append(s.excluded, p)
		}
	}
	made, err := readPaths(s.madePath())
	if err != nil {
		return err
	}
	apart := s.ix.apart(made, s.Leftovers)
	s.excluded = append(s.excluded, apart...)
	var odd, submodules []string
	var large []found
	reasons := map[string]string{}
	note := func(p, w string) {
		if _, ok := reasons[p]; !ok {
			odd = append(odd, p)
			reasons[p] = w
		}
	}
	for _, f := range entries {
		entry, tracked := s.ix.entries[f.path]
		if tracked && entry.deceives(*f.is, index.Mtime) {
			if err := s.root.touch(f.path); err != nil {
				return err
			}
		}
		dir, name := path.Dir(f.path), path.Base(f.path)
		if name == ".git" && s.ix.entries[dir].isGitlink() {
			submodules = append(submodules, dir) // setup may have checked it out
			continue
		}
		if inAny(s.ix.links, f.path) || slices.Contains(apart, f.path) || inAny(apart, f.path) {
			continue // git inspects nothing else in a submodule's folder, and nothing in a path that is apart
		}
		switch {
		case name == ".git":
			note(dir, "a nested git repository")
		case f.isOdd():
			note(f.path, "neither a file nor a folder nor a symlink")
		case f.shut != "":
			note(f.path, f.shut)
		case name == ".gitattributes":
			s.attributes = true
		case f.mode.IsRegular() && f.is.Size > min(s.Largest, worthCounting) && !(tracked && entry.matches(*f.is)):
			large = append(large, f)
		}
	}
	if len(submodules) > 0 {
		if err := s.submodules(ctx, submodules); err != nil {
			return err
		}
	}
	if s.leftOut, err = s.changedInSubmodules(ctx, s.ix.links, entries); err != nil {
		return fmt.Errorf("looking for changes in submodules: %w", err)
	}
	if err := s.tooLarge(ctx, large); err != nil {
		return err
	}
	ignored, err := s.ignored(ctx, odd)
	if err != nil {
		return err
	}
	for _, p := range odd {
		if ignored[p] {
			continue
		}
		s.violate(p, reasons[p])
		if s.excluded = append(s.excluded, p); len(s.violations) >= maxUnaddable {
			break
		}
	}
	return nil
}

// Limits of what git has to read. A sparse file costs an agent nothing, and git a minute for each 5 GB.
const (
	maxChange     = 1 << 30 // of all new and changed files, if no limit for a single file is larger
	worthCounting = 1 << 20 // what is smaller is not counted
)

// tooLarge excludes files that are too large for the change, by size alone. A large tracked file with the size that it
// has in head may be unchanged, so it is read. It is read here, because git would load it whole, and its diff too.
func (s *staging) tooLarge(ctx context.Context, files []found) error {
	total, tooLarge := int64(0), false
	for _, f := range files {
		tooLarge = tooLarge || f.is.Size > s.Largest
		total += min(f.is.Size, maxChange) // no overflow
	}
	limit := max(maxChange, s.Largest)
	if !tooLarge && total <= limit {
		return nil
	}
	paths := make([]string, 0, len(files))
	var blobs strings.Builder
	for _, f := range files {
		paths = append(paths, f.path)
		if e, tracked := s.ix.entries[f.path]; tracked {
			blobs.WriteString(e.blobText() + "\n")
		}
	}
	ignored, err := s.ignored(ctx, paths)
	if err != nil {
		return err
	}
	out, err := s.store.Git().Command("cat-file", "--batch-check=%(objectsize)").Input(blobs.String()).Run(ctx)
	if err != nil {
		return err
	}
	sizes := strings.Fields(string(out))
	total = 0
	var changed []Unaddable
	for _, f := range files {
		entry, tracked := s.ix.entries[f.path]
		if tracked {
			sizeBefore := sizes[0]
			if sizes = sizes[1:]; sizeBefore == fmt.Sprint(f.is.Size) {
				if f.is.Size <= s.Largest {
					continue
				}
				if id, err := s.root.blobID(f.path); err != nil || id == entry.blobText() {
					continue // git reports a file that can't be read
				}
			}
		} else if ignored[f.path] {
			continue
		}
		total += min(f.is.Size, limit)
		changed = append(changed, Unaddable{Path: f.path, Size: f.is.Size, New: !tracked})
	}
	for _, u := range changed {
		switch {
		case len(s.violations) >= maxUnaddable:
			return nil
		case u.Size > s.Largest:
			u.Why = "larger than a file may be"
		case total > limit:
			u.Why, u.Size = fmt.Sprintf("part of a change of more than %d bytes", limit), 0
		default:
			continue
		}
		s.violations = append(s.violations, u)
		s.excluded = append(s.excluded, u.Path)
	}
	return nil
}

// submodules checks the submodules that are checked out. ls-files compares their HEAD with the index by reading files;
// git add and git status would run git inside them.
func (s *staging) submodules(ctx context.Context, paths []string) error {
	s.excluded = append(s.excluded, paths...)
	out, err := s.call(append([]string{"--literal-pathspecs", "ls-files", "-z", "--modified", "--"}, paths...)...).Run(ctx)
	for _, p := range git.Fields(out) {
		s.violate(p, "a submodule was added, removed or moved")
	}
	return err
}

// add updates the index from the tree. done means that violations are the whole result.
func (s *staging) add(ctx context.Context) (done bool, err error) {
	add := func(args ...string) error {
		pathspecs := strings.Join(append([]string{"."}, s.excluded...), "\x00:(top,literal,exclude)") + "\x00"
		args = append([]string{"add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"}, args...)
		_, err := s.call(args...).Input(pathspecs).Run(ctx)
		return err
	}
	if err = add(); err == nil {
		return false, nil
	}
	ge := git.Failure(err)
	if ge == nil {
		return false, err
	}
	if m := wrongEncoding.FindStringSubmatch(ge.Stderr); m != nil {
		// git stops after this error.
		s.violate(m[1], "its content is not in the encoding that .gitattributes names for it")
		return true, nil
	}
	// The rest is what git refuses. The file shows whether tree or store is at fault.
	retryErr := add("--ignore-errors")
	if retryErr == nil {
		return false, nil
	}
	refusesNames := strings.Contains(errors.Join(err, retryErr).Error(), "invalid path")
	out, lsErr := s.call("ls-files", "-z", "--others", "--modified", "--exclude-standard").Run(ctx)
	if lsErr != nil {
		return false, errors.Join(err, lsErr)
	}
	explained := false
	for _, p := range git.Fields(out) {
		p = strings.TrimSuffix(p, "/")
		switch {
		case slices.Contains(s.excluded, p), inAny(s.excluded, p):
			continue
		case s.unreadable(p):
			s.violate(p, "a file that cannot be read")
		case refusesNames:
			s.violate(p, "a name that git refuses")
		default:
			return false, err
		}
		if explained = true; len(s.violations) >= maxUnaddable {
			return true, nil
		}
	}
	if !explained {
		return false, err
	}
	return false, nil
}

var wrongEncoding = regexp.MustCompile(`(?s)(?:failed to encode|BOM is (?:required|prohibited) in) '(.*)' (?:from|if encoded as) `)

func (s *staging) unreadable(p string) bool {
	f, err := s.root.openFile(p)
	if err == nil {
		_ = f.Close()
	}
	return errors.Is(err, unix.EACCES)
}

// diff writes the tree and compares it with head, without the tree's files: an attribute must not decide which lines
// count (see storeAttributes).
func (s *staging) diff(ctx context.Context) (Change, error) {
	var c Change
	g, ctx := safego.WithContext(ctx)
	withIndex := func(args ...string) *git.Command {
		return s.store.Git().With("GIT_INDEX_FILE=" + s.indexPath()).Command(args...).Holding(s.lock)
	}
	g.Go(func() error {
		out, err := withIndex("write-tree").Run(ctx)
		if err != nil {
			return err
		}
		c.Tree = strings.TrimSpace(string(out))
		return git.CheckHashes(c.Tree)
	})
	g.Go(func() error {
		args := append([]string{"diff-index", "--cached"}, git.DiffFormat...)
		var read git.Reader // no lines at all if git prints none
		if s.Begin != nil {
			args, read = append(args, git.PatchFormat...), s.Begin()
		}
		diff := withIndex(append(args, s.head, "--")...)
		diff.Stdout = func(r io.Reader) (err error) {
			c.Files, c.Unread, err = git.ReadChanges(r, read)
			return err
		}
		_, err := diff.Run(ctx)
		if ge, ok := errors.AsType[*git.Error](err); ok && strings.Contains(ge.Stderr, tooLongToDiff) {
			c.Unread = true // the file list is complete, the lines are not
			return nil
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return Change{}, err
	}
	return c, nil
}

// tooLongToDiff is git's error for a file that is too large for its diff (1023 MB).
const tooLongToDiff = "unable to generate diff for"

// dropConversions removes from the index what only looks changed. `git add` converts each touched file as
// .gitattributes says, even if the commit's own files were never converted. A file with the commit's bytes is not
// changed.
func (s *staging) dropConversions(ctx context.Context, files []git.FileChange) (bool, error) {
	if !s.attributes {
		return false, nil
	}
	var info strings.Builder
	for _, f := range files {
		if f.Status != 'M' || !f.HasContent() || f.OldBlob == f.NewBlob {
			continue
		}
		id, err := s.root.blobID(f.Path)
		if err != nil {
			return false, err
		}
		if id == f.OldBlob {
			fmt.Fprintf(&info, "%s %s\t%s\x00", f.NewMode, f.OldBlob, f.Path)
		}
	}
	if info.Len() == 0 {
		return false, nil
	}
	_, err := s.call("update-index", "-z", "--index-info").Input(info.String()).Run(ctx)
	return true, err
}

// contents refuses files that Git LFS would have stored elsewhere. pawl runs no filters, so the content itself would
// get into git instead of a pointer. A pointer is accepted.
func (s *staging) contents(ctx context.Context, files []git.FileChange) error {
	var names strings.Builder
	changed := map[string]git.FileChange{}
	for _, f := range files {
		if f.HasContent() && f.OldBlob != f.NewBlob {
			changed[f.Path] = f
			names.WriteString(f.Path + "\x00")
		}
	}
	if !s.attributes || len(changed) == 0 {
		return nil
	}
	out, err := s.call("check-attr", "--cached", "-z", "--stdin", "filter").Input(names.String()).Run(ctx)
	if err != nil {
		return err
	}
	for f := git.Fields(out); len(f) >= 3; f = f[3:] { // path, attribute, value
		file := changed[f[0]]
		if f[2] != "lfs" {
			continue
		}
		content, err := s.store.BlobByID(ctx, file.NewBlob, maxPointer)
		if err != nil && !errors.Is(err, git.ErrTooLarge) {
			return err
		}
		if !bytes.HasPrefix(content, []byte(pointerHead)) {
			s.violate(file.Path, "a file of Git LFS that is no pointer: pawl runs no filters")
		}
	}
	return nil
}

// How a pointer of Git LFS begins, and its largest size.
const (
	pointerHead = "version https://git-lfs.github.com/spec/"
	maxPointer  = 1024
)

// blobID returns the object ID of a file's present bytes.
func (d *folder) blobID(p string) (string, error) {
	f, err := d.openFile(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return "", err
	}
	h := git.NewHash("blob", fi.Size())
	if _, err := io.Copy(h, io.LimitReader(f, fi.Size())); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
