package egress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	socks5 "golang.org/x/net/proxy"

	"pawl/internal/exec/egress"
)

// greets serves HTTP on a listener, and answers with its name.
func greets(t *testing.T, l net.Listener, who string) {
	t.Helper()
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, who+" as "+r.Host)
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
}

// reach asks for http://target by each of the proxy's protocols. All must have the same result, which it returns: the
// server's answer, or the reason of the refusal.
func reach(t *testing.T, at, target string, seen *refusals) string {
	t.Helper()
	before := len(seen.seen())
	answer, err := through(at).Get("http://" + target)
	require.NoError(t, err, target)
	b, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	said := string(b)

	tunnel, connected := connect(t, at, target)
	d, err := socks5.SOCKS5("tcp", at, nil, nil)
	require.NoError(t, err)
	over, socksErr := d.Dial("tcp", target)
	require.Equal(t, answer.StatusCode, connected.StatusCode, "by CONNECT")
	switch answer.StatusCode {
	case http.StatusOK:
		require.Equal(t, said, get(t, tunnel, target), "by CONNECT")
		require.NoError(t, socksErr, "by SOCKS")
		require.Equal(t, said, get(t, over, target), "by SOCKS")
		require.Len(t, seen.seen(), before, target)
		return said
	case http.StatusForbidden:
		b, err := io.ReadAll(connected.Body)
		require.NoError(t, err)
		require.Equal(t, said, string(b), "by CONNECT")
		require.ErrorContains(t, socksErr, "not allowed by ruleset", "by SOCKS")
		told := seen.seen()[before:]
		require.Len(t, told, 3, target)
		require.Equal(t, "pawl allows no connection to "+told[0][0]+": "+told[0][1]+".\n", said)
		require.Equal(t, told[0], told[1])
		require.Equal(t, told[0][1], told[2][1], "a SOCKS client writes an address its own way")
		return told[0][1]
	}
	require.Error(t, socksErr, target)
	return answer.Status + " " + said
}

// connect asks for a tunnel.
func connect(t *testing.T, at, target string) (net.Conn, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", target)
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	require.NoError(t, err)
	return conn, answer
}

// get sends a request over a connection and returns the body of the answer.
func get(t *testing.T, conn net.Conn, host string) string {
	t.Helper()
	_, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)
	require.NoError(t, err)
	b, err := io.ReadAll(conn)
	require.NoError(t, err)
	_, body, _ := strings.Cut(string(b), "\r\n\r\n")
	return body
}

