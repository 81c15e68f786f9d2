package supervisor

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

	"pawl/internal/exec/egress"
	"pawl/internal/exec/llmproxy"
	"pawl/internal/exec/sandbox"
)

// metering holds the meter of the running command. In a network of its own, the command reaches the meter through the
// proxy. Otherwise the meter listens on a port of this machine's loopback, and only the command knows the token that it
// accepts.
type metering struct {
	of  atomic.Pointer[llmproxy.Meter] // nil if the command has no meter
	web *http.Server                   // listens on this machine's loopback; nil if there is none
}

func (m *metering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if meter := m.of.Load(); meter != nil {
		meter.ServeHTTP(w, r)
		return
	}
	http.Error(w, "This is pawl's proxy. No agent with a meter is running.", http.StatusNotFound)
}

// begin makes the meter of a command that has one, and tells the command its address.
func (m *metering) begin(c *Command) error {
	if c.Meter == nil {
		return nil
	}
	meter, err := llmproxy.New(*c.Meter)
	if err != nil {
		return err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(egress.Port))
	if c.Sandbox == nil || c.Sandbox.Network != sandbox.Filtered {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return errors.Join(fmt.Errorf("the meter: %w", err), meter.End())
		}
		address = l.Addr().String()
		web := &http.Server{Handler: m, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
		go func() { _ = web.Serve(l) }()
		m.web = web
	}
	m.of.Store(meter)
	for path, text := range c.Meter.Files {
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, llmproxy.Address, address)), 0o600); err != nil {
			return errors.Join(fmt.Errorf("telling the agent where the meter is: %w", err), m.end())
		}
	}
	for _, words := range []*[]string{&c.Argv, &c.Env} {
		*words = slices.Clone(*words)
		for i, word := range *words {
			(*words)[i] = strings.ReplaceAll(word, llmproxy.Address, address)
		}
	}
	return nil
}

// end closes the meter when no process of the command is left. Everything that it counted is in its file then.
func (m *metering) end() error {
	meter := m.of.Swap(nil)
	if meter == nil {
		return nil
	}
	if m.web != nil {
		_ = m.web.Close()
		m.web = nil
	}
	return meter.End()
}
