package engine

import (
	"crypto/hmac"
	"crypto/rand"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"pawl/internal/pass"
)

// A browser can't bring the token along. It comes with a link that only who has the token can make, and that
// is good for one visit to one run of the engine; from then on it brings a cookie. Both end with the engine,
// so that what a program learns that listens in its place is worth nothing when it is back.

// linkPath begins the links.
const linkPath = "/pawl-visit/"

// link is the address of a page of the UI. Where the engine requires a token each is good for one visit.
func link(base string, p *pass.Pass, run, page string) string {
	if p == nil {
		return base + page
	}
	once := rand.Text()
	at := base + linkPath + once + "." + signed(p, run, once)
	if page != "" {
		at += "?" + url.Values{"to": {page}}.Encode()
	}
	return at
}

// signed is what a link has that only who has the token can make: 128 bits.
func signed(p *pass.Pass, run, once string) string {
	return p.Sign("visit of the UI " + run + " " + once)[:32]
}

// visitors are the browsers that came with a link.
type visitors struct {
	pass *pass.Pass
	run  string // which of the engine's runs this is
	next http.Handler

	mu       sync.Mutex
	used     map[string]bool // links
	sessions map[string]bool
}

// onlyVisitors refuses requests of who has not come with a link.
func onlyVisitors(p *pass.Pass, run string, next http.Handler) http.Handler {
	return &visitors{pass: p, run: run, next: next, used: map[string]bool{}, sessions: map[string]bool{}}
}

// ServeHTTP serves the UI to visitors, and opens sessions.
func (v *visitors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := cookieName(r)
	if token, ok := strings.CutPrefix(r.URL.Path, linkPath); ok {
		session, ok := v.open(token)
		if !ok && !v.knows(r, name) {
			refuse(w)
			return
		}
		if ok {
			http.SetCookie(w, &http.Cookie{Name: name, Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		http.Redirect(w, r, local(r.URL.Query().Get("to")), http.StatusSeeOther)
		return
	}
	if !v.knows(r, name) {
		refuse(w)
		return
	}
	v.next.ServeHTTP(w, r)
}

// open begins the session of a link, once.
func (v *visitors) open(token string) (session string, ok bool) {
	once, mac, _ := strings.Cut(token, ".")
	if !hmac.Equal([]byte(mac), []byte(signed(v.pass, v.run, once))) {
		return "", false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.used[once] {
		return "", false
	}
	session = rand.Text()
	v.used[once], v.sessions[session] = true, true
	return session, true
}

func (v *visitors) knows(r *http.Request, name string) bool {
	c, err := r.Cookie(name)
	if err != nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sessions[c.Value]
}

// cookieName tells the sessions of engines on several ports apart, which have one host.
func cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return "pawl-ui-" + port
}

// local is a page of this UI, its first one where to is no such page.
func local(to string) string {
	if u, err := url.Parse(to); err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, `\`) {
		return "/"
	}
	return to
}

func refuse(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "This page needs a link with a token. `pawl doctor` shows a new one. Each link is good for one visit.", http.StatusUnauthorized)
}