func TestE6_WhatTheProxyLetsThrough(t *testing.T) {
	t.Parallel()
	if !inWorld(t) {
		return
	}
	for _, at := range []string{there4 + ":80", "[" + there6 + "]:80", there4 + ":7243"} {
		greets(t, there.listen(t, at), "there")
	}
	for _, at := range []string{"0.0.0.0:80", "[::]:80"} { // every address of this host
		l, err := net.Listen(map[bool]string{true: "tcp4", false: "tcp6"}[at[0] == '0'], at)
		require.NoError(t, err)
		greets(t, l, "THIS HOST")
	}
	command(t, "ip", "route", "add", "local", "203.0.113.0/24", "dev", "lo") // a route makes this range local
	command(t, "ip", "link", "add", "engine0", "type", "bridge")             // as container engines make them
	command(t, "ip", "addr", "add", "172.30.0.1/16", "dev", "engine0")
	command(t, "ip", "link", "set", "engine0", "up")
	container := newPlace(t)
	command(t, "ip", "link", "add", "vethc", "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(container.tid))
	command(t, "ip", "link", "set", "vethc", "master", "engine0", "up")
	container.do(func() {
		command(t, "ip", "addr", "add", guest4+"/16", "dev", "eth0")
		command(t, "ip", "link", "set", "eth0", "up")
	})
	greets(t, container.listen(t, guest4+":80"), "the container")
	name, err := os.Hostname()
	require.NoError(t, err)

	table := map[string][]string{
		"there.test": {there4}, "six.test": {there6}, "both.test": {there6, there4}, "temporal.test": {there4}, "elsewhere.test": {"198.51.100.9"},
		"here.test": {here4}, "loopback.test": {"127.0.0.1"}, "mapped.test": {"::ffff:127.0.0.1"}, "own6.test": {here6}, "metadata.test": {"169.254.169.254"},
		"guest.test": {guest4}, name: {here4},
	}
	const itself, closed, unwanted = "is this host itself", "pawl keeps", "sandbox.hosts does not name it"
	for _, c := range []struct {
		name   string
		rules  egress.Rules
		target string
		want   string
	}{
		{"an address", egress.Rules{}, there4 + ":80", "there as " + there4},
		{"an IPv6 address", egress.Rules{}, "[" + there6 + "]:80", "there as [" + there6 + "]"},
		{"a name", egress.Rules{}, "there.test:80", "there as there.test"},
		{"a name with the root's dot", egress.Rules{}, "there.test.:80", "there as there.test."},
		{"a name in capitals", egress.Rules{}, "There.TEST:80", "there as There.TEST"},
		{"a name with an IPv6 address", egress.Rules{}, "six.test:80", "there as six.test"},
		{"a name of which one address is this host's", egress.Rules{}, "both.test:80", "there as both.test"},
		{"a name that is none", egress.Rules{}, "nowhere.test:80", "502 Bad Gateway"},
		{"nobody there", egress.Rules{}, there4 + ":81", "502 Bad Gateway"},

		{"loopback", egress.Rules{}, "127.0.0.1:80", itself},
		{"all of loopback", egress.Rules{}, "127.9.9.9:80", itself},
		{"IPv6's loopback", egress.Rules{}, "[::1]:80", itself},
		{"localhost", egress.Rules{}, "localhost:80", itself},
		{"a name below it", egress.Rules{}, "x.localhost.:80", itself},
		{"no address", egress.Rules{}, "0.0.0.0:80", itself},
		{"no IPv6 address", egress.Rules{}, "[::]:80", itself},
		{"this host on its network", egress.Rules{}, here4 + ":80", itself},
		{"by another address on its network", egress.Rules{}, second4 + ":80", itself},
		{"on its IPv6 network", egress.Rules{}, "[" + here6 + "]:80", itself},
		{"by its name", egress.Rules{}, name + ":80", itself},
		{"on its container engine's network", egress.Rules{}, "172.30.0.1:80", itself},
		{"in a range that a route makes local", egress.Rules{}, "203.0.113.7:80", itself},
		{"as IPv4 in IPv6", egress.Rules{}, "[::ffff:" + here4 + "]:80", itself},
		{"as IPv4 in IPv6, in hexadecimal", egress.Rules{}, "[::ffff:7f00:1]:80", itself},
		{"as a compatible address", egress.Rules{}, "[::127.0.0.1]:80", itself},
		{"by NAT64", egress.Rules{}, "[64:ff9b::" + here4 + "]:80", itself},
		{"by a name", egress.Rules{}, "here.test:80", itself},
		{"by a name for loopback", egress.Rules{}, "loopback.test:80", itself},
		{"by a name for loopback in IPv6", egress.Rules{}, "mapped.test:80", itself},
		{"by a name for its IPv6 address", egress.Rules{}, "own6.test:80", itself},
		{"also where it is wanted", egress.Rules{Hosts: []string{here4, "here.test"}}, "here.test:80", itself},
		{"metadata", egress.Rules{}, "169.254.169.254:80", "link-local"},
		{"metadata by a name", egress.Rules{}, "metadata.test:80", "link-local"},
		{"metadata by its name", egress.Rules{}, "metadata.google.internal:80", "is where a cloud keeps its metadata"},

		{"a container", egress.Rules{}, guest4 + ":80", "is a container or virtual machine on this host"},
		{"a container by a name", egress.Rules{}, "guest.test:80", "is a container or virtual machine on this host"},
		{"a container that is wanted", egress.Rules{Hosts: []string{guest4}}, guest4 + ":80", "the container as " + guest4},
		{"a container in a range that is wanted", egress.Rules{Hosts: []string{"172.16.0.0/12"}}, guest4 + ":80", "is a container or virtual machine on this host"},
		{"a container below a name that is wanted", egress.Rules{Hosts: []string{"*.test"}}, "guest.test:80", "is a container or virtual machine on this host"},
		{"a container that is wanted by its name", egress.Rules{Hosts: []string{"guest.test:80"}}, "guest.test:80", "the container as guest.test"},

		{"what is closed", egress.Rules{Closed: []string{"temporal.test"}}, "temporal.test:80", closed},
		{"another port of it", egress.Rules{Closed: []string{"temporal.test"}}, "temporal.test:7243", closed},
		{"its address", egress.Rules{Closed: []string{"temporal.test"}}, there4 + ":7243", closed + " temporal.test out of reach, and that is " + there4},
		{"its address in IPv6", egress.Rules{Closed: []string{"temporal.test"}}, "[::ffff:" + there4 + "]:7243", closed},
		{"another name of it", egress.Rules{Closed: []string{"temporal.test"}}, "there.test:80", closed},
		{"an address that is closed, by a name", egress.Rules{Closed: []string{there4}}, "there.test:80", closed},
		{"an address beside a range that is closed", egress.Rules{Closed: []string{"10.0.0.0/8"}}, there4 + ":80", "there as " + there4},
		{"a port that is closed", egress.Rules{Closed: []string{"temporal.test:7243"}}, "there.test:7243", closed},
		{"a port that is not", egress.Rules{Closed: []string{"temporal.test:7243"}}, "there.test:80", "there as there.test"},
		{"another host", egress.Rules{Closed: []string{"elsewhere.test"}}, "there.test:80", "there as there.test"},
		{"what is closed, where it is wanted", egress.Rules{Closed: []string{"temporal.test"}, Hosts: []string{"temporal.test"}}, "temporal.test:80", closed},
		{"a name that leads nowhere is closed", egress.Rules{Closed: []string{"nowhere.test"}}, "there.test:80", "there as there.test"},

		{"what is wanted", egress.Rules{Hosts: []string{"*.test"}}, "there.test:80", "there as there.test"},
		{"another port than is wanted", egress.Rules{Hosts: []string{"there.test:443"}}, "there.test:80", unwanted},
		{"a host that is not wanted", egress.Rules{Hosts: []string{"there.test"}}, "six.test:80", unwanted},
		{"an address of what is wanted", egress.Rules{Hosts: []string{"there.test"}}, there4 + ":80", unwanted},
		{"a range", egress.Rules{Hosts: []string{"198.51.100.0/24"}}, there4 + ":80", "there as " + there4},
		{"a name in a range", egress.Rules{Hosts: []string{"198.51.100.0/24"}}, "there.test:80", unwanted},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var seen refusals
			require.Contains(t, reach(t, servedBy(t, l, c.rules, known(table).resolver(), seen.add), c.target, &seen), c.want)
		})
	}
}

