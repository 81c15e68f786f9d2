package egress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/egress"
)

// A server that refuses a request may not read it. The client's next request gets its answer all the same.
func TestAfterAnEarlyAnswerTheNextRequestIsAnswered(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	to, err := url.Parse(server.URL)
	require.NoError(t, err)
	proxy := httptest.NewServer(egress.Forwarding(&httputil.ReverseProxy{
		Transport: &http.Transport{}, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
	}))
	defer proxy.Close()
	at := strings.TrimPrefix(proxy.URL, "http://")
	client, err := net.Dial("tcp", at)
	require.NoError(t, err)
	defer func() { client.Close() }()
	answers := func(begin, rest string) (closes bool) {
		require.NoError(t, client.SetDeadline(time.Now().Add(20*time.Second)))
		_, err := io.WriteString(client, begin)
		require.NoError(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(client), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
		_, err = io.WriteString(client, rest)
		require.NoError(t, err)
		return answer.Close
	}
	post := "POST / HTTP/1.1\r\nHost: proxy\r\nContent-Length: %d\r\n\r\none"
	for range 3 {
		if answers(fmt.Sprintf(post, 6), "two") { // the client knows that it needs another connection
			client.Close()
			client, err = net.Dial("tcp", at)
			require.NoError(t, err)
		}
	}
	require.False(t, answers("GET / HTTP/1.1\r\nHost: proxy\r\n\r\n", ""), "a request without a body leaves its connection open")
}

func TestOnlyAnAnswerThatIsEarlyEndsItsConnection(t *testing.T) {
	for read, want := range map[int]string{4: "close", 5: ""} {
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("whole")) // it says that it ends at a further read only
		answer := httptest.NewRecorder()
		egress.Forwarding(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadFull(r.Body, make([]byte, read))
			require.NoError(t, err)
			w.WriteHeader(http.StatusOK)
		})).ServeHTTP(answer, request)
		require.Equal(t, want, answer.Header().Get("Connection"), read)
	}
}
