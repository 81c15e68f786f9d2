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

// The server's patience, and how many senders it hears at once: the others wait to be heard. Every
// delivery is a connection of its own, so one that sends nothing keeps no place for long.
const (
	headerTime = 5 * time.Second
	readTime   = 15 * time.Second
	writeTime  = readTime + submitTime + 5*time.Second
	closeTime  = 5 * time.Second
	maxHeaders = 16 << 10
	atOnce     = 128
	lookEvery  = 5 * time.Second // for stewards that were started or have ended
	otherPorts = 50              // are tried where the first one is taken
)

// Options are what Run needs.
type Options struct {
	Stewards *Temporal
	Home     home.Home
	Logger   *slog.Logger
	Address  string            // config.Worker.Triggers
	Serving  func(addr string) // told the address when the endpoint begins to serve, "" when it ends; nil for nobody
}

// Run serves the endpoint for as long as a steward with triggers runs, until ctx ends. Where it can't
// listen it says so in the log and tries again.
func Run(ctx context.Context, o Options) {
	if o.Address == config.NoTriggers {
		return
	}
	endpoint := New(o.Stewards, o.Home, o.Logger, time.Now)
	var server *http.Server
	end := func() {
		if server != nil {
			stop(server)
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
		case err != nil: // those that are known go on being served
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
			go func(s *http.Server) { _ = s.Serve(l) }(server) // it ends when it is stopped
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

// Server is an HTTP server with the bounds of the endpoint. It takes listeners from Listen.
func Server(h http.Handler, logger *slog.Logger) *http.Server {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, MaxHeaderBytes: maxHeaders,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	s.SetKeepAlivesEnabled(false)
	return s
}

// stop lets the deliveries that are under way have their answers.
func stop(s *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		_ = s.Close()
	}
}

// Listen listens at address, and keeps it in triggers.json. With the default it listens where it did the last time, since
// senders know that address, else at the first port from 8280 on that is free.
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
