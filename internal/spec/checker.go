package spec

import (
	"fmt"
	"path"
	"strings"
)

// Checker notes what is wrong with the values of a spec, whatever it is a spec of. Of a key with which
// something is wrong already it notes nothing more.
type Checker struct{ Problems Problems }

// Add notes a problem.
func (c *Checker) Add(key, what, want string) {
	if !c.Problems.Covers(key) {
		c.Problems.Add(key, what, want)
	}
}

// OneOf wants one of some words.
func (c *Checker) OneOf(key, value string, of []string) {
	for _, word := range of {
		if value == word {
			return
		}
	}
	c.Add(key, "is "+Show(value), Or(of))
}

// Or lists words of which one is wanted.
func Or(of []string) string {
	last := len(of) - 1
	if last == 0 {
		return of[0]
	}
	return strings.Join(of[:last], ", ") + " or " + of[last]
}

// Present wants a text that is not blank.
func (c *Checker) Present(key, value, want string) {
	if strings.TrimSpace(value) == "" {
		c.Add(key, missingKey, want)
	}
}

// Positive wants a length of time.
func (c *Checker) Positive(key string, d Duration) {
	if d <= 0 {
		c.Add(key, "is "+d.String(), `more than nothing, such as "30s"`)
	}
}

// Least wants so many or more.
func (c *Checker) Least(key string, n, least int) {
	if n < least {
		c.Add(key, fmt.Sprintf("is %d", n), fmt.Sprintf("%d or more", least))
	}
}

// Command wants what a shell can be given.
func (c *Checker) Command(key, value string) {
	if strings.ContainsRune(value, 0) {
		c.Add(key, "contains a NUL byte", "a command for the shell")
	}
}

// Line wants a text that can be shown on one line; "" is one.
func (c *Checker) Line(key, value, want string) {
	if what := unprintable(value); what != "" {
		c.Add(key, what, want)
	}
}

// Globs wants globs of files in the repository.
func (c *Checker) Globs(key string, list []string) {
	for i, glob := range list {
		c.Glob(fmt.Sprintf("%s[%d]", key, i), glob)
	}
}

// Glob wants a glob of files in the repository.
func (c *Checker) Glob(key, glob string) {
	if what, want := badGlob(glob); what != "" {
		c.Add(key, what, want)
	}
}

// Repo wants a repository that can be reached.
func (c *Checker) Repo(r Repo) {
	if r.Remote() && r.Path != "" && r.Path != "." {
		c.Add("repo", "has both a path and a url", "one of the two")
	}
	if r.Remote() {
		if what, want := badURL(r.URL); what != "" {
			c.Add("repo.url", what, want)
		}
	} else {
		c.Present("repo.path", r.Path, "the path of a git repository")
	}
	for _, named := range [][2]string{{"repo.path", r.Path}, {"repo.base", r.Base}, {"repo.host", r.Host}} {
		if what := unprintable(named[1]); what != "" && named[0] != "repo.path" || strings.ContainsRune(named[1], 0) {
			c.Add(named[0], what, "a name without control characters")
		}
	}
	if strings.HasPrefix(r.Base, "-") || strings.ContainsAny(r.Base, " ~^:?*[\\") || strings.Contains(r.Base, "..") {
		c.Add("repo.base", "is "+Show(r.Base), "the name of a branch")
	}
}

// Anywhere wants what a workflow's input has to have: "." would mean the directory of whichever worker
// picks it up.
func (c *Checker) Anywhere(r Repo) {
	if !r.Remote() && !path.IsAbs(r.Path) {
		c.Add("repo.path", "is "+Show(r.Path), "an absolute path, since a worker may run anywhere")
	}
}

// Agent wants an agent that can be called, and that says what it costs where costs are capped.
func (c *Checker) Agent(key string, a Agent, capped bool) {
	c.meter(a)
	a.check(key, nil, capped, c.Add)
}

func (c *Checker) meter(a Agent) {
	if a.Meter != nil {
		c.OneOf("agent.meter", *a.Meter, words["agent.meter"])
	}
}
