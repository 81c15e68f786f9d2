package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/integrations/notify"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
)

func notice() api.Notice {
	return api.Notice{
		Loop: "demo-1", Kind: "improve", Event: loop.GateOpened, Status: loop.Waiting, Time: time.Date(2026, 3, 27, 14, 2, 11, 0, time.UTC),
		Gate:   &api.NoticeGate{ID: "diff-9", Kind: loop.GateDiff, Summary: "approve $(touch hacked) it", Hash: "0123456789abcdef", Answers: []string{"approve", "reject"}},
		How:    []api.How{{Answer: "approve", Payload: map[string]any{"gate": "diff-9", "hash": "0123456789abcdef"}, Command: "pawl approve demo-1 --hash 0123456789abcdef"}},
		Reason: "approve it",
	}
}

func TestAWebhookGetsTheNotice(t *testing.T) {
	var got []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer server.Close()
	require.NoError(t, notify.Send(t.Context(), server.URL+"/secret", notice(), nil, ""))
	require.JSONEq(t, `{"loop":"demo-1","kind":"improve","event":"gate_opened","status":"waiting","reason":"approve it","time":"2026-03-27T14:02:11Z",
		"gate":{"id":"diff-9","kind":"diff","summary":"approve $(touch hacked) it","hash":"0123456789abcdef","answers":["approve","reject"]},
		"how":[{"answer":"approve","payload":{"gate":"diff-9","hash":"0123456789abcdef"},"command":"pawl approve demo-1 --hash 0123456789abcdef"}]}`, string(got))
}

func TestAWebhookThatFailsSaysWhyAndNotWhere(t *testing.T) {
	for _, c := range []struct {
		status int
		final  bool
	}{{500, false}, {503, false}, {429, false}, {404, true}, {403, true}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) }))
		err := notify.Send(t.Context(), server.URL+"/secret", notice(), nil, "")
		server.Close()
		var final *notify.Final
		require.Error(t, err)
		require.Equal(t, c.final, errors.As(err, &final), c.status)
		require.NotContains(t, err.Error(), "secret")
		err = notify.Send(t.Context(), server.URL+"/secret", notice(), nil, "")
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestACommandGetsTheNotice(t *testing.T) {
	dir := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH")}
	require.NoError(t, notify.Send(t.Context(), `cat >in.json; env | grep ^PAWL_ | sort >env.txt`, notice(), env, dir))
	in, err := os.ReadFile(filepath.Join(dir, "in.json"))
	require.NoError(t, err)
	var back api.Notice
	require.NoError(t, json.Unmarshal(in, &back))
	require.Equal(t, notice(), back)
	got, err := os.ReadFile(filepath.Join(dir, "env.txt"))
	require.NoError(t, err)
	require.Equal(t, `PAWL_EVENT=gate_opened
PAWL_GATE=diff-9
PAWL_GATE_KIND=diff
PAWL_HASH=0123456789abcdef
PAWL_KIND=improve
PAWL_LOOP=demo-1
PAWL_REASON=approve it
PAWL_STATUS=waiting
PAWL_SUMMARY=approve $(touch hacked) it
`, string(got))
	require.NoFileExists(t, filepath.Join(dir, "hacked"))
}

func TestACommandThatFailsSaysWhy(t *testing.T) {
	err := notify.Send(t.Context(), `echo no such channel >&2; exit 3`, notice(), nil, t.TempDir())
	require.EqualError(t, err, "exit status 3: no such channel")
	require.Error(t, notify.Send(t.Context(), "true", notice(), nil, filepath.Join(t.TempDir(), "gone")))
}

// TestACommandIsEndedWithAllThatItStarted has a child hold a FIFO open. The reader sees the end only when the child is
// gone.
func TestACommandIsEndedWithAllThatItStarted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	done := make(chan error, 1)
	go func() {
		done <- notify.Send(ctx, `mkfifo f; (echo here; exec sleep 1000) >f & wait`, notice(), []string{"PATH=" + os.Getenv("PATH")}, dir)
	}()
	var f *os.File
	require.Eventually(t, func() bool {
		var err error
		f, err = os.Open(filepath.Join(dir, "f"))
		return err == nil
	}, 20*time.Second, time.Millisecond)
	defer f.Close()
	line := make([]byte, 5)
	_, err := io.ReadFull(f, line)
	require.NoError(t, err)
	cancel()
	require.EqualError(t, <-done, "it took too long")
	rest, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Empty(t, rest)
}

func TestTheDesktopIsToldInAFewWords(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" >" + filepath.Join(dir, "said") + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notify-send"), []byte(script), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "osascript"), []byte(script), 0o700))
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	require.NoError(t, notify.Send(t.Context(), "desktop", notice(), nil, ""))
	said, err := os.ReadFile(filepath.Join(dir, "said"))
	require.NoError(t, err)
	require.Contains(t, string(said), "pawl: demo-1 waits for you\napprove $(touch hacked) it\npawl approve demo-1 --hash 0123456789abcdef\n")
	t.Setenv("PATH", "/nowhere")
	var final *notify.Final
	require.ErrorAs(t, notify.Send(t.Context(), "desktop", notice(), nil, ""), &final)
}
