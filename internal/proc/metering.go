package proc

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"pawl/internal/egress"
	"pawl/internal/meter"
	"pawl/internal/sandbox"
)

// metering is the meter of the command that runs. In a network of its own the command finds it where it finds the proxy,
// else at a port of this machine's loopback, where nobody but the command knows what it answers to.
type metering struct {
	of  atomic.Pointer[meter.Meter] // nil where no command has one
	web *http.Server                // on this machine's loopback, nil for none
}

func (m *metering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if of := m.of.Load(); of != nil {
		of.ServeHTTP(w, r)
		return
	}
	http.Error(w, "This is pawl's proxy, and no agent is at work that has a meter.", http.StatusNotFound)
}

// begin makes the meter of a command that has one, and tells the command where it is.
func (m *metering) begin(c *Command) error {
	if c.Meter == nil {
		return nil
	}
	of, err := meter.New(*c.Meter)
	if err != nil {
		return err
	}
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(egress.Port))
	if c.Sandbox == nil || c.Sandbox.Network != sandbox.Filtered {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return errors.Join(fmt.Errorf("the meter: %w", err), of.End())
		}
		at = l.Addr().String()
		web := &http.Server{Handler: m, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
		go func() { _ = web.Serve(l) }()
		m.web = web
	}
	m.of.Store(of)
	for path, text := range c.Meter.Files {
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, meter.Address, at)), 0o600); err != nil {
			return errors.Join(fmt.Errorf("telling the agent where the meter is: %w", err), m.end())
		}
	}
	for _, words := range []*[]string{&c.Argv, &c.Env} {
		*words = slices.Clone(*words)
		for i, word := range *words {
			(*words)[i] = strings.ReplaceAll(word, meter.Address, at)
		}
	}
	return nil
}

// end ends the meter, when nothing of its command is left. Then all that it has counted is in its file.
func (m *metering) end() error {
	of := m.of.Swap(nil)
	if of == nil {
		return nil
	}
	if m.web != nil {
		_ = m.web.Close()
		m.web = nil
	}
	return of.End()
}
