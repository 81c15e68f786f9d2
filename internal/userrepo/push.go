package userrepo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/git"
	"pawl/internal/held"
	"pawl/internal/shell"
	"pawl/internal/store"
)

// checkAddress keeps an address from being taken for an option, or for more than one line.
func checkAddress(address string) error {
	if address == "" || strings.HasPrefix(address, "-") || strings.ContainsRune(address, 0) || strings.Contains(address, "\n") && !isLocal(address) {
		return fmt.Errorf("%s is not a repository's path or URL", git.Quote(address))
	}
	return nil
}

// isURL reports whether git will take an address for a URL.
func isURL(address string) bool { return strings.Contains(address, "://") }

// isLocal reports whether git will take an address for a path on this host.
func isLocal(address string) bool {
	if isURL(address) {
		return false
	}
	_, err := os.Stat(address)
	return err == nil
}

// Fetch copies a branch's commit and everything that it needs into the store and returns it.
// The objects are copies, and no tags come with them.
func Fetch(ctx context.Context, s *store.Store, source Repo, branch string) (commit string, err error) {
	branch = strings.TrimPrefix(branch, "refs/heads/")
	if err := git.CheckBranch(branch); err != nil {
		return "", err
	}
	return fetch(ctx, s, source, "refs/heads/"+branch, branch)
}

// FetchLedger is Fetch for a loop's ledger, and with it the code that the ledger stands for.
func FetchLedger(ctx context.Context, s *store.Store, source Repo, ref string) (commit string, err error) {
	if err := git.CheckRef(ref); err != nil {
		return "", err
	}
	return fetch(ctx, s, source, ref, ref)
}

// FetchTags copies those tags of a repository into the store that stand for a commit which the store has of a ref, or
// of what comes before it, and those that the store has and that have moved since. A tag that is gone stays. The ref has
// been fetched. It waits no longer than a repository may take to say which refs it has.
func FetchTags(ctx context.Context, s *store.Store, source Repo, ref string) error {
	run, from, err := source.from(s)
	if err = errors.Join(err, git.CheckRef(ref)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	lock, err := s.LockFetch(ctx, "refs/tags")
	if err != nil {
		return err
	}
	defer lock.Close()
	args := slices.DeleteFunc(slices.Clone(fetchArgs), func(arg string) bool { return arg == "--no-tags" })
	if source.isLocal() {
		args = append(args, uploadPack())
	}
	moved, err := movedTags(ctx, s, source)
	if err != nil {
		return err
	}
	args = append(args, "--", from, "+"+ref+":refs/pawl-tagged")
	for _, tag := range moved {
		args = append(args, "+"+tag+":"+tag)
	}
	_, err = run.Run(ctx, args...)
	return err
}

// maxTags bounds how many of the tags that the store has are looked up again: one that has moved is an argument.
const maxTags = 2000

// movedTags are the tags that the store has and that are others by now: git fetches none of them by itself.
func movedTags(ctx context.Context, s *store.Store, source Repo) (moved []string, err error) {
	out, err := s.Git().Command("for-each-ref", "--sort=-creatordate", fmt.Sprintf("--count=%d", maxTags), "--format=%(refname) %(objectname)", "refs/tags").Run(ctx)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	have := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		have[name] = id
	}
	there, err := Refs(ctx, s, source, "refs/tags/*")
	if err != nil {
		return nil, err
	}
	for name, id := range there {
		if was, is := have[name]; is && was != id {
			moved = append(moved, name)
		}
	}
	slices.Sort(moved)
	return moved, nil
}

// fetchArgs copy commits and nothing else. A shallow clone is common in CI; what fetches from it
// becomes shallow too.
var fetchArgs = []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
	"--no-recurse-submodules", "--no-write-commit-graph", "--no-prune", "--update-shallow", "--refmap="}

// uploadPack has a repository of this host hand out its objects without running anything of its own. On one host,
// looking for the smallest pack costs far more than it saves.
func uploadPack() string {
	return "--upload-pack=GIT_GRAFT_FILE=/dev/null/none " + shell.Quote(git.Program()) + " -c core.hooksPath=/dev/null -c core.alternateRefsCommand=: -c pack.window=0 -c pack.compression=1 upload-pack"
}

