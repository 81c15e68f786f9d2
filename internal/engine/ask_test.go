package engine_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"pawl/internal/engine"
	engineauth "pawl/internal/engine/auth"
)

// dialWith connects to an engine that requires a token.
func dialWith(t *testing.T, e *engine.Engine) client.Client {
	t.Helper()
	p := e.Endpoint().Pass()
	require.NotNil(t, p)
	c, err := client.Dial(client.Options{
		HostPort: e.Endpoint().Address, Credentials: client.NewAPIKeyStaticCredentials(p.Token), ConnectionOptions: client.ConnectionOptions{TLS: p.Client()},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// listens returns the ports on which this process listens, including the worker service's.
func listens(t *testing.T) (ports []int) {
	t.Helper()
	own := map[string]bool{}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("only Linux says on which ports a process listens")
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil {
			own[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		f, err := os.Open("/proc/net/" + table)
		require.NoError(t, err)
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 || fields[3] != "0A" || !own[fields[9]] {
				continue
			}
			port, err := strconv.ParseInt(fields[1][strings.LastIndex(fields[1], ":")+1:], 16, 32)
			require.NoError(t, err)
			ports = append(ports, int(port))
		}
	}
	return ports
}

// refuses reports whether err is a refused call: no connection, no right, or, at the frontend, no such service.
func refuses(err error, frontend bool) bool {
	s := status.Convert(err)
	return s.Code() == codes.Unavailable || s.Code() == codes.PermissionDenied || s.Message() == "Request unauthorized." || frontend && s.Code() == codes.Unimplemented
}

// Nobody without the pass gets an answer, on any port, to any call, with or without TLS.
func TestE6_AnEngineThatAsksAnswersNobodyElse(t *testing.T) {
	o := options(t)
	o.Auth = engineauth.Wanted
	e := share(t, o)
	other, err := engineauth.Settle(t.TempDir(), engineauth.Wanted)
	require.NoError(t, err)
	forged := other.Insider()
	forged.RootCAs, forged.InsecureSkipVerify = nil, true

	c := dialWith(t, e)
	startWorker(t, c)
	var got int
	require.NoError(t, execute(t, c, double, 21).Get(t.Context(), &got), "who has it gets everything")
	require.Equal(t, 42, got)

	ports := listens(t)
	require.Subset(t, ports, e.Endpoint().Ports)
	require.Greater(t, len(ports), len(e.Endpoint().Ports), "the worker service's too")
	for _, port := range ports {
		for name, trust := range map[string]credentials.TransportCredentials{
			"plain":                                insecure.NewCredentials(),
			"TLS":                                  credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}),
			"TLS with a certificate that pretends": credentials.NewTLS(forged),
		} {
			conn, err := grpc.NewClient("passthrough:///"+address(port), grpc.WithTransportCredentials(trust), grpc.WithNoProxy())
			require.NoError(t, err)
			for _, header := range []string{"", "Bearer " + other.Token, "Bearer ", e.Endpoint().Pass().Token} {
				for _, method := range []string{
					"temporal.api.workflowservice.v1.WorkflowService/GetSystemInfo",
					"temporal.api.workflowservice.v1.WorkflowService/StartWorkflowExecution",
					"temporal.api.workflowservice.v1.WorkflowService/SignalWorkflowExecution",
					"temporal.api.workflowservice.v1.WorkflowService/UpdateWorkflowExecution",
					"temporal.api.workflowservice.v1.WorkflowService/QueryWorkflow",
					"temporal.api.operatorservice.v1.OperatorService/ListSearchAttributes",
					"temporal.server.api.adminservice.v1.AdminService/DescribeCluster",
					"temporal.server.api.historyservice.v1.HistoryService/SignalWorkflowExecution",
					"temporal.server.api.matchingservice.v1.MatchingService/PollWorkflowTaskQueue",
					"grpc.health.v1.Health/Check",
				} {
					ctx, cancel := context.WithTimeout(t.Context(), answerTime)
					ctx = metadata.AppendToOutgoingContext(ctx, "authorization", header)
					err := conn.Invoke(ctx, "/"+method, &emptypb.Empty{}, &emptypb.Empty{})
					cancel()
					if !refuses(err, port == e.Endpoint().Ports[0]) {
						t.Errorf("port %d, %s, %q, %s: %v", port, name, header, method, err)
					}
				}
				for _, method := range []string{
					"temporal.server.api.adminservice.v1.AdminService/StreamWorkflowReplicationMessages",
					"temporal.server.api.historyservice.v1.HistoryService/StreamWorkflowReplicationMessages",
				} {
					ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", header), answerTime)
					stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+method)
					if err == nil {
						err = stream.RecvMsg(&emptypb.Empty{})
					}
					cancel()
					if !refuses(err, port == e.Endpoint().Ports[0]) {
						t.Errorf("port %d, %s, %q, %s: %v", port, name, header, method, err)
					}
				}
			}
			conn.Close()
		}
		for _, scheme := range []string{"http", "https"} {
			tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
			answer, err := (&http.Client{Transport: tr}).Get(fmt.Sprintf("%s://%s/api/v1/namespaces/default/workflows", scheme, address(port)))
			if err == nil {
				answer.Body.Close()
				assert.NotEqual(t, http.StatusOK, answer.StatusCode, "port %d by %s", port, scheme)
			}
			tr.CloseIdleConnections()
		}
	}
}

