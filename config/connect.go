package config

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pawl/internal/engine/auth"
	"pawl/internal/fault"
	"pawl/internal/telemetry"
)

// DefaultNamespace is the namespace if none is set, and the only one of the embedded engine.
const DefaultNamespace = "default"

// Temporal says which Temporal service to use and how to connect to it.
type Temporal struct {
	Address   string
	Namespace string
	// Explicit says that the user named an address, so no engine is embedded.
	Explicit bool
	// UI is the address of the service's Temporal UI, without a slash at its end; "" if nobody named it.
	UI string
	// Telemetry records what clients and workers do, nil for no record.
	Telemetry *telemetry.Telemetry

	options client.Options
	keys    []string
}

// Connect reads Temporal's own settings: TEMPORAL_* override the profile of temporal.toml. If neither has an address,
// the service is the embedded engine, whose address is set later: see At.
func Connect() (Temporal, error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{})
	if err != nil {
		return Temporal{}, fault.New(fault.EngineUnreachable, "Temporal's settings can't be read: %v", err).
			Advise("Correct the variables TEMPORAL_* or the file temporal.toml.")
	}
	namespace := cmp.Or(profile.Namespace, DefaultNamespace)
	if profile.Address == "" {
		if namespace != DefaultNamespace {
			return Temporal{}, fault.New(fault.EngineUnreachable, "the namespace is set to %q, but no address is", namespace).
				Advise("Set TEMPORAL_ADDRESS too, or unset TEMPORAL_NAMESPACE: the embedded engine has only the namespace default.")
		}
		return Temporal{Namespace: namespace, keys: settings()}, nil
	}
	options, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return Temporal{}, fault.New(fault.EngineUnreachable, "Temporal's settings can't be used: %v", err).
			Advise("Correct the variables TEMPORAL_* or the file temporal.toml.")
	}
	ui := strings.TrimSuffix(os.Getenv(uiVariable), "/")
	if u, err := url.Parse(ui); ui != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return Temporal{}, fault.New(fault.EngineUnreachable, "%s is %q, which is not the address of a UI", uiVariable, ui).
			Advise("Set it to an address such as https://temporal.example, or unset it.")
	}
	t := Temporal{Address: profile.Address, Namespace: namespace, Explicit: true, UI: ui, options: options, keys: settings()}
	if profile.TLS != nil {
		t.keys = append(t.keys, profile.TLS.ClientKeyPath)
	}
	return t, nil
}

// settings returns the files in which Temporal's own programs keep settings, with keys of any of their profiles.
func settings() []string {
	files := []string{os.Getenv("TEMPORAL_CONFIG_FILE")}
	if dir, err := os.UserConfigDir(); err == nil {
		files = append(files, filepath.Join(dir, "temporalio", "temporal.toml"), filepath.Join(dir, "temporalio", "temporal.yaml"))
	}
	return files
}

// uiVariable names the UI of a service that is not embedded. Temporal's own settings have no name for it.
const uiVariable = "PAWL_TEMPORAL_UI"

// At returns the embedded engine at an address. p is the pass that the engine requires, nil if it requires none. If
// the engine is gone and another one has its address, that one refuses calls with this engine's ID. The connection is
// then made again to the address that whereFrom returns. API keys and certificates of a profile without an address are
// not used.
func (t Temporal) At(address string, p *auth.Pass, id string, whereFrom func() string) Temporal {
	if t.Explicit {
		return t
	}
	t.Address = address
	w := &way{where: whereFrom}
	t.options = client.Options{HeadersProvider: meant{auth.EngineHeader: id}, ConnectionOptions: client.ConnectionOptions{
		GrpcCompression: &client.GrpcCompressionNone{}, // connections never leave this machine
		DialOptions: []grpc.DialOption{
			// The engine is on this machine, so no proxy is involved. When another process takes the engine over, it
			// answers soon, so the connection tries again after milliseconds.
			grpc.WithNoProxy(),
			grpc.WithContextDialer(w.dial),
			grpc.WithChainUnaryInterceptor(w.call),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond},
				MinConnectTimeout: time.Second,
			}),
		}}}
	if p != nil {
		t.options.Credentials, t.options.ConnectionOptions.TLS = client.NewAPIKeyStaticCredentials(p.Token), p.Client()
	}
	return t
}

