package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/server/api/adminservice/v1"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

// server is one run of the embedded Temporal server and its UI.
type server struct {
	temporal temporal.Server
	stopUI   func()
	stage    *stage
	endpoint Endpoint
	id       atomic.Pointer[string] // the endpoint's ClusterID, once it is known
	replaced string                 // the database that was moved aside, "" for none
	// started is closed when the server's Start has returned, which is after the frontend began to serve.
	started  chan struct{}
	startErr error
}

// anyPort is for the worker service, which nobody calls. The service is built last, after the frontend, and a
// half-built server can't be stopped. If the worker service could not bind a fixed port, the frontend's port would be
// lost as well.
const anyPort = 0

// startServer returns when the frontend answers. The server's own Start continues in the background: its last part,
// the system workers, serves schedules and batches, which can wait.
func startServer(ctx context.Context, cfg *config.Config, p ports, o Options, e Endpoint) (*server, error) {
	s := &server{stage: &stage{alarm: make(chan struct{}, 1)}, endpoint: e, started: make(chan struct{})}
	if err := s.build(cfg, p, o); err != nil {
		p.ui.Close()
		return nil, err
	}
	s.stopUI = serveUI(p.ui, p.address(), e)
	go func() {
		defer close(s.started)
		s.startErr = s.temporal.Start()
	}()
	if err := s.ready(ctx, p.address()); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// build makes the server, which binds its ports. An error is a fatalError if the server called Fatal.
func (s *server) build(cfg *config.Config, p ports, o Options) (err error) {
	s.stage.building.Store(true)
	defer s.stage.building.Store(false)
	defer func() {
		switch r := recover().(type) {
		case nil:
		case fatalError:
			err = r
		default:
			panic(r)
		}
	}()
	hosts := map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: static.SingleLocalHost(p.address()),
		primitives.HistoryService:  static.SingleLocalHost(hostPort(p.history)),
		primitives.MatchingService: static.SingleLocalHost(hostPort(p.matching)),
		primitives.WorkerService:   static.SingleLocalHost(hostPort(anyPort)),
	}
	options := []temporal.ServerOption{
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithLogger(serverLogger{out: o.Logger, stage: s.stage}),
		temporal.WithDynamicConfigClient(tuning(o)),
		temporal.WithChainedFrontendGrpcInterceptors(meant(&s.id)),
	}
	if s.endpoint.pass != nil {
		options = append(options, asking(s.endpoint.pass)...)
	}
	s.temporal, err = temporal.NewServer(options...)
	return err
}

// ready waits until the frontend answers for the namespace, at most for patience.
func (s *server) ready(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	go func() {
		select {
		case <-ctx.Done():
		case <-s.started:
			if s.startErr != nil {
				cancel()
			}
		}
	}()
	conn, err := dial(address, s.endpoint.pass)
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		err := answers(ctx, conn)
		if err == nil {
			id, err := clusterID(ctx, conn)
			s.endpoint.ClusterID = id
			s.id.Store(&id)
			return err
		}
		if pause(ctx, 2*time.Millisecond) == nil {
			continue
		}
		select {
		case <-s.started:
			return errors.Join(s.startErr, err)
		default:
			return fmt.Errorf("the server on %s does not answer: %w", address, err)
		}
	}
}

// refresh makes the server create the tasks of runs again.
func (s *server) refresh(ctx context.Context, requests []*adminservice.RefreshWorkflowTasksRequest) error {
	if len(requests) == 0 {
		return nil
	}
	conn, err := dial(s.endpoint.Address, s.endpoint.pass)
	if err != nil {
		return err
	}
	defer conn.Close()
	admin := adminservice.NewAdminServiceClient(conn)
	for _, request := range requests {
		_, failed := admin.RefreshWorkflowTasks(ctx, request)
		err = errors.Join(err, failed)
	}
	return err
}

// stop ends everything that the server runs and returns when all of it has ended.
func (s *server) stop() {
	if s.stage.stopping.Swap(true) {
		return
	}
	s.stopUI()
	<-s.started
	_ = s.temporal.Stop()
}

// serverConfig returns a cluster of one: all services in this process, no membership protocol.
func serverConfig(db *config.SQL, p ports, clusterID string) *config.Config {
	cfg := &config.Config{}
	cfg.Global.Membership = config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: host}
	cfg.Persistence = config.Persistence{
		DefaultStore:     "sqlite",
		VisibilityStore:  "sqlite",
		NumHistoryShards: 1,
		DataStores:       map[string]config.DataStore{"sqlite": {SQL: db}},
	}
	cfg.ClusterMetadata = &cluster.Config{
		FailoverVersionIncrement: 10,
		MasterClusterName:        clusterName,
		CurrentClusterName:       clusterName,
		ClusterInformation: map[string]cluster.ClusterInformation{clusterName: {
			Enabled:                true,
			InitialFailoverVersion: 1,
			RPCAddress:             p.address(),
			ClusterID:              clusterID,
		}},
	}
	service := func(port int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: host}}
	}
	// No HTTP API: it accepts writes from any web page that finds its port (no CSRF token), and the SDK, the CLI and
	// the UI do not use it.
	cfg.Services = map[string]config.Service{
		string(primitives.FrontendService): service(p.frontend),
		string(primitives.HistoryService):  service(p.history),
		string(primitives.MatchingService): service(p.matching),
		string(primitives.WorkerService):   service(anyPort),
	}
	cfg.PublicClient.HostPort = p.address()
	return cfg
}