func fetch(ctx context.Context, s *store.Store, source Repo, what, name string) (commit string, err error) {
	run, from, err := source.from(s)
	if err != nil {
		return "", err
	}
	address := source.Address
	if source.isLocal() {
		if address, err = filepath.Abs(address); err != nil {
			return "", err
		}
	}
	// A ref of its own for each source and branch keeps the objects, and branches called "a" and
	// "a/b" (one now, the other later) do not exclude each other.
	sum := sha256.Sum256([]byte(address + "\x00" + name))
	ref := "refs/pawl-source/" + hex.EncodeToString(sum[:8])

	// Two fetches of the same branch would fail on each other's ref lock.
	lock, err := s.LockFetch(ctx, ref)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	args := slices.Clone(fetchArgs)
	if source.isLocal() {
		args = append(args, uploadPack())
	}
	_, err = run.Run(ctx, append(args, "--", from, "+"+what+":"+ref)...)
	var ge *git.Error
	switch {
	case errors.As(err, &ge) && strings.Contains(ge.Stderr, "possible repository corruption"): // what the other side says of itself
		return "", unreadable(address, err)
	case err != nil:
		return "", err
	}
	commit, err = s.Ref(ctx, ref)
	if err == nil && commit == "" {
		err = fmt.Errorf("fetching %s from %s left no commit", git.Quote(name), git.Quote(address))
	}
	return commit, err
}

// FetchAs copies refs of a repository, with all that they stand for, into a store under other names. A ref that the
// repository does not have is left out.
func FetchAs(ctx context.Context, s *store.Store, source Repo, as map[string]string) error {
	run, from, err := source.from(s)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(as))
	there, err := Refs(ctx, s, source, names...)
	if err != nil {
		return err
	}
	args := slices.Clone(fetchArgs)
	if source.isLocal() {
		args = append(args, uploadPack())
	}
	args = append(args, "--", from)
	n := len(args)
	for _, name := range names {
		if there[name] != "" {
			args = append(args, "+"+name+":"+as[name])
		}
	}
	if len(args) == n {
		return nil
	}
	_, err = run.Run(ctx, args...)
	return err
}

// Refused says that the other repository was reached and did not take a ref. It is no failure of
// infrastructure: the loop goes on, says so, and tries again with the next push.
type Refused struct {
	Ref    string // there
	Reason string // as git put it
	Do     string // what it means or what helps, "" where that is not known
	Moved  bool   // it is not where pawl left it
}

func (e *Refused) Error() string {
	text := fmt.Sprintf("%s was not taken: %s", e.Ref, e.Reason)
	if e.Do != "" {
		text += "; " + e.Do
	}
	return text
}

const movedThere = "the ref has been moved there"

// refusals are what git says where a ref is not taken, by its words.
var refusals = []struct {
	words []string
	do    string
}{
	{[]string{"non-fast-forward", "fetch first", "stale info", "needs force", "already exists"}, movedThere},
	{[]string{"checked out"}, "check out another branch there"},
	{[]string{"hook"}, "a hook there refuses it"},
}

// Push updates refs in another repository, each only forwards (a refspec beginning with '+', or
// one that deletes, is an error). The error is *Refused where the other side was reached and
// refused a ref, else *git.Error. Refs that were not refused have been updated.
func Push(ctx context.Context, s *store.Store, to Repo, refspecs ...string) error {
	return push(ctx, s, to, nil, refspecs...)
}

func push(ctx context.Context, s *store.Store, to Repo, options []string, refspecs ...string) error {
	run, there, err := to.from(s)
	if err != nil {
		return err
	}
	for _, spec := range refspecs {
		src, dst, ok := strings.Cut(spec, ":")
		if !ok {
			dst = src
		}
		if err := errors.Join(git.CheckRev(src), git.CheckRef(dst)); err != nil {
			return err
		}
	}
	args := []string{"push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no"}
	objects := to.objects()
	if to.isLocal() {
		named := ""
		if objects != nil {
			defer objects.Close()
			named = "GIT_OBJECT_DIRECTORY=" + held.Third + " "
		}
		// No hook runs there, and taking a push is no reason to repack the user's repository.
		args = append(args, "--receive-pack="+named+shell.Quote(git.Program())+" -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.alternateRefsCommand=: -c receive.autogc=false -c gc.auto=0 -c maintenance.auto=false receive-pack")
	}
	command := run.Command(slices.Concat(args, options, []string{"--", there}, refspecs)...)
	command.Inherit = objects
	out, err := command.Run(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if r := parseRefused(out); r != nil {
		return r
	}
	return err
}

// parseRefused reads `git push --porcelain`: "<flag>\t<from>:<to>\t<summary> (<reason>)".
func parseRefused(out []byte) *Refused {
	for line := range bytes.Lines(out) {
		f := strings.SplitN(strings.TrimRight(string(line), "\n"), "\t", 3)
		if len(f) != 3 || f[0] != "!" {
			continue
		}
		_, ref, _ := strings.Cut(f[1], ":")
		r := &Refused{Ref: ref, Reason: git.Redact(f[2])}
		for _, known := range refusals {
			if r.Do == "" && saysAny(f[2], known.words) {
				r.Do, r.Moved = known.do, known.do == movedThere
			}
		}
		return r
	}
	return nil
}

// saysAny reports whether one of the phrases is in the text.
func saysAny(text string, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(phrase string) bool { return strings.Contains(text, phrase) })
}
