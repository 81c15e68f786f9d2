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
	"pawl/internal/git/store"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
)

// checkAddress returns an error for an address that git would read as an option, or that has several lines.
func checkAddress(address string) error {
	if address == "" || strings.HasPrefix(address, "-") || strings.ContainsRune(address, 0) || strings.Contains(address, "\n") && !isLocal(address) {
		return fmt.Errorf("%s is not a repository's path or URL", git.Quote(address))
	}
	return nil
}

// isURL reports whether git reads an address as a URL.
func isURL(address string) bool { return strings.Contains(address, "://") }

// isLocal reports whether git reads an address as a path on this host.
func isLocal(address string) bool {
	if isURL(address) {
		return false
	}
	_, err := os.Stat(address)
	return err == nil
}

// Fetch copies a branch's commit, and everything that it needs, into the store, and returns the commit. The objects
// are copies. No tags are copied.
func Fetch(ctx context.Context, s *store.Store, source Repo, branch string) (commit string, err error) {
	branch = strings.TrimPrefix(branch, "refs/heads/")
	if err := git.CheckBranch(branch); err != nil {
		return "", err
	}
	return fetch(ctx, s, source, "refs/heads/"+branch, branch)
}

// FetchLedger is Fetch for a loop's ledger, including the code that the ledger refers to.
func FetchLedger(ctx context.Context, s *store.Store, source Repo, ref string) (commit string, err error) {
	if err := git.CheckRef(ref); err != nil {
		return "", err
	}
	return fetch(ctx, s, source, ref, ref)
}

// FetchTags copies tags of a repository into the store: those of commits that the store has in the history of a ref,
// which was fetched before, and those that the store has and that have moved since. Tags that are gone from the
// repository stay in the store. FetchTags waits at most reachLimit.
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
	args := slices.DeleteFunc(source.fetching(), func(arg string) bool { return arg == "--no-tags" })
	moved, err := movedTags(ctx, s, source)
	if err != nil {
		return err
	}
	args = append(args, "--", from, "+"+ref+":refs/pawl-tagged")
	args = append(args, list.Map(moved, func(tag string) string { return "+" + tag + ":" + tag })...)
	_, err = run.Run(ctx, args...)
	return err
}

// maxTags limits how many of the store's tags are looked up again, because each moved tag is an argument of a
// command.
const maxTags = 2000

// movedTags returns the store's tags that the repository has at another object. Git does not fetch those by itself.
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
	remoteTags, err := Refs(ctx, s, source, "refs/tags/*")
	if err != nil {
		return nil, err
	}
	for name, id := range remoteTags {
		if previous, ok := have[name]; ok && previous != id {
			moved = append(moved, name)
		}
	}
	slices.Sort(moved)
	return moved, nil
}

// fetchArgs copy commits and nothing else. Shallow clones are common in CI; a store that fetches from one becomes
// shallow too.
var fetchArgs = []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
	"--no-recurse-submodules", "--no-write-commit-graph", "--no-prune", "--update-shallow", "--refmap="}

// fetching returns the arguments of a fetch from the repository. One on this host sends its objects without running
// its own programs. On one host, searching for the smallest pack costs far more than it saves.
func (r Repo) fetching() []string {
	if !r.isLocal() {
		return slices.Clone(fetchArgs)
	}
	return append(slices.Clone(fetchArgs), "--upload-pack=GIT_GRAFT_FILE=/dev/null/none "+shell.Quote(git.Program())+
		" -c core.hooksPath=/dev/null -c core.alternateRefsCommand=: -c pack.window=0 -c pack.compression=1 upload-pack")
}

func fetch(ctx context.Context, s *store.Store, source Repo, refspec, name string) (commit string, err error) {
	run, from, err := source.from(s)
	if err != nil {
		return "", err
	}
	address := source.Address
	if source.isLocal() {
		address, _ = filepath.Abs(address) // as from did it
	}
	// Each source and branch has a ref of its own, which keeps the objects. So branches "a" and "a/b", one now and
	// the other later, do not exclude each other.
	sum := sha256.Sum256([]byte(address + "\x00" + name))
	ref := "refs/pawl-source/" + hex.EncodeToString(sum[:8])

	// Two fetches of the same branch would fail on each other's ref lock.
	lock, err := s.LockFetch(ctx, ref)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	_, err = run.Run(ctx, append(source.fetching(), "--", from, "+"+refspec+":"+ref)...)
	if ge, ok := errors.AsType[*git.Error](err); ok && strings.Contains(ge.Stderr, "possible repository corruption") { // the other side reports damage
		err = unreadable(address, err)
	}
	if err != nil {
		return "", err
	}
	commit, err = s.Ref(ctx, ref)
	if err == nil && commit == "" {
		err = fmt.Errorf("fetching %s from %s left no commit", git.Quote(name), git.Quote(address))
	}
	return commit, err
}

