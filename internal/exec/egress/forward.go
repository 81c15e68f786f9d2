package egress

import (
	"io"
	"net/http"
	"sync/atomic"
)

// Forwarding returns a handler that forwards requests by a reverse proxy, and passes on whole answers: also those that
// begin before the server has read the whole request.
func Forwarding(proxy http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && r.ProtoMajor == 1 {
			// Otherwise Go's server discards the rest of the request when the answer begins, which cuts the answer off.
			_ = http.NewResponseController(w).EnableFullDuplex()
			body := &reading{ReadCloser: r.Body, length: r.ContentLength}
			w, r.Body = answering{w, body}, body
		}
		proxy.ServeHTTP(w, r)
	})
}

// reading is the body of a request; ended is true once it was read to its end.
type reading struct {
	io.ReadCloser
	length int64 // negative if it is not known
	ended  atomic.Bool
	read   int64
}

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	if r.read += int64(n); err == io.EOF || r.read == r.length {
		r.ended.Store(true)
	}
	return n, err
}

// answering tells the client that its connection ends if an answer begins before the request has ended: Go's server
// would panic at the next request of that connection (golang/go#68560).
type answering struct {
	http.ResponseWriter
	request *reading
}

func (w answering) WriteHeader(status int) {
	if status >= http.StatusOK && !w.request.ended.Load() {
		w.Header().Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w answering) Unwrap() http.ResponseWriter { return w.ResponseWriter }
