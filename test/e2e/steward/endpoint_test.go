package steward_test

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"pawl/internal/steward"
	"pawl/test/harness/world"
)

// door is the endpoint of a crew's triggers, from the sender's side.
type door struct {
	*crew
	at       string
	secret   string
	accepted map[string]bool // the accepted tasks
	mu       sync.Mutex
}

// openDoor starts a steward that takes tasks from outside and begins none, with the endpoint of `pawl up`.
func openDoor(t *testing.T) *door {
	t.Helper()
	d := &door{secret: "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", accepted: map[string]bool{}}
	d.crew = raise(t, func(charter world.Doc) {
		charter["mode"] = "answer"
		var triggers []world.Doc
		for name, from := range map[string]string{"alerts": "json", "hooks": "standard", "ci": "github", "slow": "alertmanager"} {
			triggers = append(triggers, world.Doc{"name": name, "from": from, "secretFile": "secrets/door", "task": world.Doc{"title": "{{.Title}}", "body": "{{.Body}}"}})
		}
		charter["triggers"] = triggers
	})
	d.Write("home/secrets/door", d.secret+"\n")
	require.NoError(t, os.Chmod(filepath.Join(d.Home, "secrets", "door"), 0o600))
	d.begin("--auth") // a task from a trigger also reaches a steward whose engine requires a token
	d.found()
	return d
}

// found waits until the endpoint is served, and stores its address.
func (d *door) found() {
	d.T.Helper()
	d.Until("the triggers are served", func() bool {
		var at struct{ Address string }
		if json.Unmarshal([]byte(world.ReadFile(filepath.Join(d.Home, "triggers.json"))), &at) != nil || at.Address == "" {
			return false
		}
		d.at = at.Address
		r, err := http.Post("http://"+d.at+"/v1/crew/alerts", "application/json", strings.NewReader("{}"))
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusUnauthorized
	})
}

