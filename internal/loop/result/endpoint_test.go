package result_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/result"
)

// TestARefusalOfTheConfiguredEndpointIsTheProviders, and that of any other address is not.
func TestARefusalOfTheConfiguredEndpointIsTheProviders(t *testing.T) {
	for name, c := range map[string]struct {
		env, failure string
		down         bool
	}{
		"ollama":               {"OLLAMA_HOST=127.0.0.1:11434", "connect ECONNREFUSED 127.0.0.1:11434", true},
		"without a port":       {"OLLAMA_HOST=localhost", "Error: connect ECONNREFUSED ::1:11434", true},
		"all addresses":        {"OLLAMA_HOST=0.0.0.0:11434", "exit 1: connect ECONNREFUSED 127.0.0.1:11434", true},
		"a URL":                {"OPENAI_BASE_URL=http://localhost:8080/v1", "connect ECONNREFUSED 127.0.0.1:8080", true},
		"a URL's port":         {"OPENAI_BASE_URL=https://llm.lan/v1", "connect ECONNREFUSED llm.lan:443", true},
		"claude":               {"ANTHROPIC_BASE_URL=http://10.0.0.7:4000", "connect ECONNREFUSED 10.0.0.7:4000", true},
		"of Go":                {"OLLAMA_HOST=127.0.0.1:11434", `Post "http://127.0.0.1:11434/api/chat": dial tcp 127.0.0.1:11434: connect: connection refused`, true},
		"of Go, IPv6":          {"OLLAMA_HOST=localhost", `dial tcp [::1]:11434: connect: connection refused`, true},
		"of Python":            {"OPENAI_API_BASE=http://localhost:1234/v1", `HTTPConnectionPool(host='localhost', port=1234): Max retries exceeded`, true},
		"another port":         {"OLLAMA_HOST=127.0.0.1:11434", "connect ECONNREFUSED 127.0.0.1:5432", false},
		"a longer port":        {"OLLAMA_HOST=127.0.0.1:1143", "connect ECONNREFUSED 127.0.0.1:11434", false},
		"another host":         {"OLLAMA_HOST=10.0.0.5", "connect ECONNREFUSED 10.0.0.6:11434", false},
		"not configured":       {"API_BASE_URL=http://localhost:3000", "connect ECONNREFUSED 127.0.0.1:3000", false},
		"an empty variable":    {"OLLAMA_HOST=", "connect ECONNREFUSED 127.0.0.1:11434", false},
		"no address":           {"OLLAMA_HOST=localhost", "connection refused", false},
		"a value that is none": {"OLLAMA_HOST=:::", "connect ECONNREFUSED 127.0.0.1:11434", false},
	} {
		t.Run(name, func(t *testing.T) {
			refusal := result.Unreached(c.failure, result.Endpoints([]string{"PATH=/bin", c.env}))
			require.Equal(t, c.down, refusal != nil)
			if refusal != nil {
				require.Equal(t, result.ProviderDown, refusal.Class)
			}
		})
	}
}
