package spec

import (
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// Remote reports whether the repository is reached by a URL. No host owns such a repository.
func (r Repo) Remote() bool { return r.URL != "" }

// Address returns the repository as people know it: its URL or its path. A valid URL contains no secret.
func (r Repo) Address() string {
	if r.Remote() {
		return r.URL
	}
	return r.Path
}

var (
	// A URL that git accepts. None of these transports runs a program that the address names.
	urlShape  = lazyregexp.New(`^(https?|ssh|git|file)://([^/?#]*)(/[^?#]+)$`)
	hostShape = lazyregexp.New(`^(\[[0-9a-fA-F:.]+\]|[^:\[\]-][^:\[\]]*)(:[0-9]+)?$`)
	// An address that scp accepts: no slash before the colon, and no second colon right after it, which would name a
	// program (ext::sh -c …).
	scpShape = lazyregexp.New(`^([A-Za-z0-9._~-]+@)?[A-Za-z0-9.][A-Za-z0-9._-]*:[^:-]`)
)

const urlExample = "an https, ssh, git or file URL, or host:path, such as https://example.com/project.git"

// Endpoint returns the host and port to which git connects for the repository, as an entry of hosts; "" for a path or
// a file URL. It does not know what the settings of ssh make of a host name.
func (r Repo) Endpoint() string {
	if m := urlShape().FindStringSubmatch(r.URL); m != nil {
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
	if scpShape().MatchString(r.URL) {
		host, _, _ := strings.Cut(r.URL, ":")
		return host[strings.LastIndex(host, "@")+1:] + ":22"
	}
	return ""
}

// badURL returns what is wrong with a repository's URL, and what would be right. It repeats no part that may be secret.
func badURL(address string) (text, want string) {
	if bad := unprintable(address); bad != "" {
		return bad, urlExample
	}
	scheme, rest, isURL := strings.Cut(address, "://")
	if !isURL {
		switch {
		case strings.HasPrefix(address, "/"):
			return "is a path", "file://" + address + ", or repo.path if it is a working tree on this host"
		case scpShape().MatchString(address):
			return "", ""
		}
		return "is not the address of a repository", urlExample
	}
	authority, _, _ := strings.Cut(rest, "/")
	if atSign := strings.LastIndex(authority, "@"); atSign >= 0 {
		user := authority[:atSign]
		if scheme != "ssh" || strings.Contains(user, ":") {
			return "contains a user or a password, which would be in Temporal's history and in the ledger",
				"the URL without it: git asks your credential helper (`git config credential.helper`), or ssh its agent"
		}
	}
	shape := urlShape().FindStringSubmatch(address)
	if shape == nil {
		return "is not the address of a repository", urlExample
	}
	host := shape[2][strings.LastIndex(shape[2], "@")+1:]
	switch {
	case scheme == "file" && host != "" && host != "localhost":
		return "names a host, which a file URL can't", "file:///path/to/project.git"
	case scheme != "file" && !hostShape().MatchString(host):
		return "names no host", urlExample
	}
	return "", ""
}
