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

	// defaultPort is the stock dev server's, so that the Temporal CLI finds the engine unasked.
	defaultPort = 7233
	// uiOffset is the stock dev server's too: 7233 and 8233.
	uiOffset = 1000
	// lastPort ends the search below the ports that kernels hand out to outgoing connections
	// (32768 on Linux): a client that dials such a port again and again while the engine is down can
	// be given that very port as its own, and be connected to itself.
	lastPort = 32767
	// firstInternal begins the ports between the server's own services.
	firstInternal = 20000
)

// ports are what an engine listens on, all on the loopback interface.
type ports struct {
	frontend int
	ui       net.Listener
	history  int
	matching int
}

func (p ports) address() string { return hostPort(p.frontend) }

// choosePorts takes the first pair from preferred on of which both are free. For up to patience it
// waits for the first one: when an owner is killed, the kernel may drop its lock before its listeners.
func choosePorts(ctx context.Context, preferred int, patience time.Duration) (ports, error) {
	until := time.Now().Add(patience)
	for p := (ports{frontend: preferred}); p.frontend <= lastPort-uiOffset; {
		var err error
		if p.ui, err = listenPair(p.frontend); err == nil {
			if p.history, p.matching, err = freePorts(); err != nil {
				p.ui.Close()
			}
			return p, err
		}
		if p.frontend > preferred || time.Now().After(until) {
			p.frontend++
		} else if err := pause(ctx, 2*time.Millisecond); err != nil {
			return ports{}, err
		}
	}
	return ports{}, fmt.Errorf("no free port from %d on", preferred)
}

// listenPair returns the UI's listener if the frontend's port is free as well; the server binds
// that one itself.
func listenPair(frontend int) (net.Listener, error) {
	f, err := net.Listen("tcp", hostPort(frontend))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.Listen("tcp", hostPort(frontend+uiOffset))
}

// freePorts finds two ports for the server to bind a moment later. Each process begins elsewhere, so that
// engines that start together do not pick the same ones; start tries again if it happens all the same.
func freePorts() (one, other int, err error) {
	span := lastPort - firstInternal
	for i := range span {
		port := firstInternal + (os.Getpid()*16+i)%span
		l, err := net.Listen("tcp", hostPort(port))
		if err != nil {
			continue
		}
		l.Close()
		if one != 0 {
			return one, port, nil
		}
		one = port
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
