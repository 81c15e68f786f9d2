package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/egress"
)

// proxied returns the address of a proxy in the test's network; the only name there is there.test.
func proxied(t *testing.T, r egress.Rules) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return servedBy(t, l, r, known(map[string][]string{"there.test": {there4}, "upstream.test": {there4}}).resolver(), nil)
}

// echoes serves a listener: it sends back what it receives, and ends when the client ends.
func echoes(l net.Listener) {
	for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
		go func() {
			defer func() { _ = conn.Close() }()
			_, _ = io.Copy(conn, conn)
		}()
	}
}

func TestE6_ATunnelPassesEverythingAndItsEnd(t *testing.T) {
	t.Parallel()
	if !inWorld(t) {
		return
	}
	go echoes(there.listen(t, there4+":7"))
	at := proxied(t, egress.Rules{})
	const size = 8 << 20
	sent := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	// Neither client waits for the proxy's answer: the bytes that it sends at once belong to the tunnel.
	for name, hello := range map[string]string{
		"CONNECT": "CONNECT there.test:7 HTTP/1.1\r\nHost: there.test:7\r\n\r\n",
		"SOCKS":   "\x05\x01\x00" + "\x05\x01\x00\x03\x0athere.test\x00\x07",
	} {
		conn, err := net.Dial("tcp", at)
		require.NoError(t, err)
		var both sync.WaitGroup
		both.Go(func() {
			_, _ = io.WriteString(conn, hello)
			_, _ = conn.Write(sent)
			_ = conn.(*net.TCPConn).CloseWrite()
		})
		got, err := io.ReadAll(conn)
		require.NoError(t, err, name)
		both.Wait()
		answer := map[string]string{"CONNECT": "HTTP/1.1 200 Connection established\r\n\r\n", "SOCKS": "\x05\x00" + "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"}[name]
		require.True(t, bytes.HasPrefix(got, []byte(answer)), "%s: %.100q", name, got)
		require.True(t, bytes.Equal(sent, got[len(answer):]), name)
		_ = conn.Close()
	}
}

func TestE6_ARequestIsForwardedAsItIs(t *testing.T) {
	t.Parallel()
	if !inWorld(t) {
		return
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s %s|", r.Method, r.Host, r.RequestURI, b)
		_ = r.Header.Write(w)
	}))
	s.Listener = there.listen(t, there4+":80")
	s.Start()
	t.Cleanup(s.Close)
	conn, err := net.Dial("tcp", proxied(t, egress.Rules{}))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	// Two requests on one connection. The Host header of a client does not count, only the URL.
	for range 2 {
		_, err = io.WriteString(conn, "POST http://there.test/a%2Fb?x=1;y&z HTTP/1.1\r\nHost: 127.0.0.1\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\nX-One: 1\r\nContent-Length: 4\r\n\r\nbody")
		require.NoError(t, err)
		answer, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		b, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, "POST there.test /a%2Fb?x=1;y&z body|Content-Length: 4\r\nX-One: 1\r\n", string(b))
	}
}

// A server may answer before it has read the whole request. Its answer still arrives complete.
func TestAnAnswerThatComesBeforeTheRequestIsWholeComesWhole(t *testing.T) {
	t.Parallel()
	if !inWorld(t) {
		return
	}
	begun, begin := context.WithCancel(t.Context())
	defer begin()
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := http.NewResponseController(w)
		_ = answer.EnableFullDuplex()
		_, _ = io.ReadFull(r.Body, make([]byte, 3))
		_, _ = io.WriteString(w, "first ")
		_ = answer.Flush()
		<-begun.Done()
		rest, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "last after %s", rest)
	})}
	defer web.Close()
	l := there.listen(t, there4+":81")
	go func() { _ = web.Serve(l) }()
	client, err := net.Dial("tcp", proxied(t, egress.Rules{}))
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = io.WriteString(client, "POST http://there.test:81/ HTTP/1.1\r\nHost: there.test:81\r\nContent-Length: 6\r\n\r\none")
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	require.NoError(t, err)
	begin()
	_, err = io.WriteString(client, "two")
	require.NoError(t, err)
	b, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "first last after two", string(b))
}

