package spec

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Checker collects problems with the values of a spec of any kind. It keeps only the first problem with a key.
type Checker struct{ Problems Problems }

// Add adds a problem with a key, unless the key has one already.
func (c *Checker) Add(key, text, want string) {
	if !c.Problems.Covers(key) {
		c.Problems.Add(key, text, want)
	}
}

// OneOf adds a problem if value is not one of the words.
func (c *Checker) OneOf(key, value string, words []string) {
	if slices.Contains(words, value) {
		return
	}
	c.Add(key, "is "+Show(value), closest(value, Or(words), words))
}

// leastAlike is how long a word has to be before one of a similar spelling is suggested: short ones resemble everything.
const leastAlike = 4

// closest returns the word with a similar spelling, else what may be written.
func closest(value, want string, words []string) string {
	if word := Alike(value, words); word != "" && len(value) >= leastAlike {
		return word + " (did you mean it?)"
	}
	return want
}

// Or returns words as an alternative: "a, b or c".
func Or(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Present adds a problem if value is blank.
func (c *Checker) Present(key, value, want string) {
	if strings.TrimSpace(value) == "" {
		c.Add(key, MissingKey, want)
	}
}

// Positive adds a problem if the duration is not above 0.
func (c *Checker) Positive(key string, d Duration) {
	if d <= 0 {
		c.Add(key, "is "+d.String(), `more than nothing, such as "30s"`)
	}
}

// Least adds a problem if n is below the least number.
func (c *Checker) Least(key string, n, minimum int) {
	if n < minimum {
		c.Add(key, fmt.Sprintf("is %d", n), fmt.Sprintf("%d or more", minimum))
	}
}

// Command adds a problem if a shell can't get value as a command.
func (c *Checker) Command(key, value string) {
	if strings.ContainsRune(value, 0) {
		c.Add(key, "contains a NUL byte", "a command for the shell")
	}
}

// Line adds a problem if value can't be shown on one line. An empty value is fine.
func (c *Checker) Line(key, value, want string) {
	if text := unprintable(value); text != "" {
		c.Add(key, text, want)
	}
}

// Globs adds a problem for each item that is not a glob of files in the repository.
func (c *Checker) Globs(key string, list []string) {
	for i, glob := range list {
		c.Glob(fmt.Sprintf("%s[%d]", key, i), glob)
	}
}

// Glob adds a problem if glob is not a glob of files in the repository.
func (c *Checker) Glob(key, glob string) {
	if text, want := badGlob(glob); text != "" {
		c.Add(key, text, want)
	}
}

// Repo adds a problem if the repository can't be reached.
func (c *Checker) Repo(r Repo) {
	if r.Remote() && r.Path != "" && r.Path != "." {
		c.Add("repo", "has both a path and a url", "one of the two")
	}
	if r.Remote() {
		if text, want := badURL(r.URL); text != "" {
			c.Add("repo.url", text, want)
		}
	} else {
		c.Present("repo.path", r.Path, "the path of a git repository")
	}
	for _, named := range [][2]string{{"repo.path", r.Path}, {"repo.base", r.Base}, {"repo.host", r.Host}} {
		if text := unprintable(named[1]); text != "" && named[0] != "repo.path" || strings.ContainsRune(named[1], 0) {
			c.Add(named[0], text, "a name without control characters")
		}
	}
	if strings.HasPrefix(r.Base, "-") || strings.ContainsAny(r.Base, " ~^:?*[\\") || strings.Contains(r.Base, "..") {
		c.Add("repo.base", "is "+Show(r.Base), "the name of a branch")
	}
}

// Anywhere adds a problem if the input of a workflow has a relative path. It would be relative to the folder of
// whichever worker takes the workflow.
func (c *Checker) Anywhere(r Repo) {
	if !r.Remote() && !path.IsAbs(r.Path) {
		c.Add("repo.path", "is "+Show(r.Path), "an absolute path, since a worker may run anywhere")
	}
}

// Agent adds a problem if the agent can't be called, or if it does not report costs although costs are capped.
func (c *Checker) Agent(key string, a Agent, capped bool) {
	c.OneOf("agent.meter", or(a.Meter, Auto), Words["agent.meter"])
	a.check(key, nil, capped, c.Add)
}
