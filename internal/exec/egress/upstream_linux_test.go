package egress_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/egress"
)

// fakeUpstream is a company's proxy: it records requests, and connects everything to one server.
type fakeUpstream struct {
	mu    sync.Mutex
	asked []string
}

func (u *fakeUpstream) serve(l net.Listener, to string) {
	for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
		go func() {
			defer func() { _ = conn.Close() }()
			r := bufio.NewReader(conn)
			ask, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			u.mu.Lock()
			u.asked = append(u.asked, ask.Method+" "+ask.RequestURI+" "+ask.Header.Get("Proxy-Authorization"))
			u.mu.Unlock()
			if strings.HasSuffix(ask.RequestURI, ":25") { // the server speaks first
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n220 ready\r\n")
				return
			}
			if strings.HasPrefix(ask.RequestURI, "203.0.113.3:") {
				_, _ = io.WriteString(conn, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
			go func() { _, _ = io.Copy(server, r) }()
			_, _ = io.Copy(conn, server)
		}()
	}
}

func (u *fakeUpstream) last() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.asked) == 0 {
		return ""
	}
	last := u.asked[len(u.asked)-1]
	u.asked = nil
	return last
}

func TestE6_ThroughTheProxyOfThisHost(t *testing.T) {
	t.Parallel()
	if !inWorld(t) {
		return
	}
	greets(t, there.listen(t, there4+":80"), "there")
	l, err := net.Listen("tcp", "127.0.0.1:3128")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	var u fakeUpstream
	go u.serve(l, there4+":80")
	table := map[string][]string{"there.test": {"203.0.113.9"}, "here.test": {here4}, "temporal.test": {"203.0.113.7"}, "direct.test": {there4}, "no.test": {"203.0.113.3"}, "mapped.test": {"::ffff:127.0.0.1"},
		"mixed.test": {"203.0.113.9", "127.0.0.1"}, "also-temporal.test": {"203.0.113.9", "203.0.113.7"}}
	const upstream = "http://me:secret@127.0.0.1:3128"
	for _, c := range []struct {
		name   string
		rules  egress.Rules
		target string
		want   string
		asked  string
	}{
		{"a name is asked for by the address that was checked", egress.Rules{}, "there.test:443", "there as there.test:443", "CONNECT 203.0.113.9:443 Basic bWU6c2VjcmV0"},
		{"a name that a person named, by its name", egress.Rules{Hosts: []string{"there.test"}}, "there.test:443", "there as there.test:443", "CONNECT there.test:443 Basic bWU6c2VjcmV0"},
		{"also one that only the proxy can look up", egress.Rules{Hosts: []string{"*.corp.test"}}, "git.corp.test:443", "there as git.corp.test:443", "CONNECT git.corp.test:443 Basic bWU6c2VjcmV0"},
		{"an address", egress.Rules{}, "203.0.113.9:443", "there as 203.0.113.9:443", "CONNECT 203.0.113.9:443 Basic bWU6c2VjcmV0"},
		{"a name that can't be looked up", egress.Rules{}, "git.corp.test:443", "its address can't be looked up here", ""},
		{"this host", egress.Rules{}, here4 + ":443", "is this host itself", ""},
		{"this host by a name", egress.Rules{}, "here.test:443", "is this host itself", ""},
		{"this host by a name that a person named", egress.Rules{Hosts: []string{"here.test"}}, "here.test:443", "is this host itself", ""},
		{"this host by a name for an IPv4 address in IPv6", egress.Rules{}, "mapped.test:443", "is this host itself", ""},
		{"a name of which one address is this host's", egress.Rules{}, "mixed.test:443", "is this host itself", ""},
		{"also one that a person named", egress.Rules{Hosts: []string{"mixed.test"}}, "mixed.test:443", "is this host itself", ""},
		{"a name of which one address is closed", egress.Rules{Closed: []string{"temporal.test"}}, "also-temporal.test:443", "pawl keeps temporal.test", ""},
		{"what is closed", egress.Rules{Closed: []string{"temporal.test"}}, "203.0.113.7:7233", "pawl keeps temporal.test", ""},
		{"what is closed, and only the proxy can look up", egress.Rules{Closed: []string{"git.corp.test"}, Hosts: []string{"*.corp.test"}}, "git.corp.test:443", "pawl keeps git.corp.test", ""},
		{"the proxy itself", egress.Rules{Upstream: "http://there.test:3128"}, "203.0.113.9:3128", "pawl keeps there.test:3128", ""},
		{"what is reached without it", egress.Rules{Direct: "direct.test"}, "direct.test:80", "there as direct.test:80", ""},
		{"what the proxy refuses", egress.Rules{}, "no.test:443", "502 Bad Gateway", "CONNECT 203.0.113.3:443 Basic bWU6c2VjcmV0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.rules.Upstream == "" {
				c.rules.Upstream = upstream
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var seen refusals
			at := servedBy(t, l, c.rules, known(table).resolver(), seen.add)
			conn, answer := connect(t, at, c.target)
			switch answer.StatusCode {
			case http.StatusOK:
				require.Equal(t, c.want, get(t, conn, c.target))
			case http.StatusForbidden:
				require.Contains(t, seen.seen()[0][1], c.want)
			default:
				b, err := io.ReadAll(answer.Body)
				require.NoError(t, err)
				require.NotContains(t, string(b), "secret")
				require.Equal(t, c.want, answer.Status)
			}
			require.Equal(t, c.asked, u.last())
		})
	}
}

func TestE6_AServerThatSpeaksFirstIsHeard(t *testing.T) {
	t.Parallel()
	if !inWorld(t) {
		return
	}
	upstream, err := net.Listen("tcp", "127.0.0.1:3128")
	require.NoError(t, err)
	t.Cleanup(func() { _ = upstream.Close() })
	go new(fakeUpstream).serve(upstream, "")
	conn, err := net.Dial("tcp", proxied(t, egress.Rules{Upstream: "127.0.0.1:3128"})) // without a scheme, as many write it
	require.NoError(t, err)
	_, err = io.WriteString(conn, "CONNECT 203.0.113.9:25 HTTP/1.1\r\nHost: 203.0.113.9:25\r\n\r\n")
	require.NoError(t, err)
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 200 Connection established\r\n\r\n220 ready\r\n", string(got))
}

// A company's SOCKS proxy is used too: in this test it is one of pawl's own.
func TestE6_ThroughASOCKSProxyOfThisHost(t *testing.T) {
	t.Parallel()
	if !inWorld(t) {
		return
	}
	greets(t, there.listen(t, there4+":80"), "there")
	first := proxied(t, egress.Rules{Closed: []string{there4 + ":81"}})
	for _, scheme := range []string{"socks5", "socks5h"} {
		at := proxied(t, egress.Rules{Upstream: scheme + "://" + first})
		for port, want := range map[string]string{"": "there as there.test", ":81": "not allowed by ruleset"} { // which is what SOCKS says
			answer, err := through(at).Get("http://there.test" + port)
			require.NoError(t, err)
			b, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			_ = answer.Body.Close()
			require.Contains(t, string(b), want)
		}
	}
}