// FetchAs copies refs of a repository, with all their objects, into a store under other names. It skips refs that the
// repository does not have.
func FetchAs(ctx context.Context, s *store.Store, source Repo, refNames map[string]string) error {
	run, from, err := source.from(s)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(refNames))
	remoteRefs, err := Refs(ctx, s, source, names...)
	if err != nil {
		return err
	}
	var specs []string
	for _, name := range names {
		if remoteRefs[name] != "" {
			specs = append(specs, "+"+name+":"+refNames[name])
		}
	}
	if len(specs) == 0 {
		return nil
	}
	_, err = run.Run(ctx, slices.Concat(source.fetching(), []string{"--", from}, specs)...)
	return err
}

// Refused is the error for a ref that the other repository was asked to update and refused. It is no failure of
// infrastructure: the loop continues, reports it, and tries again with the next push.
type Refused struct {
	Ref    string // the ref in the other repository
	Reason string // in git's words
	Said   string // what the other side printed, for example its hook, in one line; "" for nothing
	Do     string // what it means or what helps, "" if that is not known
	Moved  bool   // the ref is not where pawl left it
}

func (e *Refused) Error() string {
	text := fmt.Sprintf("%s was not taken: %s%s", e.Ref, e.Reason, e.Saying())
	if e.Do != "" {
		text += "; " + e.Do
	}
	return text
}

// Saying returns what the other side printed, to be added to a sentence.
func (e *Refused) Saying() string {
	if e.Said == "" {
		return ""
	}
	return "; it says: " + e.Said
}

const movedThere = "the ref has been moved there"

// refusals are git's messages about a refused ref, by their words.
var refusals = []struct {
	words []string
	do    string
}{
	{[]string{"non-fast-forward", "fetch first", "stale info", "needs force", "already exists"}, movedThere},
	{[]string{"checked out"}, "check out another branch there"},
	{[]string{"hook"}, "a hook there refuses it"},
}

// Push updates refs in another repository, only forwards. A refspec that begins with '+' or deletes a ref is an
// error. The error is *Refused if the other side was reached and refused a ref, else *git.Error. The refs that were
// not refused have been updated.
func Push(ctx context.Context, s *store.Store, repo Repo, refspecs ...string) error {
	return push(ctx, s, repo, nil, refspecs...)
}

func push(ctx context.Context, s *store.Store, repo Repo, options []string, refspecs ...string) error {
	run, remote, err := repo.from(s)
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
	objects := repo.objects()
	if repo.isLocal() {
		named := ""
		if objects != nil {
			defer objects.Close()
			named = "GIT_OBJECT_DIRECTORY=" + dirfd.Third + " "
		}
		// No hook runs there, and taking a push is no reason to repack the user's repository.
		args = append(args, "--receive-pack="+named+shell.Quote(git.Program())+" -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.alternateRefsCommand=: -c receive.autogc=false -c gc.auto=0 -c maintenance.auto=false receive-pack")
	}
	out, err := run.Command(slices.Concat(args, options, []string{"--", remote}, refspecs)...).Holding(objects).Run(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	r := parseRefused(out)
	if r == nil {
		return err
	}
	if failed := git.Failure(err); failed != nil {
		r.Said = remoteSaid(failed.Stderr)
	}
	return r
}

// mostSaid limits what is repeated of what the other side printed, in bytes.
const mostSaid = 500

// remoteSaid returns the lines that the other side printed during a push, as one line. Git marks them.
func remoteSaid(stderr string) string {
	var lines []string
	for line := range strings.Lines(stderr) {
		said, marked := strings.CutPrefix(line, "remote:")
		said = strings.TrimSpace(said)
		if marked && said != "" {
			lines = append(lines, git.Printable(git.Redact(said)))
		}
	}
	text := strings.Join(lines, " / ")
	if len(text) <= mostSaid {
		return text
	}
	return strings.ToValidUTF8(text[:mostSaid], "") + "…"
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
		for _, row := range refusals {
			if r.Do == "" && saysAny(f[2], row.words) {
				r.Do, r.Moved = row.do, row.do == movedThere
			}
		}
		return r
	}
	return nil
}

func saysAny(text string, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(phrase string) bool { return strings.Contains(text, phrase) })
}