// way connects to an engine that another process may have started at another address.
type way struct {
	where func() string

	mu   sync.Mutex
	conn net.Conn
}

func (w *way) dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", w.where())
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.conn = conn
	}
	return conn, err
}

func (w *way) call(ctx context.Context, method string, request, out any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
	err := invoke(ctx, method, request, out, c, o...)
	if s := status.Convert(err); s.Code() == codes.Unavailable && s.Message() == auth.AnotherEngine {
		w.mu.Lock()
		defer w.mu.Unlock()
		_ = w.conn.Close()
	}
	return err
}

// meant says in every call for which engine it is.
type meant map[string]string

// GetHeaders returns the headers.
func (m meant) GetHeaders(context.Context) (map[string]string, error) { return m, nil }

// Stranger returns the same service without what identifies the caller: no API key, no certificate, no headers.
func (t Temporal) Stranger() Temporal {
	t.options.Credentials, t.options.HeadersProvider = nil, nil
	if trust := t.options.ConnectionOptions.TLS; trust != nil {
		trust = trust.Clone()
		trust.Certificates, trust.GetClientCertificate = nil, nil
		t.options.ConnectionOptions.TLS = trust
	}
	return t
}

// Services returns the addresses of the service and, if somebody named it, of its UI, for a sandbox to close.
func (t Temporal) Services() []string {
	services := []string{t.Address}
	if u, err := url.Parse(t.UI); err == nil && u.Host != "" {
		port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		services = append(services, net.JoinHostPort(u.Hostname(), port))
	}
	return services
}

// Keys returns the files with what identifies the caller to a service, for a sandbox to hide: Temporal's settings, which may
// have API keys in them, and the key of the client's certificate.
func (t Temporal) Keys() (files []string) {
	for _, name := range t.keys {
		if path, err := filepath.Abs(name); name != "" && err == nil {
			files = append(files, path)
		}
	}
	return files
}

// dialTimeout is how long a service may take for its first answer.
const dialTimeout = 10 * time.Second

// Dial connects to the service. Clients are built nowhere else, so worker and commands use the same converters,
// metrics and identity. The error is ENGINE_UNREACHABLE.
func Dial(ctx context.Context, t Temporal, identity string, logger *slog.Logger) (client.Client, error) {
	o := t.options
	o.HostPort, o.Namespace = t.Address, t.Namespace
	o.Identity = identity
	o.Logger = log.NewStructuredLogger(logger)
	o.DataConverter = converter.GetDefaultDataConverter()
	o.FailureConverter = temporal.GetDefaultFailureConverter()
	o.MetricsHandler = client.MetricsNopHandler
	t.Telemetry.Equip(&o)
	o.ConnectionOptions.DialOptions = append(slices.Clone(o.ConnectionOptions.DialOptions), grpc.WithChainUnaryInterceptor(patient))
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, o)
	if err != nil {
		advice := "Start the engine with `pawl up`."
		if t.Explicit {
			advice = "Check TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and temporal.toml, and that the service runs."
		}
		return nil, fault.New(fault.EngineUnreachable, "Temporal at %s does not answer: %v", t.Address, err).Advise(advice)
	}
	return c, nil
}

// Ports returns the ports of a service that the user named, and of its UI, for a sandbox to close. For a service on
// this machine, it adds the UI's ports of a development server and of the project's compose file. It leaves out the
// ports 80 and 443, because commands of a loop need them.
func (t Temporal) Ports() []int {
	if !t.Explicit {
		return nil
	}
	var ports []int
	for i, at := range t.Services() {
		host, service, err := net.SplitHostPort(at)
		port, bad := strconv.Atoi(service)
		if err != nil || bad != nil || port == 80 || port == 443 {
			continue
		}
		ports = append(ports, port)
		if ip := net.ParseIP(host); i == 0 && (host == "localhost" || ip != nil && ip.IsLoopback()) {
			ports = append(ports, port+1000, 8080)
		}
	}
	return ports
}
