package sandbox

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"pawl/internal/egress"
)

// Where bubblewrap makes the network, nobody but what runs in it can listen there. So the command begins as
// this program, which listens, hands the socket out and becomes the command.
const entryFD = 3

// enterNetwork is what Main does in such a command. It returns only to say why it could not.
func enterNetwork() error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(egress.Port)))
	if err != nil {
		return err
	}
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(entryFD, []byte("l"), unix.UnixRights(int(socket.Fd())), nil, 0); err != nil {
		return fmt.Errorf("handing out the socket: %w", err)
	}
	unix.CloseOnExec(entryFD)
	return unix.Exec(os.Args[2], os.Args[3:], os.Environ())
}

// Hands reports whether a command hands out the socket at which it expects the proxy, and so needs the other
// end of the one that Listener reads as file 3.
func (p Policy) Hands() bool { return p.Machine.Files == ByBwrap && p.Network == Filtered }

// Listener returns the socket that a command hands out, or the error that it ended before.
func Listener(from *os.File) (net.Listener, error) {
	defer from.Close()
	data, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	conn, err := net.FileConn(from)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_, n, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(data, rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("no socket was handed out: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("no socket was handed out: %w", err)
	}
	f := os.NewFile(uintptr(fds[0]), "proxy")
	defer f.Close()
	return net.FileListener(f)
}