// A name has one address when it is checked, and another one when the proxy connects.
func TestE6_ANameIsResolvedOnce(t *testing.T) {
	t.Parallel()
	if !inWorld(t) {
		return
	}
	greets(t, there.listen(t, there4+":80"), "there")
	l, err := net.Listen("tcp", "127.0.0.1:80")
	require.NoError(t, err)
	greets(t, l, "THIS HOST")
	for first, second := range map[string]string{there4: "127.0.0.1", "127.0.0.1": there4} {
		s := &names{asked: map[string]int{}}
		s.answer = func(_ string, n int) []string {
			if n == 0 {
				return []string{first}
			}
			return []string{second}
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		answer, err := through(servedBy(t, l, egress.Rules{}, s.resolver(), nil)).Get("http://two-faced.test/")
		require.NoError(t, err)
		require.Equal(t, map[string]int{there4: http.StatusOK, "127.0.0.1": http.StatusForbidden}[first], answer.StatusCode)
		_ = answer.Body.Close()
		require.Equal(t, 1, s.count("two-faced.test"))
	}
	// By each protocol, with the other address in each of the answers.
	for hidden := range 4 {
		s := &names{asked: map[string]int{}}
		s.answer = func(_ string, n int) []string {
			if n == hidden {
				return []string{there4}
			}
			return []string{"127.0.0.1", here4, "::ffff:127.0.0.1", "::1"}
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		at := servedBy(t, l, egress.Rules{}, s.resolver(), nil)
		for try := range 3 {
			var over net.Conn
			switch try {
			case 0:
				answer, err := through(at).Get("http://many-faced.test/")
				require.NoError(t, err)
				_ = answer.Body.Close()
				require.Equal(t, map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[try == hidden], answer.StatusCode)
				continue
			case 1:
				conn, answer := connect(t, at, "many-faced.test:80")
				require.Equal(t, map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[try == hidden], answer.StatusCode)
				over = conn
			case 2:
				d, err := socks5.SOCKS5("tcp", at, nil, nil)
				require.NoError(t, err)
				conn, err := d.Dial("tcp", "many-faced.test:80")
				require.Equal(t, try == hidden, err == nil)
				over = conn
			}
			if try == hidden {
				require.Equal(t, "there as many-faced.test", get(t, over, "many-faced.test"))
			}
			require.Equal(t, try+1, s.count("many-faced.test"))
		}
	}
	// With both addresses at once, the proxy connects to the allowed one.
	l, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	answer, err := through(servedBy(t, l, egress.Rules{}, known(map[string][]string{"mixed.test": {"127.0.0.1", there4}}).resolver(), nil)).Get("http://mixed.test/")
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "there as mixed.test", string(b))
}

// A name of Temporal's leads to one host after the other. All of these hosts are closed.
func TestE6_WhatAClosedNameEverLedToIsClosed(t *testing.T) {
	t.Parallel()
	if !inWorld(t) {
		return
	}
	greets(t, there.listen(t, there4+":80"), "there")
	s := &names{asked: map[string]int{}}
	s.answer = func(_ string, n int) []string {
		return [][]string{{"198.51.100.8"}, {there4}, {"198.51.100.9"}}[min(n, 2)]
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := servedBy(t, l, egress.Rules{Closed: []string{"temporal.test"}}, s.resolver(), nil)
	for _, want := range []int{http.StatusOK, http.StatusForbidden, http.StatusForbidden, http.StatusForbidden} {
		_, answer := connect(t, at, there4+":80")
		require.Equal(t, want, answer.StatusCode)
	}
	require.Equal(t, 4, s.count("temporal.test"))
}

// If hosts are listed, nobody outside learns from DNS which other names a loop asks for.
func TestE6_ANameThatIsNotWantedIsNotLookedUp(t *testing.T) {
	t.Parallel()
	s := known(nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := servedBy(t, l, egress.Rules{Hosts: []string{"wanted.test", "10.0.0.0/8"}}, s.resolver(), nil)
	_, err = through(at).Get("https://the-secret.attacker.test")
	require.ErrorContains(t, err, "Forbidden")
	require.Zero(t, s.count("the-secret.attacker.test"))
}

// While nobody can find out where Temporal is, any address could be Temporal's.
func TestE6_WhatCannotBeToldFromTemporalIsRefused(t *testing.T) {
	t.Parallel()
	if !inWorld(t) {
		return
	}
	greets(t, there.listen(t, there4+":80"), "there")
	broken := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no server answers") }
	for target, rules := range map[string]egress.Rules{
		"pawl keeps temporal.test out of reach and can't look up its addresses now": {Closed: []string{"temporal.test"}},
		"there as " + there4: {Closed: []string{"temporal.test"}, Hosts: []string{there4}}, // a person listed it
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		var seen refusals
		require.Contains(t, reach(t, servedBy(t, l, rules, &net.Resolver{PreferGo: true, Dial: broken}, seen.add), there4+":80", &seen), target)
	}
}
