package trigger_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"pawl/internal/home"
	"pawl/internal/integrations/trigger"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"

// stewards has one steward, shop, with a trigger of each form.
type stewards struct {
	mu       sync.Mutex
	triggers []charter.Trigger
	tasks    []task.Task
	asked    int
	fails    error
	unknown  error
	entered  chan struct{} // if not nil, gets a value for each submission
	leave    chan struct{} // and each submission then waits for a value from here
}

func (s *stewards) Find(_ context.Context, steward, name string) (trigger.Route, bool, error) {
	for _, tr := range s.triggers {
		if steward == "shop" && tr.Name == name {
			return trigger.Route{Steward: "shop", Run: "run", Trigger: tr}, true, nil
		}
	}
	return trigger.Route{}, false, s.unknown
}

func (s *stewards) Submit(ctx context.Context, _ string, t task.Task, tr task.Trigger) error {
	if s.entered != nil {
		s.entered <- struct{}{}
		<-s.leave
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.fails != nil {
		return s.fails
	}
	if tr.Task != t.ID || t.Source != "trigger "+tr.Name || ctx.Err() != nil {
		return fmt.Errorf("a task that is not whole: %+v, %+v", t, tr)
	}
	s.tasks = append(s.tasks, t)
	return nil
}

func (s *stewards) submitted() []task.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]task.Task(nil), s.tasks...)
}

// bench is an endpoint that listens on the loopback interface.
type bench struct {
	*testing.T
	*stewards
	home home.Home
	log  *bytes.Buffer
	url  string
	now  time.Time
}

func serve(t *testing.T, change ...func(*http.Server)) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	b := &bench{T: t, stewards: &stewards{}, home: home.Home{Dir: dir}, log: &bytes.Buffer{}, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte(secret+"\n"), 0o600))
	for _, from := range []string{"github", "standard", "alertmanager", "json"} {
		b.triggers = append(b.triggers, charter.Trigger{Name: from, From: from, SecretFile: "secret"})
	}
	b.triggers = append(b.triggers, charter.Trigger{Name: "web", From: charter.Health, URL: "http://127.0.0.1:1"})
	b.triggers = append(b.triggers, charter.Trigger{Name: "alerts", From: "json", SecretFile: "secrets/alerts"}) // the example of the page
	logger := slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := trigger.Server(trigger.New(b, b.home, logger, func() time.Time { return b.now }), slog.New(slog.DiscardHandler))
	for _, f := range change {
		f(s)
	}
	l, err := trigger.Listen(b.home, "127.0.0.1:0")
	require.NoError(t, err)
	b.url = "http://" + l.Addr().String()
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		<-ended
		require.NotContains(t, b.log.String(), secret[6:], "a secret is in the log")
	})
	return b
}

// said is an answer to a sender.
type said struct {
	trigger.Answer
	status int
	header http.Header
	closed bool // the connection was closed
}

func (b *bench) send(method, path, body string, header http.Header) said {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.url+path, strings.NewReader(body))
	require.NoError(b, err)
	r.Header = header
	res, err := http.DefaultClient.Do(r)
	require.NoError(b, err)
	defer res.Body.Close()
	out := said{status: res.StatusCode, header: res.Header, closed: res.Close}
	require.NoError(b, json.NewDecoder(res.Body).Decode(&out.Answer))
	return out
}

func signature(body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func signed(body, delivery string) http.Header {
	return http.Header{trigger.SignatureHeader: {signature(body)}, trigger.DeliveryHeader: {delivery}}
}

func (b *bench) json(body, delivery string) said {
	b.Helper()
	return b.send("POST", "/v1/shop/json", body, signed(body, delivery))
}

func (b *bench) github(event, delivery, body string) said {
	b.Helper()
	return b.send("POST", "/v1/shop/github", body, http.Header{
		"X-Github-Event": {event}, "X-Github-Delivery": {delivery}, "X-Hub-Signature-256": {signature(body)}, "Content-Type": {"application/json"},
	})
}

func (b *bench) standard(id string, at time.Time, body string) said {
	b.Helper()
	hook, err := webhooks.NewWebhook(secret)
	require.NoError(b, err)
	sig, err := hook.Sign(id, at, []byte(body))
	require.NoError(b, err)
	return b.send("POST", "/v1/shop/standard", body, http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {fmt.Sprint(at.Unix())}, "Webhook-Signature": {sig}})
}

