package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// If bubblewrap makes the sandbox, only a process inside knows that it exists, and only such a process can listen in
// its network. So the command starts as this program, which checks the sandbox, reports over a socket that the command
// begins, passes on the listener for the proxy, and becomes the command.
const entryFD = 3

// enter is what Main does if this program is started in bubblewrap's sandbox. command is a path and the arguments; without
// it, the questions are answered. It returns only with an error.
func (e entry) enter(command []string) error {
	if len(command) == 0 {
		var asked []Question
		err := json.NewDecoder(os.Stdin).Decode(&asked)
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(tried(asked))
		}
		if err == nil {
			os.Exit(0)
		}
		return err
	}
	rights, err := e.prepared()
	message := ""
	if err != nil {
		message = err.Error()
	}
	if err := errors.Join(err, unix.Sendmsg(entryFD, []byte("."+message), rights, nil, 0)); err != nil {
		return err
	}
	unix.CloseOnExec(entryFD)
	return unix.Exec(command[0], command[1:], os.Environ())
}

// prepared checks that the sandbox is the wanted one, and returns the proxy's socket to pass on, nil for none.
func (e entry) prepared() (rights []byte, err error) {
	for _, s := range e.Stands {
		var st unix.Stat_t
		if err := unix.Stat(s.Path, &st); err != nil || uint64(st.Dev) != s.Device || st.Ino != s.Inode {
			return nil, fmt.Errorf("%s is no longer the same folder", s.Path)
		}
	}
	if !e.Proxy {
		return nil, nil
	}
	l, err := listen()
	if err != nil {
		return nil, fmt.Errorf("its network: %w", err)
	}
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		return nil, fmt.Errorf("its network: %w", err)
	}
	return unix.UnixRights(int(socket.Fd())), nil
}

// Begun waits until a command begins in the sandbox, and returns the listener that it passes on, nil for none. An error
// says that it has not begun: bubblewrap could not make the sandbox, or made another one than was wanted.
func Begun(pipe *os.File) (net.Listener, error) {
	defer pipe.Close()
	data, rights := make([]byte, 1024), make([]byte, unix.CmsgSpace(4))
	conn, err := net.FileConn(pipe)
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
		return nil, nil // it has no network
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