func TestE6_WhatTheProxyDoesNotSpeak(t *testing.T) {
	t.Parallel()
	at := served(t, egress.Rules{}, nil)
	for ask, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n":                                         "400 Bad Request",
		"GET https://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n":            "400 Bad Request",
		"GET ftp://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n":              "400 Bad Request",
		"CONNECT example.org HTTP/1.1\r\nHost: example.org\r\n\r\n":                 "400 Bad Request",
		"CONNECT [::1 HTTP/1.1\r\nHost: x\r\n\r\n":                                  "400 Bad Request",
		"CONNECT example.org:x HTTP/1.1\r\nHost: x\r\n\r\n":                         "400 Bad Request",
		"CONNECT example.org:0 HTTP/1.1\r\nHost: x\r\n\r\n":                         "403 Forbidden",
		"GET http://user@/ HTTP/1.1\r\nHost: x\r\n\r\n":                             "400 Bad Request",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03":                              "400 Bad Request", // TLS
		"\x04\x01\x00\x50\x7f\x00\x00\x01\x00\r\n\r\n":                              "400 Bad Request", // SOCKS4
		"GET http://x/ HTTP/1.1\r\nX: " + strings.Repeat("x", 200<<10) + "\r\n\r\n": "431 Request Header Fields Too Large",
		"\x05\x01\x02": "\x05\xff", // passwords only
		"\x05\x00":     "\x05\xff",
		"\x05\x01\x00" + "\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50":                       "\x05\x00" + "\x05\x07", // BIND
		"\x05\x01\x00" + "\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50":                       "\x05\x00" + "\x05\x07", // UDP
		"\x05\x01\x00" + "\x05\x01\x00\x02\x7f\x00\x00\x01\x00\x50":                       "\x05\x00" + "\x05\x08",
		"\x05\x01\x00" + "\x05\x01\x00\x03\x00\x00\x50":                                   "\x05\x00" + "\x05\x02", // no name
		"\x05\x01\x00" + "\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x00":                       "\x05\x00" + "\x05\x02", // no port
		"\x05\x01\x00" + "\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x00\x50": "\x05\x00" + "\x05\x02",
		"\x05\x01\x00" + "\x05\x01\x00\x03\x09127.0.0.1\x00\x50":                          "\x05\x00" + "\x05\x02",
		"\x05\x01\x00" + "\x05\x01\x00\x03\x05127.1\x00\x50":                              "\x05\x00" + "\x05\x02",
		"\x05\x01\x00" + "\x05\x01\x00\x03\x0aa\x00.example\x00\x50":                      "\x05\x00" + "\x05\x02",
		"\x05\x01\x00" + "\x05\x01":                                                       "\x05\x00", // and no more
		"":                                                                                "",
	} {
		conn, err := net.Dial("tcp", at)
		require.NoError(t, err)
		_, _ = io.WriteString(conn, ask)
		_ = conn.(*net.TCPConn).CloseWrite()
		b, _ := io.ReadAll(conn)
		require.Contains(t, string(b), want, "%.60q", ask)
		if want == "" {
			require.Empty(t, b)
		}
		_ = conn.Close()
	}
}

func TestE6_RulesThatCannotBeReadLetNothingThrough(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]egress.Rules{
		`the network of agents: "" names no host`:                           {Hosts: []string{""}},
		`the network of agents: "*" is not a host name`:                     {Hosts: []string{"*"}},
		`the network of agents: "https://temporal" is a URL and not a host`: {Closed: []string{"https://temporal"}},
		"the upstream proxy is no http, https or socks5 URL with a host":    {Upstream: "http://user:secret@"},
		"the upstream proxy is no http, https or socks5 URL with a host ":   {Upstream: "ftp://proxy"},
		"the upstream proxy is no http, https or socks5 URL with a host  ":  {Upstream: "http://user:secret@%zz"},
		"the host of the upstream proxy is not a host name":                 {Upstream: "http://bücher"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.Equal(t, r.Check(), egress.Serve(l, r, nil, nil))
		_, gone := l.Accept()
		require.ErrorIs(t, gone, net.ErrClosed, "clients are sent away, and wait for nobody")
		err = r.Check()
		require.ErrorContains(t, err, strings.TrimSpace(want))
		require.NotContains(t, err.Error(), "secret")
		_ = l.Close()
	}
}

