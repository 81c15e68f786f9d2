package sandbox_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/llmproxy"
	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
	"pawl/internal/exec/usage"
)

// speaks asks the model at $MODEL over HTTP, and prints the answer.
const speaks = `at=${MODEL#http://}; exec 3<>/dev/tcp/${at%:*}/${at#*:} && printf 'POST /messages HTTP/1.0\r\nX-Api-Key: %s\r\nContent-Length: 2\r\n\r\n{}' "$1" >&3 && cat <&3; `

// TestE6_AnAgentSpeaksToItsModelThroughTheMeter runs with each network. The model is on this machine's loopback,
// which no sandbox reaches.
func TestE6_AnAgentSpeaksToItsModelThroughTheMeter(t *testing.T) {
	keys := make(chan string, 10)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("X-Api-Key")
		fmt.Fprint(w, `{"type":"message","model":"m","usage":{"input_tokens":7,"output_tokens":3}}`)
	}))
	defer model.Close()
	try := func(t *testing.T, m sandbox.Machine, network sandbox.Network) {
		p := newPlace(t, m)
		s, err := supervisor.Start(t.Name(), m.Files)
		require.NoError(t, err)
		defer s.Close()
		c := supervisor.Command{
			Argv: []string{"bash", "-c", speaks, "agent", "placeholder"}, Dir: p.desk, Env: append(os.Environ(), "MODEL=http://"+llmproxy.Address), Stdout: filepath.Join(p.dir, "out"), Stderr: filepath.Join(p.dir, "err"),
			Meter: &llmproxy.Config{Upstream: model.URL, Keys: map[string]string{"placeholder": "the-key"}, File: filepath.Join(p.dir, "meter")},
		}
		if network != "" {
			p.request.Network = network
			policy := sandbox.Make(p.request)
			c.Sandbox = &policy
		}
		for n := range int64(2) { // each of two calls has its own meter
			r, err := s.Run(context.Background(), c)
			require.NoError(t, err)
			b, err := os.ReadFile(c.Stdout)
			require.NoError(t, err)
			require.Equal(t, 0, r.ExitCode, r.StartError)
			require.Contains(t, string(b), `"output_tokens":3`)
			require.Equal(t, "the-key", <-keys)
			b, err = os.ReadFile(c.Meter.File)
			require.NoError(t, err)
			var total usage.Total
			total.Read(b)
			require.Equal(t, 10*(n+1), total.Tokens())
		}
		c.Argv[4] = "another"
		_, err = s.Run(context.Background(), c)
		require.NoError(t, err)
		b, err := os.ReadFile(c.Stdout)
		require.NoError(t, err)
		require.Contains(t, string(b), "401 Unauthorized")
		c.Meter = nil
		c.Env = append(c.Env, fmt.Sprintf("MODEL=http://127.0.0.1:%d", 7295))
		_, err = s.Run(context.Background(), c)
		require.NoError(t, err)
		b, err = os.ReadFile(c.Stdout)
		require.NoError(t, err)
		require.NotContains(t, string(b), "200 OK", "who has no meter reaches none")
		require.Empty(t, keys)
	}
	t.Run("no sandbox", func(t *testing.T) { try(t, sandbox.Machine{}, "") })
	for name, m := range machines(t) {
		for _, network := range []sandbox.Network{sandbox.Filtered, sandbox.Open} {
			t.Run(name+" "+string(network), func(t *testing.T) { try(t, m, network) })
		}
	}
}
