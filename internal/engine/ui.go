package engine

import (
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/api"
	"github.com/temporalio/ui-server/v2/server/auth"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/headers"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/server/rpc"
	uiassets "github.com/temporalio/ui-server/v2/ui"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	engineauth "pawl/internal/engine/auth"
)

// serveUI serves on a listener that is already bound. It builds the routes at the first request, so it does not delay
// the start. It uses the packages of ui-server directly and not its NewServer, because NewServer binds the port
// itself and ends the process (echo's Logger.Fatal) if it can't. stop ends it.
func serveUI(listener net.Listener, frontend string, e Endpoint) (stop func()) {
	routes := sync.OnceValues(func() (http.Handler, error) { return uiRoutes(frontend, e.pass) })
	var pages http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, err := routes()
		if err != nil {
			http.Error(w, "Temporal UI: "+err.Error(), http.StatusInternalServerError)
			return
		}
		handler.ServeHTTP(w, r)
	})
	if e.pass != nil {
		pages = &visitors{pass: e.pass, run: e.run(), next: pages, used: map[string]bool{}, sessions: map[string]bool{}}
	}
	server := &http.Server{Handler: onlyLocal(pages), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	return func() {
		_ = server.Close()
		serving.Wait()
	}
}

// uiRoutes does what NewServer of ui-server v2.55.0 does, without the parts that are not configured here
// (authentication, request log, public path, read-only). Its calls use the engine's pass.
func uiRoutes(frontend string, p *engineauth.Pass) (http.Handler, error) {
	cfg := &uiconfig.Config{
		TemporalGRPCAddress: frontend,
		DefaultNamespace:    namespaceName,
		DisableNewsFetch:    true,
	}
	const secure = false // plain http on the loopback interface
	provider, err := uiconfig.NewConfigProviderWithRefresh(fixedConfig{cfg})
	if err != nil {
		return nil, err
	}
	assets, err := uiassets.Assets()
	if err != nil {
		return nil, err
	}
	local, _ := fs.Sub(assets, "local") // only a name can be wrong

	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	e.Use(middleware.Recover(), middleware.Gzip(), middleware.Secure())
	e.Use(csrf.EnsureTokenCookie(secure))
	e.Use(middleware.CSRFWithConfig(csrf.MiddlewareConfig(provider, secure)))
	var trust *tls.Config
	if p != nil {
		trust = p.Insider()
	}
	conn, err := rpc.Dial(frontend, trust)
	if err != nil {
		return nil, err
	}
	route.SetHealthRoute(e)
	apiRoutes(e, provider, conn)
	err = route.SetUIRoutes(e, cfg.PublicPath, local, provider)
	route.SetRenderRoute(e, "/")
	return e, err
}

// apiRoutes does what SetAPIRoutes of ui-server does, which also reads certificates from files and logs that.
func apiRoutes(e *echo.Echo, provider *uiconfig.ConfigProviderWithRefresh, conn *grpc.ClientConn) {
	forward := []api.Middleware{headers.WithForwardHeaders([]string{auth.AuthorizationExtrasHeader, "Caller-Type"})}
	g := e.Group("/api/v1")
	g.GET("/settings", api.GetSettings(provider))
	g.GET("/releases", api.GetLatestReleases(provider, api.NewReleaseChecker()))
	g.GET("/ui-extensions", api.GetUIExtensions(provider, api.TemporalAccessCheck(conn, forward)))
	g.GET(api.WorkflowRawHistoryUrl, api.WorkflowRawHistoryHandler(workflowservice.NewWorkflowServiceClient(conn)))
	g.Match([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, "/*", api.TemporalAPIHandler(provider, forward, conn))
}

type fixedConfig struct{ cfg *uiconfig.Config }

func (c fixedConfig) GetConfig() (*uiconfig.Config, error) { return c.cfg, nil }

// onlyLocal refuses requests that name another host. Otherwise a web page whose host name resolves to 127.0.0.1 (DNS
// rebinding) could read loops and answer their gates.
func onlyLocal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(r.Host); err == nil {
			host = name
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, fmt.Sprintf("The engine's UI answers to localhost only, not to %q.", host), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
