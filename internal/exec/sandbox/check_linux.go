package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/exec/egress"
	"pawl/internal/lib/list"
	"pawl/internal/lib/must"
)

// Answer tries the questions in the sandbox of a policy: on the calling thread, which must be in it, or in a process in
// bubblewrap's sandbox, which no thread can enter.
func Answer(p Policy, asked []Question) (found []Finding, err error) {
	if p.Machine.Files != ByBwrap {
		return tried(asked), nil
	}
	encoded := must.Have(json.Marshal(asked)) // only plain values are in it; one argument would not take thousands of questions
	path, argv := p.wrap(entry{}, "")
	cmd := exec.Command(path)
	cmd.Args, cmd.Env, cmd.Stdin = argv, []string{"GOMAXPROCS=1"}, bytes.NewReader(encoded)
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return found, json.Unmarshal(out, &found)
}

func tried(asked []Question) []Finding {
	return list.Map(asked, func(q Question) Finding { return Finding{q, q.done()} })
}

func (q Question) done() bool {
	switch q.Deed {
	case Reading:
		return reads(q.Target)
	case Writing:
		return writes(q.Target)
	case Connecting:
		addr, err := netip.ParseAddrPort(q.Target)
		return err == nil && connects(addr)
	case Through:
		return throughProxy(q.Target)
	case Asking:
		addr, err := netip.ParseAddrPort(q.Target)
		return err == nil && answers(addr)
	case Dialing:
		conn, err := net.DialTimeout("unix", q.Target, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	case Mingling:
		return os.Getpid() > 2 // 1 in a process table of its own, 2 after bubblewrap
	case Calling:
		_, _, ring := unix.Syscall(unix.SYS_IO_URING_SETUP, 0, 0, 0)
		_, err := unix.KeyctlInt(unix.KEYCTL_GET_KEYRING_ID, unix.KEY_SPEC_SESSION_KEYRING, 0, 0, 0)
		return ring != unix.ENOSYS || err != unix.ENOSYS
	}
	return true // an unknown deed must not count as impossible
}

// reads reports whether there is something to read at path. An empty folder counts as hidden.
func reads(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if names, err := f.Readdirnames(1); err == nil {
		return len(names) > 0
	}
	_, err = f.Read(make([]byte, 1))
	return err == nil
}

func writes(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		return err == nil
	}
	f, err := os.CreateTemp(path, ".pawl-check-*")
	if err != nil {
		return false
	}
	f.Close()
	return os.Remove(f.Name()) == nil
}

// throughProxy asks the room's proxy for a connection. Another thread answers it.
func throughProxy(target string) bool {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(egress.Port)), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprintf(conn, "CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", target); err != nil {
		return false
	}
	answer := make([]byte, len("HTTP/1.1 200"))
	_, err = io.ReadFull(conn, answer)
	return err == nil && string(answer[len(answer)-3:]) == "200"
}

// connects tries TCP, TCP with data in its first packet, and multipath TCP, which the kernel checks by different rules.
func connects(addr netip.AddrPort) bool {
	return tries(addr, unix.IPPROTO_TCP, false) || tries(addr, unix.IPPROTO_TCP, true) || tries(addr, unix.IPPROTO_MPTCP, false)
}

func tries(addr netip.AddrPort, protocol int, fast bool) bool {
	family := unix.AF_INET
	var sockaddr unix.Sockaddr = &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().Unmap().As4()}
	if addr.Addr().Is6() && !addr.Addr().Is4In6() {
		family, sockaddr = unix.AF_INET6, &unix.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if fast {
		err = unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, sockaddr)
	} else {
		err = unix.Connect(fd, sockaddr)
	}
	if err == nil {
		return true
	}
	if err != unix.EINPROGRESS {
		return false
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	if n, err := unix.Poll(poll, 1000); err != nil || n == 0 {
		return false
	}
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	return err == nil && code == 0
}
