package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/lib/fsutil/dirfd"
)

// The tree's own .git is for people and programs that work in the tree: `git log`, `git status` and `git diff` show the
// loop's branch at the tree's commit. It is rewritten each time, except for files that pawl wrote and nobody has
// touched since. Commits, hooks and config of an agent are removed.

// gitDir records what pawl wrote into a tree's .git, by path.
type gitDir struct {
	Shown string            // the commit whose whole history is in the packs
	Packs map[string]stamp  // objects/pack/…
	Wrote map[string]stamp  // everything else
	What  map[string]string // the content written there, for comparison
	Tags  string            // packed-refs: the tags of that history when .git was made
}

// maxShown is how many packs a tree's .git may have before it is made again with one pack. Each new commit adds one.
const maxShown = 50

// treeConfig is the config file of a tree's .git, without its remote. Nothing in the tree can reach the store.
const treeConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
[gc]
	auto = 0
`

// config returns the config file of the tree's .git. Its origin says where the repository comes from, for programs that
// derive names from that. It can't be used for a push.
func (t *Tree) config() string {
	if t.Origin == "" {
		return treeConfig
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", "").Replace(t.Origin)
	return treeConfig + "[remote \"origin\"]\n\turl = \"" + quoted + "\"\n\tpushurl = \"nowhere: a loop pushes by itself\"\n"
}

// tags returns the tags in the history of a commit: their objects, and a packed-refs file. It returns none if the store
// can't list them; then only descriptions of commits are lost.
func (v *visit) tags(ctx context.Context, commit string) (objects []string, packed string) {
	const format = "--format=%(objectname) %(objecttype) %(refname) %(*objectname) %(*objecttype)"
	out, err := v.store.Git().Command("for-each-ref", "--merged="+commit, format, "refs/tags").Holding(v.lock).Run(ctx)
	if err != nil {
		return nil, ""
	}
	var b strings.Builder
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		switch {
		case len(f) == 3 && f[1] == "commit":
			fmt.Fprintf(&b, "%s %s\n", f[0], f[2])
		case len(f) == 5 && f[1] == "tag" && f[4] == "commit":
			fmt.Fprintf(&b, "%s %s\n^%s\n", f[0], f[2], f[3])
			objects = append(objects, f[0])
		}
	}
	if b.Len() == 0 {
		return nil, ""
	}
	return objects, "# pack-refs with: peeled fully-peeled sorted \n" + b.String()
}

// givePack removes everything unknown from .git, and copies what commit has and .git lacks into it, as one pack.
func (v *visit) givePack(ctx context.Context, commit string) error {
	var tags []string
	dot := &v.st.Git
	if dot.Shown == "" || len(dot.Packs) > 2*maxShown || !sweepGit(v.root, dot) {
		*dot = gitDir{Packs: map[string]stamp{}, Wrote: map[string]stamp{}, What: map[string]string{}}
		if err := v.root.remove(".git"); err != nil {
			return err
		}
		if err := os.MkdirAll(dirfd.At(filepath.Join(v.Dir, ".git", "objects", "pack")), 0o755); err != nil {
			return err
		}
		tags, dot.Tags = v.tags(ctx, commit)
	}
	if dot.Shown == commit {
		return nil
	}
	// The parent folders were just made, or opened as real ones.
	dir := filepath.Join(v.Dir, ".git", "objects", "pack")
	// A tree is a cache and need not survive a power cut.
	c := v.store.Git().Command("-c", "core.fsync=none", "pack-objects", "--quiet", "--revs", "--non-empty", "--delta-base-offset", "--window=0", filepath.Join(dir, "pack"))
	revs := strings.Join(append(tags, commit), "\n") + "\n"
	if dot.Shown != "" {
		revs += "^" + dot.Shown + "\n"
	}
	out, err := c.Input(revs).Holding(v.lock).Run(ctx)
	if err != nil {
		return err
	}
	for _, id := range strings.Fields(string(out)) {
		for _, ext := range []string{".pack", ".idx"} {
			name := "pack-" + id + ext
			current, err := stampFile(filepath.Join(dir, name))
			if err != nil {
				return fmt.Errorf("git pack-objects left no %s: %w", name, err)
			}
			dot.Packs["objects/pack/"+name] = current
		}
	}
	dot.Shown = commit
	return nil
}

// sweepGit removes from .git what is unknown or was changed. It returns false if it can't, or if that removed a pack.
func sweepGit(root *folder, dot *gitDir) bool {
	dir, err := root.open(".git")
	if err != nil {
		return false // missing, a file or a symlink
	}
	defer dir.Close()
	if dir.remove(".git") != nil { // walk leaves it out
		return false
	}
	entries, err := walk(dir, true, func(string) bool { return true })
	if err != nil {
		return false
	}
	stamps := map[string]stamp{}
	maps.Copy(stamps, dot.Packs)
	maps.Copy(stamps, dot.Wrote)
	folders := map[string]bool{}
	for name := range stamps {
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			folders[d] = true
		}
	}
	c := cleaner{root: dir}
	for _, f := range entries {
		recorded, ours := stamps[f.path]
		switch {
		case c.isGone(f.path), folders[f.path] && f.isOpen():
		case ours && *f.is == recorded:
			delete(stamps, f.path)
		case c.remove(f.path) != nil:
			return false
		}
	}
	// What is left in the records was missing or changed.
	packs := len(dot.Packs)
	lost := func(name string, _ stamp) bool { _, ok := stamps[name]; return ok }
	maps.DeleteFunc(dot.Packs, lost)
	maps.DeleteFunc(dot.Wrote, lost)
	return len(dot.Packs) == packs
}

// show writes the rest of .git, unless it is there already, and saves what is known about the tree.
func (v *visit) show(ctx context.Context, commit string) error {
	if v.Branch != "" {
		if err := git.CheckBranch(v.Branch); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(dirfd.At(filepath.Join(v.Dir, ".git")))
	if err != nil {
		return err
	}
	defer root.Close()
	files := map[string]string{
		"config":       v.config(),
		"info/exclude": store.Excludes(),
		"HEAD":         commit + "\n",
	}
	if v.Branch != "" {
		files["HEAD"] = "ref: refs/heads/" + v.Branch + "\n"
		files["refs/heads/"+v.Branch] = commit + "\n"
	}
	for _, ref := range v.shownBase(ctx) {
		files[ref] = v.base + "\n"
	}
	if v.st.Git.Tags != "" {
		files["packed-refs"] = v.st.Git.Tags
	}
	if shallow, err := os.ReadFile(dirfd.At(filepath.Join(v.store.Dir(), "shallow"))); err == nil {
		files["shallow"] = string(shallow)
	}
	// git takes a directory for a repository only if it has refs/.
	if err := root.MkdirAll("refs/heads", 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := v.st.Git.write(root, name, content, strings.NewReader(content)); err != nil {
			return err
		}
	}
	// The private index has the stat data of these very files, so `git status` reads no file.
	current, err := stampFile(v.indexPath())
	if err != nil {
		return err
	}
	source, err := os.Open(dirfd.At(v.indexPath()))
	if err != nil {
		return err
	}
	defer source.Close()
	if err := v.st.Git.write(root, "index", fmt.Sprint(current), source); err != nil {
		return err
	}
	return v.saveState()
}

// shownBase returns the refs by which commands name the commit from which the work started, such as in
// `git diff origin/main...HEAD`. There are none if that commit is unknown, or if a branch's name is in the way.
func (v *visit) shownBase(ctx context.Context) []string {
	if v.Onto == "" || git.CheckBranch(v.Onto) != nil {
		return nil
	}
	if v.base == "" && v.Base != "" {
		v.base, _ = v.store.Ref(ctx, v.Base)
	}
	if v.base == "" {
		return nil
	}
	refs := []string{"refs/remotes/origin/" + v.Onto}
	inTheWay := strings.HasPrefix(v.Branch+"/", v.Onto+"/") || strings.HasPrefix(v.Onto, v.Branch+"/")
	if !inTheWay {
		refs = append(refs, "refs/heads/"+v.Onto)
	}
	return refs
}

// write creates name as a new file, because an existing one could be a hard link to a file elsewhere.
func (g *gitDir) write(root *os.Root, name, kind string, content io.Reader) error {
	if _, intact := g.Wrote[name]; intact && g.What[name] == kind {
		return nil
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	current, err := stampFile(filepath.Join(root.Name(), name))
	g.Wrote[name], g.What[name] = current, kind
	return err
}