// Clients that send nothing, or half a request, or keep their connection, do not stop other clients. They end with
// the proxy.
func TestE6_AThousandConnectionsAndSlowClients(t *testing.T) {
	t.Parallel()
	if !inWorld(t) {
		return
	}
	go echoes(there.listen(t, there4+":7"))
	at := proxied(t, egress.Rules{})
	var slow []net.Conn
	for i := range 20 {
		conn, err := net.Dial("tcp", at)
		require.NoError(t, err)
		_, err = io.WriteString(conn, []string{"", "\x05", "\x05\x01\x00\x05\x01\x00\x03\xff", "CONNECT there.test:7 HTTP/1.1\r\nX: ", "P"}[i%5])
		require.NoError(t, err)
		slow = append(slow, conn)
	}
	const many = 1000
	var all sync.WaitGroup
	failed := make(chan error, many)
	open := make(chan net.Conn, many)
	for i := range many {
		all.Go(func() {
			conn, err := net.Dial("tcp", at)
			if err != nil {
				failed <- err
				return
			}
			_, _ = io.WriteString(conn, "CONNECT there.test:7 HTTP/1.1\r\nHost: there.test:7\r\n\r\n")
			r := bufio.NewReader(conn)
			answer, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
			if err != nil || answer.StatusCode != http.StatusOK {
				failed <- fmt.Errorf("client %d: %v %v", i, answer, err)
				return
			}
			text := fmt.Sprintf("client %d\n", i)
			_, _ = io.WriteString(conn, text)
			if got, err := r.ReadString('\n'); got != text {
				failed <- fmt.Errorf("client %d got %q: %v", i, got, err)
				return
			}
			open <- conn
		})
	}
	all.Wait()
	require.Empty(t, failed)
	require.Len(t, open, many)
	// There is a limit: beyond it a client is refused, and the others continue.
	var away int
	for range egress.MaxConnections {
		conn, err := net.Dial("tcp", at)
		require.NoError(t, err)
		_, _ = io.WriteString(conn, "CONNECT there.test:7 HTTP/1.1\r\nHost: there.test:7\r\n\r\n")
		if answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect}); err != nil || answer.StatusCode != http.StatusOK {
			away++
		}
		slow = append(slow, conn)
	}
	require.Positive(t, away)
	one := <-open
	_, err := io.WriteString(one, "still\n")
	require.NoError(t, err)
	got, err := bufio.NewReader(one).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "still\n", got)
	for _, conn := range slow {
		_ = conn.Close()
	}
}

