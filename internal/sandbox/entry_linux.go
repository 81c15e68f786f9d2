package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"pawl/internal/egress"
)

// Where bubblewrap makes the sandbox, only what runs in it knows that it is there, and nobody else can listen in its network.
// So the command begins as this program, which looks around, says over a socket that the command begins, hands out where
// that expects the proxy, and becomes the command.
const entryFD = 3

// enter is what Main does where a command begins as this program. It returns only to say why it could not.
func (e entry) enter(path string, argv []string) error {
	rights, err := e.prepared()
	says := ""
	if err != nil {
		says = err.Error()
	}
	if err := errors.Join(err, unix.Sendmsg(entryFD, []byte("."+says), rights, nil, 0)); err != nil {
		return err
	}
	unix.CloseOnExec(entryFD)
	return unix.Exec(path, argv, os.Environ())
}

// prepared looks whether the sandbox is the one that was wanted, and returns the proxy's socket to be handed out, nil for none.
func (e entry) prepared() (rights []byte, err error) {
	for _, s := range e.Stands {
		var st unix.Stat_t
		if err := unix.Stat(s.Path, &st); err != nil || uint64(st.Dev) != s.Device || st.Ino != s.Inode {
			return nil, fmt.Errorf("%s is not the folder any more that it was", s.Path)
		}
	}
	if !e.Proxy {
		return nil, nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(egress.Port)))
	if err != nil {
		return nil, fmt.Errorf("its network: %w", err)
	}
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		return nil, fmt.Errorf("its network: %w", err)
	}
	return unix.UnixRights(int(socket.Fd())), nil
}

// Hands reports whether a command says that it begins, with the socket at which it expects the proxy where it has one, and
// so needs the other end of the one that Begun reads as file 3.
func (p Policy) Hands() bool { return p.Machine.Files == ByBwrap }

// Begun waits until a command begins in the sandbox, and returns the socket that it hands out, nil where it has none. An
// error says that it has not begun: bubblewrap could not make the sandbox, or not the one that was wanted.
func Begun(from *os.File) (net.Listener, error) {
	defer from.Close()
	data, rights := make([]byte, 1024), make([]byte, unix.CmsgSpace(4))
	conn, err := net.FileConn(from)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	n, m, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(data, rights)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, io.EOF
	case n > 1:
		return nil, errors.New(string(data[1:n]))
	case m == 0:
		return nil, nil //nolint:nilnil // it has no network
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
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
