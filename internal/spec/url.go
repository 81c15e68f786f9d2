package spec

import (
	"strings"

	"pawl/internal/lazyregexp"
)

// Remote reports whether the repository is reached by a URL, so that no host owns it.
func (r Repo) Remote() bool { return r.URL != "" }

// Address is the repository as people know it: its URL or its path. A URL that is valid has no secret
// in it.
func (r Repo) Address() string {
	if r.Remote() {
		return r.URL
	}
	return r.Path
}

var (
	// A URL as git takes it. None of these transports runs a program of the address's choosing.
	urlShape  = lazyregexp.New(`^(https?|ssh|git|file)://([^/?#]*)(/[^?#]+)$`)
	hostShape = lazyregexp.New(`^(\[[0-9a-fA-F:.]+\]|[^:\[\]-][^:\[\]]*)(:[0-9]+)?$`)
	// What scp takes: no slash before the colon, and no second colon right after it, which would name
	// a program (ext::sh -c …).
	scpShape = lazyregexp.New(`^([A-Za-z0-9._~-]+@)?[A-Za-z0-9.][A-Za-z0-9._-]*:[^:-]`)
)

const urlExample = "an https, ssh, git or file URL, or host:path, such as https://example.com/project.git"

// Endpoint is the host and port that git connects to for the repository, as an entry of hosts; "" where it
// is a path, or a file URL. What ssh's settings make of a host's name it does not know.
func (r Repo) Endpoint() string {
	if m := urlShape.FindStringSubmatch(r.URL); m != nil {
		port := map[string]string{"http": "80", "https": "443", "ssh": "22", "git": "9418"}[m[1]]
		host := m[2][strings.LastIndex(m[2], "@")+1:]
		switch {
		case port == "":
			return ""
		case strings.LastIndex(host, ":") > strings.LastIndex(host, "]"):
			return host
		}
		return host + ":" + port
	}
	if scpShape.MatchString(r.URL) {
		host, _, _ := strings.Cut(r.URL, ":")
		return host[strings.LastIndex(host, "@")+1:] + ":22"
	}
	return ""
}

// badURL says what is wrong with the URL of a repository, and what would be right. It repeats
// nothing of one that may have a secret in it.
func badURL(address string) (what, want string) {
	if bad := unprintable(address); bad != "" {
		return bad, urlExample
	}
	scheme, rest, isURL := strings.Cut(address, "://")
	if !isURL {
		switch {
		case strings.HasPrefix(address, "/"):
			return "is a path", "file://" + address + ", or repo.path where it is a working tree of this host's"
		case scpShape.MatchString(address):
			return "", ""
		}
		return "is not the address of a repository", urlExample
	}
	authority, _, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user := authority[:at]
		if scheme != "ssh" || strings.Contains(user, ":") {
			return "has a user or a password in it, which would stand in Temporal's history and in the ledger",
				"the URL without it: git asks your credential helper (`git config credential.helper`), or ssh its agent"
		}
	}
	shape := urlShape.FindStringSubmatch(address)
	if shape == nil {
		return "is not the address of a repository", urlExample
	}
	host := shape[2][strings.LastIndex(shape[2], "@")+1:]
	switch {
	case scheme == "file" && host != "" && host != "localhost":
		return "names a host, which a file URL can't", "file:///path/to/project.git"
	case scheme != "file" && !hostShape.MatchString(host):
		return "names no host", urlExample
	}
	return "", ""
}
