package sandbox

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// gRPC's codes for a caller without valid credentials.
const (
	permissionDenied = "7"
	unauthenticated  = "16"
)

// answers reports whether an engine or its UI answers a caller without its token: a gRPC call, with and without TLS, or
// a call of the UI's API.
func answers(addr netip.AddrPort) bool {
	h2, plain, secure := new(http.Protocols), new(http.Protocols), new(http.Protocols)
	h2.SetUnencryptedHTTP2(true)
	plain.SetHTTP1(true)
	secure.SetHTTP2(true)
	return asks(addr, h2, "http", call) || asks(addr, secure, "https", call) || asks(addr, plain, "http", page)
}

// asks makes one request. It connects on the calling thread, which is in the sandbox; any thread may use an established
// connection.
func asks(addr netip.AddrPort, p *http.Protocols, scheme string, request func(base string) *http.Request) bool {
	conn, err := net.DialTimeout("tcp", addr.String(), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	t := &http.Transport{
		Protocols:       p,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // only whether it answers counts, not who it is
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}
	defer t.CloseIdleConnections()
	r := request(scheme + "://" + addr.String())
	answer, err := t.RoundTrip(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	if r.Method == http.MethodGet {
		return answer.StatusCode == http.StatusOK
	}
	body := new(bytes.Buffer) // the status comes after it
	_, err = body.ReadFrom(answer.Body)
	status := answer.Trailer.Get("grpc-status") + answer.Header.Get("grpc-status")
	return err == nil && status != "" && status != permissionDenied && status != unauthenticated
}

// call asks the engine for its system info, by gRPC, with an empty message.
func call(base string) *http.Request {
	r, _ := http.NewRequest(http.MethodPost, base+"/temporal.api.workflowservice.v1.WorkflowService/GetSystemInfo", bytes.NewReader(make([]byte, 5)))
	r.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	return r
}

// page asks the UI's API for the same.
func page(base string) *http.Request {
	r, _ := http.NewRequest(http.MethodGet, base+"/api/v1/system-info", nil)
	return r
}
