package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

const (
	host = "127.0.0.1"

	// defaultPort is the port of Temporal's dev server, so the Temporal CLI finds the engine without a flag.
	defaultPort = 7233
	// uiOffset is that of Temporal's dev server too: 7233 and 8233.
	uiOffset = 1000
	// lastPort ends the search below the ports that kernels give to outgoing connections (from 32768 on Linux). A
	// client that dials such a port again and again while the engine is down can get that very port as its own, and
	// connect to itself.
	lastPort = 32767
	// firstInternal is the first port for connections between the server's own services.
	firstInternal = 20000
)

// ports are the ports of an engine, all on the loopback interface.
type ports struct {
	frontend int
	ui       net.Listener
	history  int
	matching int
}

func (p ports) address() string { return hostPort(p.frontend) }

// choosePorts returns the first pair of free ports from preferred on. It waits up to patience for the first pair:
// when an owner is killed, the kernel may release its lock before its listeners.
func choosePorts(ctx context.Context, preferred int, patience time.Duration) (ports, error) {
	deadline := time.Now().Add(patience)
	for p := (ports{frontend: preferred}); p.frontend <= lastPort-uiOffset; {
		var err error
		if p.ui, err = listenPair(p.frontend); err == nil {
			if p.history, p.matching, err = freePorts(); err != nil {
				p.ui.Close()
			}
			return p, err
		}
		if p.frontend > preferred || time.Now().After(deadline) {
			p.frontend++
		} else if err := pause(ctx, 2*time.Millisecond); err != nil {
			return ports{}, err
		}
	}
	return ports{}, fmt.Errorf("no free port from %d on", preferred)
}

// listenPair returns the UI's listener if the frontend's port is free as well. The server binds the frontend's port
// itself.
func listenPair(frontend int) (net.Listener, error) {
	f, err := net.Listen("tcp", hostPort(frontend))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.Listen("tcp", hostPort(frontend+uiOffset))
}

// freePorts finds two ports for the server to bind a moment later. Each process begins at another port, so engines
// that start together do not choose the same ones. If they still do, start tries again.
func freePorts() (first, second int, err error) {
	span := lastPort - firstInternal
	for i := range span {
		port := firstInternal + (os.Getpid()*16+i)%span
		l, err := net.Listen("tcp", hostPort(port))
		if err != nil {
			continue
		}
		l.Close()
		if first != 0 {
			return first, port, nil
		}
		first = port
	}
	return 0, 0, errors.New("no free ports for the engine's services")
}

func hostPort(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// pause waits for d or for the context.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