func TestE6_WhetherAnEngineAsksOutlivesIt(t *testing.T) {
	o := options(t)
	run := func(w engineauth.Wish) *engineauth.Pass {
		o.Auth = w
		e, err := engine.Share(t.Context(), o)
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		found, ok := engine.Find(t.Context(), o.Dir)
		require.True(t, ok, "who can read the folder finds it")
		require.Equal(t, e.Endpoint(), found)
		return e.Endpoint().Pass()
	}
	require.Nil(t, run(engineauth.AsBefore))
	first := run(engineauth.Wanted)
	require.NotNil(t, first)
	require.Equal(t, first, run(engineauth.AsBefore))
	require.Equal(t, first, run(engineauth.Wanted))
	require.Nil(t, run(engineauth.Unwanted))
	require.NoFileExists(t, filepath.Join(o.Dir, "pass.json"))
	require.NoFileExists(t, engineauth.ProfilePath(o.Dir))
	require.Nil(t, run(engineauth.AsBefore))
}

func TestE6_AnEngineThatIsTakenOverGoesOnAsking(t *testing.T) {
	o := options(t)
	require.NoError(t, os.MkdirAll(o.Dir, 0o700))
	_, err := engineauth.Settle(o.Dir, engineauth.Wanted)
	require.NoError(t, err)
	owner := startChild(t, o)
	require.True(t, owner.Owner)
	o.Auth = engineauth.Unwanted // the wish is only for an engine that it starts
	e := share(t, o)
	require.False(t, e.Owner())
	c := dialWith(t, e)
	startWorker(t, c)
	run := execute(t, c, waitThenDouble, 4)
	was := e.Endpoint().Link("")
	owner.kill(t)
	require.Eventually(t, e.Owner, answerTime, time.Millisecond)
	require.NoError(t, c.SignalWorkflow(t.Context(), run.GetID(), run.GetRunID(), "go", nil))
	var got int
	require.NoError(t, run.Get(t.Context(), &got))
	require.Equal(t, 8, got)

	answer, err := http.DefaultTransport.RoundTrip(visiting(t, was))
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode, "links end with the engine that they are for")
	answer, err = http.DefaultTransport.RoundTrip(visiting(t, e.Endpoint().Link("")))
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, http.StatusSeeOther, answer.StatusCode)
}

func visiting(t *testing.T, link string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	require.NoError(t, err)
	return r
}

func TestE6_TheUIIsForVisitorsWithALink(t *testing.T) {
	o := options(t)
	o.Auth = engineauth.Wanted
	e := share(t, o)
	base, link := e.Endpoint().UI, e.Endpoint().Link
	get := func(c *http.Client, at string) (int, string) {
		t.Helper()
		answer, err := c.Get(at)
		require.NoError(t, err)
		defer answer.Body.Close()
		return answer.StatusCode, answer.Request.URL.RequestURI()
	}
	visitor := func() *http.Client {
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		return &http.Client{Jar: jar}
	}
	stranger := visitor()
	for _, page := range []string{"/", "/health", "/api/v1/settings", "/api/v1/namespaces/default/workflows", "/_app/version.json", "/pawl-visit/", "/pawl-visit/x." + strings.Repeat("0", 32)} {
		code, _ := get(stranger, base+page)
		require.Equal(t, http.StatusUnauthorized, code, page)
	}

	one := visitor()
	at := link("/namespaces/default/workflows")
	code, page := get(one, at)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "/namespaces/default/workflows", page)
	for _, page := range []string{"/api/v1/settings", "/api/v1/namespaces/default/workflows", "/api/v1/system-info"} {
		code, _ = get(one, base+page)
		require.Equal(t, http.StatusOK, code, page)
	}
	u, err := url.Parse(base)
	require.NoError(t, err)
	for _, c := range one.Jar.Cookies(u) {
		require.NotContains(t, c.Value, e.Endpoint().Pass().Token)
	}
	code, _ = get(stranger, at)
	require.Equal(t, http.StatusUnauthorized, code, "a link is good for one visit")
	code, _ = get(one, at)
	require.Equal(t, http.StatusOK, code, "who is there already may use it again")
	for _, to := range []string{"//evil.example/", "https://evil.example/", `/\evil.example`, "javascript:alert(1)"} {
		other := visitor()
		code, page := get(other, link("")+"?"+url.Values{"to": {to}}.Encode())
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, "/", page, to)
	}

	write, err := one.Post(base+"/api/v1/namespaces/default/workflows/x/signal/approve", "application/json", strings.NewReader(`{}`))
	require.NoError(t, err)
	write.Body.Close()
	require.Equal(t, http.StatusBadRequest, write.StatusCode, "a session does not stand for the page's own token against other sites")

	require.NoError(t, e.Close())
	o.Auth = engineauth.AsBefore
	share(t, o)
	code, _ = get(one, base+"/api/v1/settings")
	require.Equal(t, http.StatusUnauthorized, code, "a session ends with the engine")
}

// If an engine is gone, another one may have its address. That one refuses calls for the first one.
func TestAnEngineRefusesWhatIsForAnother(t *testing.T) {
	e := share(t, engine.Options{Dir: t.TempDir()})
	conn, err := grpc.NewClient(e.Endpoint().Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	for whom, refused := range map[string]bool{"": false, e.Endpoint().ClusterID: false, "another": true} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), engineauth.EngineHeader, whom)
		_, err := workflowservice.NewWorkflowServiceClient(conn).GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{})
		require.Equal(t, refused, status.Code(err) == codes.Unavailable, "%q: %v", whom, err)
	}
}
