// Package userrepo does everything that pawl does with the user's repository, on this host or at a URL. It checks
// that a loop can start from the repository (Inspect), copies from it (Fetch), and pushes the loop's branch and
// ledger to it (Push). When a person asks for it, it moves a branch of theirs (Land) or deletes a loop's refs (Drop).
//
// These operations change the user's repository, with the user's configuration and credentials. The package never
// runs a hook of a local repository. It commits one file there if a person asks for that (CommitFile). Only Land writes to its files, and only if the branch
// that moves is checked out and clean. Start reading at Inspect.
package userrepo

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
)

// Source is what Inspect found out about the user's repository.
type Source struct {
	Path     string       // absolute top level of the working tree
	Branch   string       // the branch that the loop starts from, without refs/heads/
	Head     string       // its commit
	Current  string       // the branch that is checked out, "" if HEAD is detached
	Identity git.Identity // that of the user's own commits, pawl's if none is configured
	Origin   string       // the URL of its remote origin, without credentials; "" if there is none for others
	Loops    []string     // names below refs/heads/pawl/ and refs/pawl-ledger/ that exist, sorted
}

// Codes of Precondition.
const (
	NoSuchPath      = "no-such-path"
	NotARepository  = "not-a-repository"
	NotTrusted      = "not-trusted" // git refuses to read it, because it belongs to another user
	BareRepository  = "bare-repository"
	ObjectFormat    = "object-format"
	NoCommit        = "no-commit"
	DetachedHead    = "detached-head"
	NoSuchBranch    = "no-such-branch"
	PartialClone    = "partial-clone" // the repository lacks objects that the branch needs
	UnmergedTree    = "unmerged-tree"
	DirtyTree       = "dirty-tree"
	StaleLock       = "stale-lock"
	NameInTheWay    = "name-in-the-way"
	CheckedOutThere = "checked-out-elsewhere"
	FileInTheWay    = "file-in-the-way"
	TreeRefused     = "tree-refused"   // git can't write a file of the working tree
	BranchRefused   = "branch-refused" // git can't move the branch
	UnusableGit     = "unusable-git"   // too old, or it hangs
	Replaced        = "replaced"       // another repository is in its place
	Unreadable      = "unreadable"     // damaged, or this user may not read it
)

// Precondition is a condition of P0 that the repository does not meet.
type Precondition struct {
	Code string // one of the constants above
	What string // what is wrong
	Do   string // what the user can do about it
	// Paths are the files that are not committed, for DirtyTree.
	Paths []string
}

func (e *Precondition) Error() string { return e.What + "; " + e.Do }

// Preconditions are several conditions that are not met.
type Preconditions []*Precondition

func (p Preconditions) Error() string {
	return strings.Join(list.Map(p, (*Precondition).Error), "\n")
}

// Unwrap lets errors.As find the first one.
func (p Preconditions) Unwrap() []error {
	return list.Map(p, func(item *Precondition) error { return item })
}

// Failed returns the unmet conditions in an error of Inspect, none for any other error.
func Failed(err error) Preconditions {
	var several Preconditions
	var item *Precondition
	var unusable *git.Unusable
	switch {
	case errors.As(err, &several):
		return several
	case errors.As(err, &item):
		return Preconditions{item}
	case errors.As(err, &unusable):
		return Preconditions{{Code: UnusableGit, What: unusable.What, Do: unusable.Do}}
	}
	return nil
}

// Inspect checks what P0 requires of the user's repository. It changes nothing there. Failed lists the conditions
// that are not met; the error is *git.Error if git failed. If the commit to start from was found, Source has it even
// then.
//
// base is the branch to start from, "" for the one that is checked out. The tree has to be clean, and HEAD on a
// branch, only if the loop starts from what is checked out, because another branch's tree is in its commit. loopRef
// is the branch that the loop will have (refs/heads/pawl/<loop>), "" to skip that check. It is no error if it exists
// already, see Source.Loops.
func Inspect(ctx context.Context, repo Repo, base, loopRef string) (Source, error) {
	if repo.folder == nil {
		abs, err := filepath.Abs(repo.Address)
		if err != nil {
			return Source{}, err
		}
		repo = At(abs)
	}
	s, err := inspect(ctx, repo, base, loopRef)
	return s, unreadable(repo.Address, err)
}

