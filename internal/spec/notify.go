package spec

import (
	"fmt"
	"net/url"
	"strings"
)

// Desktop is the value in notify for the desktop of the loop's host.
const Desktop = "desktop"

// maxNotify is the maximum number of receivers.
const maxNotify = 10

// Webhook reports whether a value of notify is an address, and not a command or the desktop.
func Webhook(target string) bool {
	scheme, _, found := strings.Cut(target, "://")
	return found && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// Addressee returns a value of notify without parts that may be secret: an address's host, a command's first word.
func Addressee(target string) string {
	if u, err := url.Parse(target); Webhook(target) && err == nil {
		return strings.ToLower(u.Scheme) + "://" + u.Host
	}
	word, _, _ := strings.Cut(strings.TrimSpace(target), " ")
	return shorten(word)
}

// Notify adds a problem for each value that nobody can be notified by.
func (c *Checker) Notify(list []string) {
	const want = "a URL, the word desktop, or a command for the shell"
	if len(list) > maxNotify {
		c.Add("notify", fmt.Sprintf("names %d", len(list)), fmt.Sprintf("%d or fewer", maxNotify))
	}
	for i, target := range list {
		key := fmt.Sprintf("notify[%d]", i)
		switch u, err := url.Parse(target); {
		case strings.TrimSpace(target) == "":
			c.Add(key, "is empty", want)
		case strings.ContainsRune(target, 0):
			c.Add(key, "contains a NUL byte", want)
		case Webhook(target) && (err != nil || u.Host == ""):
			c.Add(key, "is not an address", "a URL such as https://example.com/hook")
		}
	}
}
