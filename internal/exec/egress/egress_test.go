package egress_test

import (
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	socks5 "golang.org/x/net/proxy"

	"pawl/internal/exec/egress"
)

// refusals collects the refusals that a proxy reports.
type refusals struct {
	mu  sync.Mutex
	all [][2]string
}

func (r *refusals) add(target, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, [2]string{target, why})
}

func (r *refusals) seen() [][2]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([][2]string(nil), r.all...)
}

// served returns the address of a proxy that ends with the test.
func served(t *testing.T, r egress.Rules, refused func(string, string)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- egress.Serve(l, r, nil, refused) }()
	t.Cleanup(func() {
		_ = l.Close()
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(time.Minute):
			t.Error("Serve did not return after its listener was closed")
		}
	})
	return l.Addr().String()
}

// through returns an HTTP client that uses the proxy for everything.
func through(at string) *http.Client {
	u := &url.URL{Scheme: "http", Host: at}
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(u), DisableKeepAlives: true}}
}

func TestE6_NothingOnThisHostIsReachedThroughTheProxy(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			t.Errorf("%s got through", conn.RemoteAddr())
			_ = conn.Close()
		}
	}()
	var seen refusals
	at := served(t, egress.Rules{}, seen.add)

	answer, err := through(at).Get("http://" + l.Addr().String())
	require.NoError(t, err)
	_ = answer.Body.Close()
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	_, err = through(at).Get("https://" + l.Addr().String())
	require.ErrorContains(t, err, "Forbidden")
	d, err := socks5.SOCKS5("tcp", at, nil, nil)
	require.NoError(t, err)
	_, err = d.Dial("tcp", l.Addr().String())
	require.ErrorContains(t, err, "not allowed by ruleset")
	require.Len(t, seen.seen(), 3)
}