func inspect(ctx context.Context, repo Repo, base, loopRef string) (Source, error) {
	insp := inspector{ctx: ctx, repo: repo}
	if err := insp.ascend(); err != nil {
		return Source{}, err
	}
	s := Source{Path: insp.repo.Address}
	err := insp.format()
	if err == nil {
		err = insp.branch(&s, base)
	}
	if err == nil {
		err = insp.readSettings()
	}
	if err == nil {
		err = insp.whole(&s)
	}
	if err != nil {
		return Source{}, err
	}
	s.Identity, s.Origin = insp.identity(), Origin(insp.set["remote.origin.url"])
	// These checks are independent of each other, so all failures are reported at once (A1).
	var failed Preconditions
	for _, step := range []func(*Source) error{
		func(s *Source) error { return insp.names(s, loopRef) },
		insp.lock,
		insp.clean,
	} {
		err := step(&s)
		if pre, unmet := errors.AsType[*Precondition](err); unmet {
			failed = append(failed, pre)
		} else if err != nil {
			return Source{}, err
		}
	}
	if len(failed) > 0 {
		return s, failed
	}
	return s, nil
}

// inspector runs git in the user's repository as the user would, with their configuration (it says what is ignored
// and who they are), but read-only and without starting a monitor or a hook.
type inspector struct {
	ctx  context.Context
	repo Repo
	env  []string
	set  map[string]string // see readSettings
	dir  string            // what --git-dir answers, "" if git was not asked yet
}

func (insp *inspector) git(args ...string) (string, error) {
	out, err := insp.repo.user().With(insp.env...).Run(insp.ctx, args...)
	// Not TrimSpace: a path can end in a space or a newline.
	return strings.TrimSuffix(string(out), "\n"), err
}

// maybe is git for a question that git answers with exit code 1 if there is none.
func (insp *inspector) maybe(args ...string) (answer string, ok bool, err error) {
	answer, err = insp.git(args...)
	if git.Exited(err, 1) {
		return "", false, nil
	}
	return answer, err == nil, err
}

const mendRepository = "mend it (git status and git fsck say more), or clone it anew"

// shortages are git's messages when the machine lacks some resource. A later attempt may succeed.
var shortages = []string{
	"ut of memory", "Cannot allocate memory", "Resource temporarily unavailable", "Too many open files", "Input/output error", "Stale file handle",
}

// unreadable makes a *Precondition of an error with a repository that an attempt would fail on again: git's message, or
// a path that is not there or not allowed.
func unreadable(place string, err error) error {
	if err == nil || len(Failed(err)) > 0 {
		return err
	}
	name := git.Quote(git.Redact(place))
	ge := git.Failure(err)
	if git.Exited(err, 128) && !ge.NoRoom() && !saysAny(ge.Stderr, shortages) {
		return &Precondition{Code: Unreadable, What: fmt.Sprintf("git can't read %s: %s", name, lastWords(ge.Stderr)), Do: mendRepository}
	}
	for _, lasting := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG} {
		if errors.Is(err, lasting) && !errors.Is(err, exec.ErrNotFound) {
			return &Precondition{Code: Unreadable, What: fmt.Sprintf("%s can't be read: %v", name, err), Do: "correct repo.path, or let this user read that folder"}
		}
	}
	return err
}

// readSettings reads the settings of git that Inspect needs, in one process: the last value of each name that is not empty.
func (insp *inspector) readSettings() error {
	out, _, err := insp.maybe("config", "-z", "--get-regexp", `^(extensions\.partialclone|remote\..*\.promisor|remote\.origin\.url|(user|author)\.(name|email))$`)
	insp.set = map[string]string{}
	for _, rec := range git.Fields([]byte(out)) {
		if key, value, _ := strings.Cut(rec, "\n"); value != "" || insp.set[key] == "" {
			insp.set[key] = value
		}
	}
	return err
}

