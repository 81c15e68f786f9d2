package trigger

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/netutil"

	"pawl/config"
	"pawl/internal/home"
)

// The timeouts of the server, and how many senders it serves at once; others wait. Every delivery has a connection of
// its own, so a silent sender does not block a place for long.
const (
	headerTime = 5 * time.Second
	readTime   = 15 * time.Second
	writeTime  = readTime + submitTime + 5*time.Second
	closeTime  = 5 * time.Second
	maxHeaders = 16 << 10
	atOnce     = 128
	lookEvery  = 5 * time.Second // how often to look for stewards that have started or ended
	otherPorts = 50              // how many ports are tried if the first one is taken
)

// Options are what Run needs.
type Options struct {
	Stewards *Temporal
	Home     home.Home
	Logger   *slog.Logger
	Address  string            // config.Worker.Triggers
	Serving  func(addr string) // called with the address when the endpoint begins to serve, with "" when it ends; may be nil
}

// Run serves the endpoint while a steward with triggers runs, until ctx ends. If it can't listen, it tries again.
func Run(ctx context.Context, o Options) {
	if o.Address == config.NoTriggers {
		return
	}
	endpoint := New(o.Stewards, o.Home, o.Logger, time.Now)
	var server *http.Server
	end := func() {
		if server != nil {
			closing, cancel := context.WithTimeout(context.Background(), closeTime)
			defer cancel()
			if server.Shutdown(closing) != nil { // deliveries that are under way have no answers yet
				_ = server.Close()
			}
			server = nil
			o.say("")
		}
	}
	defer end()
	said := ""
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		wanted, err := o.Stewards.Refresh(ctx)
		switch {
		case err != nil: // known stewards are still served
			o.Logger.Debug("the stewards can't be listed", "error", err)
		case !wanted:
			end()
		case server == nil:
			var l net.Listener
			if l, err = Listen(o.Home, o.Address); err != nil {
				if err.Error() != said {
					said = err.Error()
					o.Logger.Error("the triggers can't be served; trying again", "error", err)
				}
				break
			}
			said, server = "", Server(endpoint, o.Logger)
			go func(s *http.Server) { _ = s.Serve(l) }(server) // ends with Shutdown
			o.Logger.Info("triggers are served", "address", l.Addr().String())
			o.say(l.Addr().String())
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

func (o Options) say(addr string) {
	if o.Serving != nil {
		o.Serving(addr)
	}
}

// Server returns an HTTP server with the endpoint's limits, for a listener from Listen.
func Server(h http.Handler, logger *slog.Logger) *http.Server {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, MaxHeaderBytes: maxHeaders,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	s.SetKeepAlivesEnabled(false)
	return s
}

// Listen listens at address, and stores the address in triggers.json. With the default address it uses the last one,
// which senders know, else the first free port from 8280 on.
func Listen(h home.Home, address string) (net.Listener, error) {
	candidates := []string{address}
	if address == config.DefaultTriggers {
		candidates = nil
		ports := h.TriggerPorts()
		for port := home.TriggersPort; port < home.TriggersPort+otherPorts; port++ {
			ports = append(ports, port)
		}
		for _, port := range ports {
			candidates = append(candidates, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		}
	}
	var failed []error
	for _, candidate := range candidates {
		l, err := net.Listen("tcp", candidate)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if err := h.ServeTriggersAt(l.Addr().(*net.TCPAddr)); err != nil {
			l.Close()
			return nil, fmt.Errorf("keeping the address of the triggers: %w", err)
		}
		return netutil.LimitListener(l, atOnce), nil
	}
	return nil, fmt.Errorf("listening for triggers: %w", failed[0])
}