// No connection outlives the listener.
func TestE6_AllConnectionsEndWithTheListener(t *testing.T) {
	t.Parallel()
	if !inWorld(t) {
		return
	}
	go echoes(there.listen(t, there4+":7"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- egress.Serve(l, egress.Rules{}, nil, nil) }()
	var open []net.Conn
	for _, hello := range []string{"CONNECT " + there4 + ":7 HTTP/1.1\r\nHost: x\r\n\r\n", "\x05\x01\x00\x05\x01\x00\x01\xc6\x33\x64\x02\x00\x07", "", "\x05", "GET http"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = io.WriteString(conn, hello)
		require.NoError(t, err)
		if len(hello) > 10 {
			_, err = conn.Read(make([]byte, 2)) // the tunnel works
			require.NoError(t, err)
		}
		open = append(open, conn)
	}
	require.NoError(t, l.Close())
	require.NoError(t, <-done)
	for _, conn := range open {
		_, err := io.Copy(io.Discard, conn)
		if err != nil {
			require.ErrorContains(t, err, "reset")
		}
	}
}

// FuzzClients sends arbitrary bytes: the proxy answers or hangs up, and connects to nothing on this host.
func FuzzClients(f *testing.F) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(f, err)
	defer func() { _ = l.Close() }()
	port := l.Addr().(*net.TCPAddr).Port
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			panic("reached by " + conn.RemoteAddr().String())
		}
	}()
	here := fmt.Sprintf("127.0.0.1:%d", port)
	for _, hello := range []string{
		"CONNECT " + here + " HTTP/1.1\r\n\r\n", "GET http://" + here + "/ HTTP/1.0\r\n\r\n", "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01" + string([]byte{byte(port >> 8), byte(port)}),
		"\x05\x02\x00\x02\x05\x01\x00\x03\x09localhost\x00\x50", "\x05\x01\x00\x05\x01\x00\x04", "POST http://a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		f.Add([]byte(hello))
	}
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(f, err)
	defer func() { _ = proxy.Close() }()
	go func() {
		// The fuzzer's names never reach the machine's DNS.
		_ = egress.ServeWith(proxy, egress.Rules{}, &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, os.ErrDeadlineExceeded }}, nil)
	}()
	f.Fuzz(func(t *testing.T, hello []byte) {
		conn, err := net.Dial("tcp", proxy.Addr().String())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		_, _ = conn.Write(hello)
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second)) // it may dial an address that nobody has
		_, _ = io.Copy(io.Discard, conn)
	})
}

func TestE6_TheHostOfAService(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"temporal.example:7233": "temporal.example", "dns:///temporal.example:7233": "temporal.example", "10.0.0.5:7233": "10.0.0.5",
		"[2001:db8::1]:7233": "2001:db8::1", "temporal.example": "temporal.example", "": "",
	} {
		require.Equal(t, want, egress.Service(address))
		if want != "" {
			require.NoError(t, egress.Rules{Closed: []string{want}}.Check())
		}
	}
}

func TestE6_TheEnvironmentLeadsToTheProxy(t *testing.T) {
	env := map[string]string{}
	for _, kv := range egress.Environment(map[string]string{"A": "b", "MAVEN_OPTS": "-Xmx2g"}) {
		name, value, _ := strings.Cut(kv, "=")
		require.NotContains(t, env, name)
		env[name] = value
	}
	at := fmt.Sprintf("127.0.0.1:%d", egress.Port)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		require.Equal(t, "http://"+at, env[name])
		require.Equal(t, "http://"+at, env[strings.ToLower(name)])
	}
	require.Equal(t, env["NO_PROXY"], env["no_proxy"])
	require.True(t, strings.HasPrefix(env["MAVEN_OPTS"], "-Xmx2g -Dhttp.proxyHost=127.0.0.1 "), env["MAVEN_OPTS"])
	require.True(t, strings.HasPrefix(env["GRADLE_OPTS"], "-D"), env["GRADLE_OPTS"])
	// Go's reading of these variables: the proxy for the outside, and no proxy for a test's own server.
	for name, value := range env {
		t.Setenv(name, value)
	}
	proxy, direct := egress.Upstream()
	require.Equal(t, "http://"+at, proxy)
	require.Equal(t, env["NO_PROXY"], direct)
	for target, want := range map[string]string{"https://example.org": at, "http://10.0.0.1": at, "http://localhost:8080": "", "http://127.0.0.1:1": "", "http://[::1]:8080": "", "http://127.1.2.3": "", "http://x.localhost": ""} {
		r, err := http.NewRequest(http.MethodGet, target, nil)
		require.NoError(t, err)
		u, err := http.ProxyFromEnvironment(r)
		require.NoError(t, err)
		if u == nil {
			u = &url.URL{}
		}
		require.Equal(t, want, u.Host, target)
	}
}