// ascend continues at the top of the working tree. A held folder is the top already.
func (insp *inspector) ascend() error {
	if insp.repo.folder != nil {
		return nil
	}
	if fi, err := os.Stat(insp.repo.Address); errors.Is(err, fs.ErrNotExist) || err == nil && !fi.IsDir() {
		return &Precondition{Code: NoSuchPath, What: fmt.Sprintf("there is no folder %s", git.Quote(insp.repo.Address)),
			Do: "give the path of a git repository as repo.path"}
	} else if err != nil {
		return err
	}
	top, err := insp.toplevel()
	insp.repo = At(top)
	return err
}

// gitDir returns the path of one of git's folders, by the option of rev-parse that names it.
func (insp *inspector) gitDir(flag string) (string, error) {
	var err error
	dir := insp.dir
	if dir == "" || flag != "--git-dir" {
		dir, err = insp.git("rev-parse", flag)
	}
	if err != nil || filepath.IsAbs(dir) {
		return dir, err
	}
	// Not cleaned: here may be a link, and "7/.." of /proc/self/fd/7 is the parent of where it leads.
	return insp.repo.here() + "/" + dir, nil
}

func (insp *inspector) toplevel() (string, error) {
	top, err := insp.git("rev-parse", "--show-toplevel")
	if err == nil && top != "" {
		return top, nil
	}
	ge := git.Failure(err)
	if err != nil && ge == nil {
		return "", err
	}
	switch bare, _ := insp.git("rev-parse", "--is-bare-repository"); {
	case bare == "true":
		return "", &Precondition{Code: BareRepository, What: fmt.Sprintf("%s is a bare repository", git.Quote(insp.repo.Address)),
			Do: "give it as repo.url, or a clone of it as repo.path"}
	case ge != nil && strings.Contains(ge.Stderr, "dubious ownership"):
		return "", &Precondition{Code: NotTrusted, What: fmt.Sprintf("git does not trust %s: it belongs to another user", git.Quote(insp.repo.Address)),
			Do: "run git config --global --add safe.directory with its path if you trust it"}
	case ge != nil && !strings.Contains(ge.Stderr, "not a git repository") && !strings.Contains(ge.Stderr, "must be run in a work tree"):
		return "", err
	}
	return "", &Precondition{Code: NotARepository, What: fmt.Sprintf("%s is not in a git repository", git.Quote(insp.repo.Address)),
		Do: "run git init, commit what is there, and start again"}
}

func (insp *inspector) format() error {
	out, err := insp.git("rev-parse", "--show-object-format", "--git-dir")
	format, dir, _ := strings.Cut(out, "\n")
	insp.dir = dir
	if err == nil && format != "sha1" {
		err = &Precondition{Code: ObjectFormat, What: fmt.Sprintf("the repository's object format is %s", git.Quote(format)),
			Do: "use a repository with SHA-1 objects; pawl knows no other yet"}
	}
	return err
}

func (insp *inspector) branch(s *Source, base string) error {
	head, _, err := insp.maybe("symbolic-ref", "-q", "HEAD")
	if err != nil {
		return err
	}
	s.Current, _ = strings.CutPrefix(head, "refs/heads/")
	if base == "" {
		if head == "" {
			if err := insp.unfinished(nil); err != nil {
				return err
			}
			return &Precondition{Code: DetachedHead, What: "HEAD is detached: no branch is checked out",
				Do: "make a branch here (`git switch -c NAME`), or name the one to start from as repo.base"}
		}
		base = s.Current
	}
	s.Branch = strings.TrimPrefix(base, "refs/heads/")
	if err := git.CheckBranch(s.Branch); err != nil {
		return noSuchBranch("%s is not a branch's name", s.Branch)
	}
	s.Head, err = insp.git("rev-parse", "-q", "--verify", "refs/heads/"+s.Branch+"^{commit}")
	switch {
	case err == nil && git.IsHash(s.Head):
		return nil
	case err != nil && !git.Exited(err, 1):
		return err
	}
	if path, err := insp.git("rev-parse", "-q", "--verify", "refs/heads/"+s.Branch); err == nil {
		return &Precondition{Code: Unreadable, What: fmt.Sprintf("the repository does not have the commit that branch %s is at, %s", git.Quote(s.Branch), path),
			Do: mendRepository}
	}
	if s.Branch == s.Current {
		return &Precondition{Code: NoCommit, What: fmt.Sprintf("branch %s has no commit yet", git.Quote(s.Branch)),
			Do: "commit what is there, and start again"}
	}
	return noSuchBranch("there is no branch %s", s.Branch)
}