func TestS5_ADeliveryBecomesATask(t *testing.T) {
	b := serve(t)
	a := b.json(`{"title": "Slow checkout", "body": "p99 is 3 s", "labels": ["perf", 1], "url": "https://x.example"}`, "d-1")
	require.Equal(t, http.StatusAccepted, a.status)
	require.Equal(t, "accepted", a.Result)
	require.Len(t, b.tasks, 1)
	got := b.tasks[0]
	require.Equal(t, a.Task, got.ID)
	require.Equal(t, "Slow checkout", got.Title)
	require.Equal(t, "json/d-1", got.Dedupe)
	require.Contains(t, got.Body, "```untrusted\np99 is 3 s\n```")
	require.True(t, a.closed, "no sender keeps a connection")
}

func TestS5_WhatIsNotSignedIsRefused(t *testing.T) {
	b := serve(t)
	body := `{"title": "x"}`
	other := strings.Replace(signature(body), "sha256=", "sha256=00", 1)
	for name, h := range map[string]http.Header{
		"none":        {},
		"another":     {trigger.SignatureHeader: {other}},
		"of another":  {trigger.SignatureHeader: {signature(body + " ")}},
		"sha1":        {trigger.SignatureHeader: {"sha1=da39a3ee5e6b4b0d3255bfef95601890afd80709"}},
		"no hex":      {trigger.SignatureHeader: {"sha256=zz"}},
		"empty":       {trigger.SignatureHeader: {"sha256="}},
		"github's":    {"X-Hub-Signature-256": {signature(body)}},
		"as a bearer": {"Authorization": {"Bearer " + secret}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, http.StatusUnauthorized, b.send("POST", "/v1/shop/json", body, h).status)
		})
	}
	for _, h := range []http.Header{{}, {"Authorization": {"Bearer"}}, {"Authorization": {"Bearer " + secret + "x"}}, {"Authorization": {secret}}} {
		require.Equal(t, http.StatusUnauthorized, b.send("POST", "/v1/shop/alertmanager", body, h).status)
	}
	require.Equal(t, http.StatusUnauthorized, b.send("POST", "/v1/shop/github", body, http.Header{"X-Github-Event": {"issues"}, "X-Hub-Signature": {"sha1=00"}}).status)
	hook, err := webhooks.NewWebhook(secret)
	require.NoError(t, err)
	of, err := hook.Sign("1", b.now, []byte(body+" "))
	require.NoError(t, err)
	for _, sig := range []string{"", "v1,AA==", of} { // its time is right, so only the signature is wrong
		require.Equal(t, http.StatusUnauthorized, b.send("POST", "/v1/shop/standard", body, http.Header{
			"Webhook-Id": {"1"}, "Webhook-Timestamp": {fmt.Sprint(b.now.Unix())}, "Webhook-Signature": {sig},
		}).status, sig)
	}
	require.Zero(t, b.asked)
}

func TestS5_ADeliveryThatComesAgainIsOneTask(t *testing.T) {
	b := serve(t)
	first := b.json(`{"title": "x"}`, "d-1")
	require.Equal(t, http.StatusAccepted, first.status)
	for what, again := range map[string]said{
		"the same":                b.json(`{"title": "x"}`, "d-1"),
		"replayed as another one": b.json(`{"title": "x"}`, "d-2"),
		"another body, and the sender says that it is the same": b.json(`{"title": "x", "try": 2}`, "d-1"),
	} {
		require.Equal(t, http.StatusOK, again.status, what)
		require.Equal(t, "duplicate", again.Result, what)
		require.Equal(t, first.Task, again.Task, what)
	}
	require.Len(t, b.tasks, 1)
	require.Equal(t, http.StatusAccepted, b.json(`{"title": "y"}`, "d-3").status)
	require.Equal(t, http.StatusAccepted, b.json(`{"title": "z"}`, "").status)
}

