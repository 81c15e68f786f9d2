package userrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pawl/internal/git"
	"pawl/internal/git/store"
)

// More codes of Precondition, for repositories at a URL.
const (
	Unreachable      = "unreachable"
	NeedsCredentials = "needs-credentials"
	NoSuchRepository = "no-such-repository"
	ReadOnly         = "read-only" // it can be fetched from, but not pushed to
)

// reachLimit is how long a repository may take to list its refs. A server that accepts connections and never answers
// must not block anybody.
const reachLimit = time.Minute

// Refs returns the objects of the refs of another repository that match the patterns. The value of HEAD, if it is
// asked for, is the short name of its branch, "" if it has none. That branch is among the refs then.
func Refs(ctx context.Context, s *store.Store, repo Repo, patterns ...string) (map[string]string, error) {
	run, from, err := repo.from(s)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	out, err := run.Run(bounded, append([]string{"ls-remote", "--quiet", "--symref", "--", from}, patterns...)...)
	if err != nil {
		if ctx.Err() == nil && bounded.Err() != nil {
			err = &Precondition{Code: Unreachable, What: fmt.Sprintf("%s does not answer within %s", git.Quote(git.Redact(repo.Address)), reachLimit), Do: mendReach}
		}
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		value, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		switch branch, symbolic := strings.CutPrefix(value, "ref: refs/heads/"); {
		case symbolic && ref == "HEAD":
			refs[ref] = branch
		case ref == "HEAD" && refs[ref] != "":
			refs["refs/heads/"+refs[ref]] = value
		case ref == "HEAD", strings.HasPrefix(value, "ref: "), strings.HasSuffix(ref, "^{}"):
		default:
			refs[ref] = value
		}
	}
	return refs, nil
}

// InspectAt checks what P0 requires of a repository at a URL, as Inspect does for one with a working tree: it exists
// and answers, it has the branch (that of its HEAD if base is ""), and nothing prevents the loop's refs. The identity
// comes from the user's git configuration on this host.
func InspectAt(ctx context.Context, s *store.Store, repo Repo, base, loopRef string) (Source, error) {
	url := repo.Address
	out := Source{Path: url, Origin: Origin(url), Branch: strings.TrimPrefix(base, "refs/heads/")}
	patterns := []string{"HEAD", "refs/heads/pawl", "refs/heads/pawl/*", "refs/pawl-ledger", "refs/pawl-ledger/*"}
	if out.Branch != "" {
		if err := git.CheckBranch(out.Branch); err != nil {
			return Source{}, noSuchBranch("%s is not a branch's name", out.Branch)
		}
		patterns = append(patterns, "refs/heads/"+out.Branch)
	}
	refs, err := Refs(ctx, s, repo, patterns...)
	if err != nil {
		return Source{}, Unreached(url, err)
	}
	out.Branch = cmp.Or(out.Branch, refs["HEAD"])
	out.Head = refs["refs/heads/"+out.Branch]
	switch {
	case out.Branch == "":
		return Source{}, &Precondition{Code: NoCommit, What: fmt.Sprintf("%s has no commit yet, or its HEAD is none of its branches", git.Quote(url)),
			Do: "push a branch to it, or name the one to start from as repo.base"}
	case out.Head == "":
		return Source{}, noSuchBranch("there is no branch %s in "+git.Quote(url), out.Branch)
	case !git.IsHash(out.Head):
		return Source{}, &Precondition{Code: ObjectFormat, What: fmt.Sprintf("the object format of %s is not SHA-1", git.Quote(url)),
			Do: "use a repository with SHA-1 objects; pawl knows no other yet"}
	}
	if out.Identity, err = UserIdentity(ctx, s); err != nil {
		return Source{}, err
	}
	out.Loops, err = taken(slices.Collect(maps.Keys(refs)), loopRef)
	return out, err
}

func noSuchBranch(subject, branch string) error {
	return &Precondition{Code: NoSuchBranch, What: fmt.Sprintf(subject, git.Quote(branch)), Do: "name an existing branch as repo.base"}
}

// UserIdentity returns the identity that the commits of this host's user have by default. It needs no working tree.
func UserIdentity(ctx context.Context, s *store.Store) (git.Identity, error) {
	insp := inspector{ctx: ctx, repo: At(s.Dir()), env: []string{"GIT_DIR=" + s.Dir()}}
	err := insp.readSettings()
	return insp.identity(), err
}