// whole checks that a partial clone (git clone --filter) has everything that its branch needs. git does not fetch
// missing objects for another repository.
func (insp *inspector) whole(s *Source) error {
	partial := func(key string) bool { return key == "extensions.partialclone" || strings.HasSuffix(key, ".promisor") }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(insp.set)), partial) {
		return nil // it is a full clone
	}
	missing := false
	c := insp.repo.user().Command("rev-list", "--objects", "--missing=print", s.Head, "--")
	c.Stdout = func(out io.Reader) error {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if missing = strings.HasPrefix(lines.Text(), "?"); missing {
				return git.ErrEnough
			}
		}
		return nil
	}
	if _, err := c.Run(insp.ctx); err != nil {
		return err
	}
	if !missing {
		return nil
	}
	return &Precondition{Code: PartialClone, What: fmt.Sprintf("the repository is a partial clone, and objects of branch %s are not in it", git.Quote(s.Branch)),
		Do: "fetch them (git fetch --refetch --no-filter), or clone it without --filter"}
}

// names checks for refs that would prevent the loop's refs. Git keeps refs as files in folders, so refs/heads/pawl
// and refs/heads/pawl/x exclude each other.
func (insp *inspector) names(s *Source, loopRef string) error {
	out, err := insp.git("for-each-ref", "--format=%(refname)", "refs/heads/pawl", "refs/pawl-ledger")
	if err != nil {
		return err
	}
	s.Loops, err = taken(strings.Fields(out), loopRef) // the name of a ref has no white space
	return err
}