func (d *door) sign(body []byte) string {
	mac := hmac.New(sha256.New, []byte(d.secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// said is an answer to a sender.
type said struct {
	status int
	Result string
	Task   string
	after  string
}

// send sends a delivery. It notes the task of an accepted one.
func (d *door) send(method, path string, body io.Reader, headers ...string) (s said, err error) {
	r, err := http.NewRequest(method, "http://"+d.at+path, body)
	if err != nil {
		return s, err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return s, err
	}
	defer answer.Body.Close()
	s = said{status: answer.StatusCode, after: answer.Header.Get("Retry-After")}
	_ = json.NewDecoder(answer.Body).Decode(&s)
	if s.status == http.StatusAccepted {
		d.mu.Lock()
		d.accepted[s.Task] = true
		d.mu.Unlock()
	}
	return s, nil
}

// alert sends a signed delivery. Each number is one delivery.
func (d *door) alert(n int) (said, error) {
	body := fmt.Appendf(nil, `{"title":"alert %d","body":"It is slow."}`, n)
	return d.send("POST", "/v1/crew/alerts", bytes.NewReader(body), "X-Pawl-Signature", d.sign(body))
}

// raw writes bytes to the endpoint. It returns the first line of each answer until the endpoint hangs up.
func (d *door) raw(text string) (lines []string) {
	c, err := net.Dial("tcp", d.at)
	require.NoError(d.T, err)
	defer c.Close()
	_, _ = io.WriteString(c, text) // the endpoint may hang up before the end
	for s := bufio.NewScanner(c); s.Scan(); {
		if strings.HasPrefix(s.Text(), "HTTP/") {
			lines = append(lines, s.Text())
		}
	}
	return lines
}

// most returns the most memory that the program has used, in MB.
func (d *door) most() int {
	d.T.Helper()
	status := world.ReadFile(fmt.Sprintf("/proc/%d/status", d.up.Cmd.Process.Pid))
	_, rest, found := strings.Cut(status, "VmHWM:")
	require.True(d.T, found)
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(d.T, err)
	return kb >> 10
}

// holds waits until the steward has the accepted tasks, and checks that it has no others.
func (d *door) holds() {
	d.T.Helper()
	var s steward.State
	d.Until("the steward has all that was accepted", func() bool { s = d.state(); return s.TasksCount >= len(d.accepted) })
	require.Equal(d.T, len(d.accepted), s.TasksCount, "a task came that nobody let in")
	for _, t := range s.Tasks {
		require.True(d.T, d.accepted[t.ID], t.ID)
	}
}

func TestS5_TheEndpointOfTheProgramUnderAttack(t *testing.T) {
	world.Slow(t, "internal/integrations/trigger has the same attacks in the process")
	d := openDoor(t)
	body := []byte(`{"title":"let me in","body":"x"}`)
	right := d.sign(body)
	refused := func(status int, method, path string, body io.Reader, headers ...string) {
		t.Helper()
		s, err := d.send(method, path, body, headers...)
		require.NoError(t, err)
		assert.Equal(t, status, s.status, "%s %s %v", method, path, headers)
	}

	// Senders without the secret.
	for _, signature := range []string{"", "sha256=", "sha256=" + strings.Repeat("0", 64), "sha1=" + right[7:47], right[:70], strings.ToUpper(right), right + "00"} {
		refused(401, "POST", "/v1/crew/alerts", bytes.NewReader(body), "X-Pawl-Signature", signature)
	}
	refused(401, "POST", "/v1/crew/alerts", bytes.NewReader(append(body, ' ')), "X-Pawl-Signature", right)
	refused(401, "POST", "/v1/crew/alerts", bytes.NewReader(body), "X-Hub-Signature-256", right)
	refused(401, "POST", "/v1/crew/alerts", bytes.NewReader(body), "X-Pawl-Signature", "sha256=00", "X-Pawl-Signature", right)
	refused(401, "POST", "/v1/crew/ci", bytes.NewReader(body), "X-Pawl-Signature", right)
	refused(401, "POST", "/v1/crew/slow", bytes.NewReader(body), "Authorization", "Bearer ")
	refused(401, "POST", "/v1/crew/slow", bytes.NewReader(body), "Authorization", "Basic "+d.secret)

	// Requests for something else.
	for _, path := range []string{"/", "/v1", "/v1/crew", "/v1/crew/none", "/v1/none/alerts", "/v1/crew/alerts/more", "/v2/crew/alerts", "/metrics", "/debug/pprof/", "/v1/crew/%2e%2e/alerts"} {
		refused(404, "POST", path, bytes.NewReader(body), "X-Pawl-Signature", right)
	}
	for _, method := range []string{"GET", "PUT", "DELETE", "OPTIONS", "PATCH"} {
		refused(405, method, "/v1/crew/alerts", bytes.NewReader(body), "X-Pawl-Signature", right)
	}
	for _, text := range []string{"", "[]", "<xml/>", `"text"`, `{"title":`, "\x00\xff"} {
		refused(400, "POST", "/v1/crew/alerts", strings.NewReader(text), "X-Pawl-Signature", d.sign([]byte(text)))
	}

	// Old and new times.
	for off, status := range map[time.Duration]int{-time.Hour: 401, -6 * time.Minute: 401, 6 * time.Minute: 401, 0: 202} {
		at, id := strconv.FormatInt(time.Now().Add(off).Unix(), 10), "msg_"+fmt.Sprint(off.Milliseconds())
		text := `{"type":"incident.created","data":{"title":"It is down"}}`
		key, err := base64.StdEncoding.DecodeString(d.secret)
		require.NoError(t, err)
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, at, text)
		refused(status, "POST", "/v1/crew/hooks", strings.NewReader(text), "webhook-id", id, "webhook-timestamp", at,
			"webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}

	// The same delivery again, and with another content type, which has no effect.
	first, err := d.send("POST", "/v1/crew/alerts", bytes.NewReader(body), "X-Pawl-Signature", right, "Content-Type", "text/plain")
	require.NoError(t, err)
	require.Equal(t, 202, first.status)
	for range 3 {
		again, err := d.send("POST", "/v1/crew/alerts", bytes.NewReader(body), "X-Pawl-Signature", right, "Content-Type", "application/json")
		require.NoError(t, err)
		require.Equal(t, said{status: 200, Result: "duplicate", Task: first.Task}, again)
	}
	d.holds()

	// A body that a server in front might read differently: at most one answer, and never a task.
	inner := "POST /v1/crew/alerts HTTP/1.1\r\nHost: x\r\nX-Pawl-Signature: " + right + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + string(body)
	head := "POST /v1/crew/none HTTP/1.1\r\nHost: x\r\n"
	for name, text := range map[string]string{
		"two lengths":               head + "Content-Length: 0\r\nContent-Length: 5\r\n\r\n" + inner,
		"length and chunks":         head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
		"chunks and length":         head + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + inner,
		"an unknown encoding":       head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner,
		"two encodings":             head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + inner,
		"a space before the colon":  head + "Transfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n" + inner,
		"a header that goes on":     head + "X-A: b\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + inner,
		"a length with a sign":      head + "Content-Length: +0\r\n\r\n" + inner,
		"bare line feeds":           "POST /v1/crew/none HTTP/1.1\nHost: x\nContent-Length: 0\n\n" + inner,
		"pipelined":                 head + "Content-Length: 0\r\n\r\n" + inner,
		"no host":                   "POST /v1/crew/none HTTP/1.1\r\nContent-Length: 0\r\n\r\n" + inner,
		"an old version":            "POST /v1/crew/none HTTP/0.9\r\n\r\n" + inner,
		"the preface of HTTP/2":     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + inner,
		"an upgrade":                head + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nContent-Length: 0\r\n\r\n" + inner,
		"a megabyte of headers":     head + "X-A: " + strings.Repeat("a", 1<<20) + "\r\n\r\n" + inner,
		"chunks with an extension":  "POST /v1/crew/alerts HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;" + strings.Repeat("a", 1<<16) + "\r\nhello\r\n0\r\n\r\n",
		"a chunk longer than it is": "POST /v1/crew/alerts HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhello\r\n0\r\n\r\n",
	} {
		lines := d.raw(text)
		assert.LessOrEqual(t, len(lines), 1, "%s: %v", name, lines)
		for _, line := range lines {
			assert.NotContains(t, line, " 2", "%s: %v", name, lines)
		}
	}
	d.holds()

	// Three gigabytes from 300 senders, with and without a length. Nobody keeps them in memory.
	before := d.most()
	var g errgroup.Group
	for n := range 300 {
		g.Go(func() error {
			large := io.LimitReader(zeros{}, 10<<20)
			if n%2 == 0 {
				large = io.MultiReader(large) // the client does not know its length
			}
			s, err := d.send("POST", "/v1/crew/alerts", large, "X-Pawl-Signature", right)
			if err == nil && s.status != http.StatusRequestEntityTooLarge { // else it hung up in the middle
				return fmt.Errorf("a delivery of 10 MB was answered with %d", s.status)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	t.Logf("memory: %d MB before, %d MB after 300 deliveries of 10 MB at once", before, d.most())
	require.Less(t, d.most()-before, 700, "what is refused is not kept")

	// Silent senders do not keep their places for long.
	var slow []net.Conn
	senders := 0 // each keeps its place for up to 15 seconds
	if world.All() {
		senders = 200
	}
	for n := range senders {
		c, err := net.Dial("tcp", d.at)
		require.NoError(t, err)
		defer c.Close()
		text := "POST /v1/crew/alerts HTTP/1.1\r\nHost: x\r\n"
		if n%2 == 0 {
			text += "Content-Length: 100\r\n\r\n{"
		}
		_, err = io.WriteString(c, text)
		require.NoError(t, err)
		slow = append(slow, c)
	}
	s, err := d.alert(-1)
	require.NoError(t, err)
	require.Equal(t, 202, s.status, "a sender behind slow ones is heard")
	for _, c := range slow {
		_, err := io.Copy(io.Discard, c) // until the endpoint hangs up
		if err != nil {
			require.ErrorContains(t, err, "reset")
		}
	}

	// A thousand at the same time.
	var told sync.Map
	for n := range 1000 {
		g.Go(func() error {
			s, err := d.alert(n)
			if err != nil {
				return err
			}
			told.Store(n, s)
			return nil
		})
	}
	require.NoError(t, g.Wait())
	counts := map[int]int{}
	told.Range(func(_, v any) bool {
		s := v.(said)
		counts[s.status]++
		switch s.status {
		case http.StatusAccepted:
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			assert.NotEmpty(t, s.after, "who is sent away is told when to come again")
		default:
			t.Errorf("a delivery was answered with %d", s.status)
		}
		return true
	})
	t.Logf("1,000 deliveries at once: %v; at most %d MB", counts, d.most())
	require.GreaterOrEqual(t, counts[http.StatusAccepted], 100)
	d.holds()

	// A new process has forgotten the deliveries. The steward has not.
	require.NoError(t, d.up.Stop())
	d.serve()
	d.found()
	again, err := d.send("POST", "/v1/crew/alerts", bytes.NewReader(body), "X-Pawl-Signature", right)
	require.NoError(t, err)
	require.Equal(t, said{status: 202, Result: "accepted", Task: first.Task}, again)
	last, err := d.alert(1001)
	require.NoError(t, err)
	require.Equal(t, 202, last.status)
	d.holds()
	log := d.Done("log", "crew", "--json").Out
	require.NotContains(t, log, d.secret)
	require.NotContains(t, world.ReadFile(d.up.Log)+world.ReadFile(filepath.Join(d.Home, "logs", "pawl.log")), d.secret, "no log has the secret")
}

// zeros is an endless reader of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