// MayPush asks a repository whether it would accept a commit as a new ref, and changes nothing. The error is
// *Precondition if it accepts none from this user. A refusal of this ref, for example because it exists, is no error.
func MayPush(ctx context.Context, s *store.Store, repo Repo, commit, ref string) error {
	url := repo.Address
	err := push(ctx, s, repo, []string{"--dry-run"}, commit+":"+ref)
	if _, refused := errors.AsType[*Refused](err); err == nil || refused {
		return nil
	}
	err = Unreached(url, err)
	if pre, ok := errors.AsType[*Precondition](err); ok && pre.Code != NeedsCredentials { // it was just readable
		pre.What = fmt.Sprintf("%s can be read, but pawl may not push to it, and a loop keeps its branch and its ledger there%s", git.Quote(git.Redact(url)), saying(pre.What))
		pre.Code, pre.Do = ReadOnly, "give yourself the right to push (with git daemon: --enable=receive-pack), or work on a clone of it as repo.path"
	}
	return err
}

func saying(message string) string {
	if _, said, ok := strings.Cut(message, ": "); ok {
		return ": " + said
	}
	return ""
}

// Move sets a ref of another repository to a commit of the store, forwards or not, if it is at from there ("" for
// absent). The error is *store.Fenced if it is elsewhere, and *Refused if the other side does not accept it. If it is
// at the commit already, that is no error.
func Move(ctx context.Context, s *store.Store, repo Repo, ref, to, from string) error {
	if err := errors.Join(git.CheckRef(ref), git.CheckHashes(to, cmp.Or(from, git.NoHash))); err != nil {
		return err
	}
	err := push(ctx, s, repo, []string{"--force-with-lease=" + ref + ":" + from}, to+":"+ref)
	if _, refused := errors.AsType[*Refused](err); !refused {
		return err
	}
	refs, look := Refs(ctx, s, repo, ref)
	switch have := refs[ref]; {
	case look != nil:
		return errors.Join(err, look)
	case have == to:
		return nil
	case have != from:
		return &store.Fenced{Ref: ref, Want: from, Have: have}
	}
	return err
}

// LandAt is Land for a repository at a URL. Its branch moves by compare-and-swap, and its own hooks may refuse that.
func LandAt(ctx context.Context, s *store.Store, l Landing) error {
	if err := errors.Join(git.CheckHashes(l.From, l.To), git.CheckBranch(l.Branch)); err != nil {
		return err
	}
	err := Move(ctx, s, l.Repo, "refs/heads/"+l.Branch, l.To, l.From)
	if refused, ok := errors.AsType[*Refused](err); ok {
		return &Precondition{Code: ReadOnly, What: fmt.Sprintf("%s does not take the branch %s: %s", git.Quote(l.Repo.Address), git.Quote(l.Branch), refused.Reason+refused.Saying()),
			Do: "see what it asks for (a protected branch?), or take the loop's branch through its own review, or the change as a patch (--how patch)"}
	}
	return Unreached(l.Repo.Address, err)
}

const mendReach = "check the URL, and that `git ls-remote` with it works on the worker's host"

// failures are the messages of git and ssh for a repository that can't be reached, by their words. The first that
// matches counts. Anything else is a repository that does not answer.
var failures = []struct {
	words    []string
	code, is string
	do       string
}{
	{[]string{"could not read Username", "could not read Password", "terminal prompts disabled", "Authentication failed", "returned error: 401", "returned error: 403"},
		NeedsCredentials, "wants credentials that git does not have here",
		"let git's credential helper have them (git config --global credential.helper store, then git credential approve), or give an ssh URL; nobody is there to type them in"},
	{[]string{"Permission denied (", "Host key verification failed", "Too many authentication failures"},
		NeedsCredentials, "is not open to this user's ssh",
		"let the worker have the key, by an ssh agent (SSH_AUTH_SOCK) or in ~/.ssh, and the host in ~/.ssh/known_hosts; nobody is there to type anything in"},
	{[]string{"not found", "does not appear to be a git repository", "not exported", "does not exist", "No such file", "dubious ownership", "service not enabled", "access denied"},
		NoSuchRepository, "is no repository that this user may read", "check the URL, and that this user may read it"},
	{nil, Unreachable, "can't be reached", mendReach},
}

// Unreached turns git's failure to talk to a repository into a *Precondition. It returns any other error unchanged.
func Unreached(url string, err error) error {
	ge := git.Failure(err)
	if ge == nil || ge.Stderr == "" {
		return err
	}
	for _, f := range failures {
		if f.words == nil || saysAny(ge.Stderr, f.words) {
			return &Precondition{Code: f.code, What: fmt.Sprintf("%s %s: %s", git.Quote(git.Redact(url)), f.is, lastWords(ge.Stderr)), Do: f.do}
		}
	}
	return err
}

// lastWords returns git's message in one line: the fatal error, and before that the message of ssh.
func lastWords(stderr string) string {
	var said []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "Please make sure") || strings.HasPrefix(line, "and the repository exists") || strings.HasPrefix(line, "hint:") {
			continue
		}
		said = append(said, strings.TrimPrefix(line, "fatal: "))
	}
	return strings.Join(said[max(0, len(said)-3):], "; ")
}
