package engine

import (
	"crypto/hmac"
	"crypto/rand"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	engineauth "pawl/internal/engine/auth"
)

// A browser does not have the token. It opens a link that only somebody with the token can make. The link is good for
// one visit to one run of the engine, and the visit sets a cookie. Link and cookie end with the engine. So a program
// that listens in its place learns nothing that is of use when the engine is back.

// linkPath is the beginning of the path of each link.
const linkPath = "/pawl-visit/"

// link returns the address of a page of the UI. If the engine requires a token, the link is good for one visit.
func link(base string, p *engineauth.Pass, run, page string) string {
	if p == nil {
		return base + page
	}
	nonce := rand.Text()
	address := base + linkPath + nonce + "." + signed(p, run, nonce)
	if page != "" {
		address += "?" + url.Values{"to": {page}}.Encode()
	}
	return address
}

// signed returns the part of a link that only somebody with the token can make: 128 bits.
func signed(p *engineauth.Pass, run, nonce string) string {
	return p.Sign("visit of the UI " + run + " " + nonce)[:32]
}

// visitors serves the UI to browsers that came with a link, and to nobody else.
type visitors struct {
	pass *engineauth.Pass
	run  string // which of the engine's runs this is
	next http.Handler

	mu       sync.Mutex
	used     map[string]bool // links
	sessions map[string]bool
}

// ServeHTTP serves the UI to visitors, and begins sessions.
func (v *visitors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, visit := strings.CutPrefix(r.URL.Path, linkPath)
	session := ""
	if visit {
		session = v.open(token)
	}
	switch {
	case session == "" && !v.knows(r):
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "This page needs a link with a token. `pawl doctor` shows a new one. Each link is good for one visit.", http.StatusUnauthorized)
		return
	case !visit:
		v.next.ServeHTTP(w, r)
		return
	case session != "":
		http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, local(r.URL.Query().Get("to")), http.StatusSeeOther)
}

// open begins the session of a link, and returns "" if the link is not valid, or was used before.
func (v *visitors) open(token string) (session string) {
	nonce, mac, _ := strings.Cut(token, ".")
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.used[nonce] || !hmac.Equal([]byte(mac), []byte(signed(v.pass, v.run, nonce))) {
		return ""
	}
	session = rand.Text()
	v.used[nonce], v.sessions[session] = true, true
	return session
}

func (v *visitors) knows(r *http.Request) bool {
	c, err := r.Cookie(cookieName(r))
	v.mu.Lock()
	defer v.mu.Unlock()
	return err == nil && v.sessions[c.Value]
}

// cookieName contains the port, because the engines on several ports have one host.
func cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return "pawl-ui-" + port
}

// local returns target if it is a page of this UI, else the first page.
func local(target string) string {
	if u, err := url.Parse(target); err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") || strings.Contains(target, `\`) {
		return "/"
	}
	return target
}