func TestS5_DeliveriesThatComeTogetherShareOneAnswer(t *testing.T) {
	b := serve(t)
	b.entered, b.leave = make(chan struct{}, 10), make(chan struct{})
	b.fails = errors.New("away")
	answers := make(chan said, 10)
	for range 10 {
		go func() { answers <- b.json(`{"title": "x"}`, "d-1") }()
	}
	<-b.entered
	close(b.leave)
	for range 10 {
		a := <-answers
		require.Equal(t, http.StatusServiceUnavailable, a.status, "nobody is told that it is a duplicate of what failed")
		require.Equal(t, "5", a.header.Get("Retry-After"))
	}
	b.mu.Lock()
	b.fails = nil
	b.mu.Unlock()
	require.Equal(t, http.StatusAccepted, b.json(`{"title": "x"}`, "d-1").status)
	require.Len(t, b.submitted(), 1)
}

func TestS5_AnOldTimestampIsRefused(t *testing.T) {
	b := serve(t)
	for off, status := range map[time.Duration]int{
		0: 202, -5 * time.Minute: 202, 5 * time.Minute: 202, -5*time.Minute - time.Second: 401, 5*time.Minute + time.Second: 401, -1e6 * time.Hour: 401,
	} {
		require.Equal(t, status, b.standard(fmt.Sprint("msg_", off), b.now.Add(off), `{"type": "cost.high", "data": {"title": "Cost"}}`).status, off)
	}
	require.Contains(t, b.standard("msg_old", b.now.Add(-time.Hour), `{}`).Why, "more than 5 minutes")
	require.Equal(t, "duplicate", b.standard("msg_0s", b.now.Add(time.Minute), `{"type": "cost.high", "data": {"title": "Cost"}}`).Result, "the ID is signed")
}

func TestS5_ALargeBodyIsRefusedUnread(t *testing.T) {
	b := serve(t)
	large := strings.Repeat("x", 10<<20)
	require.Equal(t, http.StatusRequestEntityTooLarge, b.announce("/v1/shop/json", len(large)).status)
	// A body without a length is read up to the limit.
	conn := b.dial()
	fmt.Fprint(conn, "POST /v1/shop/json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
	go func() {
		for range 20 {
			if _, err := fmt.Fprintf(conn, "%x\r\n%s\r\n", 1<<19, large[:1<<19]); err != nil {
				return
			}
		}
	}()
	require.Equal(t, http.StatusRequestEntityTooLarge, b.answered(conn).status)
	exact := `{"title": "` + strings.Repeat("x", 1<<20-13) + `"}`
	require.Len(t, exact, 1<<20)
	require.Equal(t, http.StatusAccepted, b.json(exact, "1").status)
	require.Len(t, b.tasks, 1)
}

// announce announces the size of a body, and sends none of it.
func (b *bench) announce(path string, size int) said {
	conn := b.dial()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", path, size)
	return b.answered(conn)
}

func (b *bench) dial() net.Conn {
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	require.NoError(b, err)
	b.Cleanup(func() { conn.Close() })
	return conn
}

func (b *bench) answered(conn net.Conn) said {
	res, err := http.ReadResponse(newReader(conn), nil)
	require.NoError(b, err)
	defer res.Body.Close()
	out := said{status: res.StatusCode, header: res.Header}
	text, _ := io.ReadAll(res.Body)
	_ = json.Unmarshal(text, &out.Answer)
	return out
}

func TestS5_ASlowSenderIsNotWaitedFor(t *testing.T) {
	b := serve(t, func(s *http.Server) { s.ReadTimeout, s.ReadHeaderTimeout = 50*time.Millisecond, 50*time.Millisecond })
	conn := b.dial()
	fmt.Fprint(conn, "POST /v1/shop/json HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{")
	require.Equal(t, http.StatusRequestTimeout, b.answered(conn).status)
	slow := b.dial()
	fmt.Fprint(slow, "POST /v1/shop/json HTTP/1.1\r\nHo")
	rest, err := io.ReadAll(slow)
	require.NoError(t, err, "the server hangs up")
	require.NotContains(t, string(rest), "202")
	require.Zero(t, b.asked)
}

func TestS5_AThousandAtOnceAreTakenOnceOrToldToComeAgain(t *testing.T) {
	b := serve(t)
	var wait sync.WaitGroup
	var mu sync.Mutex
	count := map[int]int{}
	for i := range 1000 {
		wait.Go(func() {
			body := fmt.Sprintf(`{"title": "n %d"}`, i/2)
			a := b.json(body, fmt.Sprint(i/2))
			mu.Lock()
			defer mu.Unlock()
			count[a.status]++
			if a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") == "" {
				count[-1]++
			}
		})
	}
	wait.Wait()
	accepted := count[202]
	require.Equal(t, 1000, accepted+count[200]+count[429], "%v", count)
	require.Zero(t, count[-1])
	require.Equal(t, 100, accepted, "a burst, and the clock stands still")
	ids := map[string]bool{}
	for _, got := range b.submitted() {
		require.False(t, ids[got.ID], "a task was submitted twice")
		ids[got.ID] = true
	}
	require.Len(t, ids, accepted)
	b.now = b.now.Add(time.Minute)
	require.Equal(t, http.StatusAccepted, b.json(`{"title": "later"}`, "later").status)
}

