package userrepo

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// scp matches an ssh address without a scheme: user@host:path.
var scp = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9._~/-]+$`)

// Origin returns the URL of a repository for everybody to read: without a password or a token, and for http without a
// user name. It returns "" for a path on this host, and for an address for which git would run a helper program.
func Origin(remote string) string {
	if scheme, _, ok := strings.Cut(remote, "://"); !ok || !slices.Contains([]string{"http", "https", "ssh", "git"}, scheme) {
		if ok || !scp.MatchString(remote) {
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
