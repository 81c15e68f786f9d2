package egress_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"pawl/internal/exec/egress"
)

// The addresses in these tests: this host, another host that it reaches, and a network of this host alone.
const (
	here4, second4, there4, guest4 = "198.51.100.1", "198.51.100.3", "198.51.100.2", "172.30.0.2"
	here6, there6                  = "2001:db8:77::1", "2001:db8:77::2"
)

// inWorld runs the calling test again in a process with its own network, and reports whether this is that process. It
// needs no rights if user namespaces are allowed.
func inWorld(t *testing.T) bool {
	t.Helper()
	if os.Getenv("PAWL_EGRESS_WORLD") == t.Name() {
		setUp(t)
		return true
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("the test needs the program ip (iproute2)")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), "PAWL_EGRESS_WORLD="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skipf("this machine allows no network namespace: %v", err)
	}
	err := cmd.Wait()
	t.Log(out.String())
	require.NoError(t, err)
	if strings.Contains(out.String(), "--- SKIP: "+t.Name()+" ") {
		t.Skip("skipped inside")
	}
	return false
}

// place is a thread in its own network namespace.
type place struct {
	tid  int
	work chan func()
}

// newPlace gives a thread its own network, as the supervisor's rooms do.
func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{work: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		p.tid = unix.Gettid()
		ready <- unix.Unshare(unix.CLONE_NEWNET)
		for do := range p.work {
			do()
		}
	}()
	require.NoError(t, <-ready)
	t.Cleanup(func() { close(p.work) })
	p.do(func() { command(t, "ip", "link", "set", "lo", "up") })
	return p
}

// do calls f in the place; processes that f forks are there too.
func (p *place) do(f func()) {
	done := make(chan struct{})
	p.work <- func() { defer close(done); f() }
	<-done
}

// listen makes a listener in the place. A process elsewhere may serve it.
func (p *place) listen(t *testing.T, at string) (l net.Listener) {
	t.Helper()
	var err error
	p.do(func() { l, err = net.Listen("tcp", at) })
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func command(t *testing.T, argv ...string) {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", argv, err, out)
	}
}

// there is the other host.
var there *place

// setUp makes the network of these tests.
func setUp(t *testing.T) {
	t.Helper()
	command(t, "ip", "link", "set", "lo", "up")
	there = newPlace(t)
	tid := fmt.Sprint(there.tid)
	command(t, "ip", "link", "add", "out", "type", "veth", "peer", "name", "far", "netns", tid)
	command(t, "ip", "addr", "add", here4+"/24", "dev", "out")
	command(t, "ip", "addr", "add", second4+"/24", "dev", "out") // packets to it come from the first one
	command(t, "ip", "-6", "addr", "add", here6+"/64", "dev", "out", "nodad")
	command(t, "ip", "link", "set", "out", "up")
	there.do(func() {
		command(t, "ip", "addr", "add", there4+"/24", "dev", "far")
		command(t, "ip", "-6", "addr", "add", there6+"/64", "dev", "far", "nodad")
		command(t, "ip", "link", "set", "far", "up")
	})
	if t.Failed() {
		t.FailNow()
	}
}

// names is a DNS server with one answer for each question about a name, counted from 0.
type names struct {
	mu     sync.Mutex
	asked  map[string]int
	answer func(name string, n int) []string
}

// resolver returns a resolver that asks the server.
func (s *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go s.serve(server)
		return client, nil
	}}
}

// count returns how often a name was resolved.
func (s *names) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

// serve answers one question at a time, in the format of DNS over TCP.
func (s *names) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for {
		var length uint16
		if binary.Read(conn, binary.BigEndian, &length) != nil {
			return
		}
		b := make([]byte, length)
		var m dnsmessage.Message
		if _, err := io.ReadFull(conn, b); err != nil || m.Unpack(b) != nil {
			return
		}
		q := m.Questions[0]
		name := strings.TrimSuffix(q.Name.String(), ".")
		s.mu.Lock()
		addresses := s.answer(name, s.asked[name])
		if q.Type == dnsmessage.TypeA { // the question for AAAA comes with it
			s.asked[name]++
		}
		s.mu.Unlock()
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		for _, a := range addresses {
			addr := netip.MustParseAddr(a)
			header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: dnsmessage.ClassINET, TTL: 60}
			switch {
			case addr.Is4() && q.Type == dnsmessage.TypeA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: addr.As4()}})
			case !addr.Is4() && q.Type == dnsmessage.TypeAAAA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
			}
		}
		if len(addresses) == 0 {
			m.RCode = dnsmessage.RCodeNameError
		}
		out, err := m.Pack()
		if err != nil {
			return
		}
		if _, err := conn.Write(slices.Concat(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out)); err != nil {
			return
		}
	}
}

// known is a DNS server with a fixed table.
func known(table map[string][]string) *names {
	return &names{asked: map[string]int{}, answer: func(name string, _ int) []string { return table[name] }}
}

// servedBy returns the address of a proxy with a resolver; it ends with the test.
func servedBy(t *testing.T, l net.Listener, r egress.Rules, resolver *net.Resolver, refused func(string, string)) string {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- egress.ServeWith(l, r, resolver, refused) }()
	t.Cleanup(func() {
		_ = l.Close()
		require.NoError(t, <-done)
	})
	return l.Addr().String()
}