func TestRoutesAndMethods(t *testing.T) {
	b := serve(t)
	body := `{"title": "x"}`
	for _, path := range []string{"/", "/v1", "/v1/shop", "/v1/shop/", "/v1/shop/other", "/v1/other/json", "/v2/shop/json", "/v1/shop/json/more", "/v1/%2e%2e/json"} {
		require.Equal(t, http.StatusNotFound, b.send("POST", path, body, signed(body, "")).status, path)
	}
	a := b.send("GET", "/v1/shop/json", "", nil)
	require.Equal(t, http.StatusMethodNotAllowed, a.status)
	require.Equal(t, "POST", a.header.Get("Allow"))
	b.unknown = errors.New("away")
	require.Equal(t, http.StatusServiceUnavailable, b.send("POST", "/v1/new/json", body, signed(body, "")).status)
	require.Equal(t, http.StatusAccepted, b.json(body, "").status, "a route that is known needs no list")
	b.fails = trigger.ErrGone
	require.Equal(t, http.StatusNotFound, b.json(`{"title": "y"}`, "").status)
}

func TestASecretThatCannotBeUsed(t *testing.T) {
	b := serve(t)
	path := filepath.Join(b.home.Dir, "secret")
	body := `{"title": "x"}`
	send := func() int { b.Helper(); return b.send("POST", "/v1/shop/json", body, signed(body, "")).status }
	require.NoError(t, os.Remove(path))
	require.Equal(t, http.StatusServiceUnavailable, send())
	for _, text := range []string{"", "short"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.Equal(t, http.StatusServiceUnavailable, send())
	}
	require.NoError(t, os.WriteFile(path, []byte("another secret that is long enough"), 0o600))
	require.Equal(t, http.StatusUnauthorized, send(), "it is read anew")
	require.NoError(t, os.WriteFile(path, []byte(secret), 0o600))
	require.NoError(t, os.Chmod(path, 0o644))
	require.Equal(t, http.StatusAccepted, send())
	require.Contains(t, b.log.String(), "mode 0644")
	require.NoError(t, os.WriteFile(path, []byte("not base64, this one"), 0o600))
	require.Equal(t, http.StatusServiceUnavailable, b.standard("1", b.now, "{}").status)
}

func TestATriggerWhoseTemplateDeclines(t *testing.T) {
	b := serve(t)
	b.triggers[3].Task.Title = `{{if eq .Branch "main"}}{{.Title}}{{end}}`
	require.Equal(t, "ignored", b.json(`{"title": "x", "branch": "topic"}`, "").Result)
	require.Equal(t, "accepted", b.json(`{"title": "x", "branch": "main"}`, "").Result)
	b.triggers[3].Task.Title = `{{.Nothing}}`
	require.Equal(t, http.StatusInternalServerError, b.json(`{"title": "y"}`, "").status)
	b.triggers[3].From = "carrier pigeon"
	require.Equal(t, http.StatusServiceUnavailable, b.json(`{"title": "y"}`, "").status)
}

func TestNobodySendsAnythingToAHealthCheck(t *testing.T) {
	b := serve(t)
	require.Equal(t, http.StatusNotFound, b.send(http.MethodPost, "/v1/shop/web", "{}", http.Header{}).status)
	require.Empty(t, b.submitted())
}
