package userrepo

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// scp is how ssh is written without a scheme: user@host:path.
var scp = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9._~/-]+$`)

// Origin returns the URL of a repository as everybody may read it: without a password or a token, and of
// http without a name. It returns "" for a path on this host and for what git would run a program of its own for.
func Origin(remote string) string {
	if scheme, _, has := strings.Cut(remote, "://"); !has || !slices.Contains([]string{"http", "https", "ssh", "git"}, scheme) {
		if has || !scp.MatchString(remote) {
			return ""
		}
		return remote
	}
	u, err := url.Parse(remote)
	if err != nil || u.Host == "" {
		return ""
	}
	if u.User != nil && u.Scheme == "ssh" {
		u.User = url.User(u.User.Username())
	} else {
		u.User = nil
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}