// taken returns the names below refs/heads/pawl/ and refs/pawl-ledger/ among the refs. The error is *Precondition if
// one of the refs excludes the loop's.
func taken(refs []string, loopRef string) ([]string, error) {
	if loopRef != "" {
		if err := git.CheckRef(loopRef); err != nil {
			return nil, err
		}
	}
	names := map[string]bool{}
	for _, ref := range refs {
		inTheWay := ref == "refs/heads/pawl" || ref == "refs/pawl-ledger"
		if loop, ok := strings.CutPrefix(loopRef, "refs/heads/pawl/"); ok {
			inTheWay = inTheWay || strings.HasPrefix(ref, loopRef+"/") || strings.HasPrefix(ref, "refs/pawl-ledger/"+loop+"/") ||
				strings.HasPrefix(loopRef, ref+"/")
		}
		if inTheWay {
			short, branch := strings.CutPrefix(ref, "refs/heads/")
			problem, do := "the branch %s is in the way of the loop's own", "rename it (git branch -m %s <other name>)"
			if !branch {
				problem, do = "the ref %s is in the way of the loop's ledger", "remove it if nothing needs it (git update-ref -d %s)"
			}
			if ref != "refs/heads/pawl" && ref != "refs/pawl-ledger" {
				do += ", or give the loop another name"
			}
			return nil, &Precondition{Code: NameInTheWay, What: fmt.Sprintf(problem, git.Quote(short)), Do: fmt.Sprintf(do, git.Quote(short))}
		}
		for _, below := range []string{"refs/heads/pawl/", "refs/pawl-ledger/"} {
			if name, ok := strings.CutPrefix(ref, below); ok {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

func (insp *inspector) lock(*Source) error {
	if _, err := os.Lstat(filepath.Join(insp.repo.here(), "loop-results.tsv.lock")); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return &Precondition{Code: StaleLock, What: "loop-results.tsv.lock exists: another tool's loop runs here or died here",
		Do: "make sure that none runs, then remove it"}
}

func (insp *inspector) clean(s *Source) error {
	if s.Branch != s.Current {
		return nil
	}
	out, err := insp.git("status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames")
	if err != nil {
		return err
	}
	var dirty, unmerged []string
	for _, rec := range git.Fields([]byte(out)) {
		switch path := rec[3:]; rec[:2] {
		case "DD", "AU", "UD", "UA", "DU", "AA", "UU":
			unmerged = append(unmerged, path)
		default:
			if !store.IsRootFile(path) {
				dirty = append(dirty, path)
			}
		}
	}
	if err := insp.unfinished(unmerged); err != nil {
		return err
	}
	if len(unmerged) > 0 { // for example after a stash that conflicts
		return &Precondition{Code: UnmergedTree, What: "files are not merged: " + git.QuoteSome(unmerged),
			Do: "resolve and commit them"}
	}
	if len(dirty) > 0 {
		return &Precondition{Code: DirtyTree, What: "the working tree is not clean: " + git.QuoteSome(dirty),
			Do: "commit or stash what is there (git stash -u)", Paths: dirty}
	}
	return nil
}

// operations are the unfinished operations of git, by the file in its folder that exists meanwhile.
var operations = []struct{ file, what, do string }{
	{"rebase-merge", "a rebase is not finished", "finish it (git rebase --continue), or abort it (git rebase --abort)"},
	{"rebase-apply", "a rebase or git am is not finished", "finish it (--continue), or abort it (--abort)"},
	{"MERGE_HEAD", "a merge is not finished", "resolve and commit it, or abort it (git merge --abort)"},
	{"CHERRY_PICK_HEAD", "a cherry-pick is not finished", "finish it (git cherry-pick --continue), or abort it (git cherry-pick --abort)"},
	{"REVERT_HEAD", "a revert is not finished", "finish it (git revert --continue), or abort it (git revert --abort)"},
}

// unfinished returns a *Precondition if an operation of git is unfinished, with the files that keep it so.
func (insp *inspector) unfinished(unmerged []string) error {
	dir, err := insp.gitDir("--git-dir")
	if err != nil {
		return err
	}
	for _, o := range operations {
		if _, err := os.Lstat(filepath.Join(dir, o.file)); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if len(unmerged) > 0 {
			o.what += ": " + git.QuoteSome(unmerged)
		}
		return &Precondition{Code: UnmergedTree, What: o.what, Do: o.do}
	}
	return nil
}

func (insp *inspector) identity() git.Identity {
	id := git.Identity{Name: cmp.Or(insp.set["author.name"], insp.set["user.name"]), Email: cmp.Or(insp.set["author.email"], insp.set["user.email"])}
	if id.Name == "" || id.Email == "" {
		return git.Identity{Name: "pawl", Email: "pawl@localhost"}
	}
	return id
}

// Find opens the repository whose working tree contains a folder. See Held for what follows from that. The error is a
// *Precondition if there is none. Close closes it.
func Find(ctx context.Context, dir string) (Repo, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Repo{}, err
	}
	insp := inspector{ctx: ctx, repo: At(abs)}
	if err := insp.ascend(); err != nil {
		return Repo{}, unreadable(abs, err)
	}
	f, err := dirfd.Open(insp.repo.Address)
	if err != nil {
		return Repo{}, unreadable(abs, err)
	}
	return Held(f), nil
}

// FindAt opens the repository at a URL. See HeldAt for what follows from that if it has a path on this host; local is ""
// if it has none. A folder that can't be opened is left to git, which says why. Close closes it.
func FindAt(url, local string) Repo {
	if local != "" {
		if f, err := dirfd.Open(local); err == nil {
			return HeldAt(url, f)
		}
	}
	return At(url)
}

// Root returns the top of the working tree that contains dir.
func Root(ctx context.Context, dir string) (string, error) {
	insp := inspector{ctx: ctx, repo: At(dir)}
	top, err := insp.toplevel()
	return top, unreadable(dir, err)
}

// Begun reports whether the branch that is checked out has a commit.
func Begun(ctx context.Context, root string) bool {
	_, err := At(root).user().Run(ctx, "rev-parse", "-q", "--verify", "HEAD^{commit}")
	return err == nil
}

// Files lists the files of the working tree at root, with slashes and sorted. It includes files that are not added
// yet, but not those that git ignores.
func Files(ctx context.Context, root string) ([]string, error) {
	out, err := At(root).user().Run(ctx, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	if err != nil {
		return nil, err
	}
	return slices.Sorted(slices.Values(git.Fields(out))), nil
}
