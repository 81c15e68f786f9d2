package result

import (
	"net/url"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// endpointVariables name the address of a model's server, in the environment of an agent. The value is the port that
// holds if the address has none.
var endpointVariables = map[string]string{
	"ANTHROPIC_BASE_URL": "", "OPENAI_BASE_URL": "", "OPENAI_API_BASE": "", "GOOGLE_GEMINI_BASE_URL": "",
	"LM_STUDIO_API_BASE": "", "OLLAMA_API_BASE": "11434", "OLLAMA_HOST": "11434",
}

// Endpoints returns the addresses, as host:port, of the servers of models that an environment configures.
func Endpoints(env []string) (addresses []string) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		port, configures := endpointVariables[name]
		if !configures || value == "" {
			continue
		}
		if !strings.Contains(value, "://") {
			value = "http://" + value
		}
		u, err := url.Parse(value)
		if err != nil || u.Hostname() == "" {
			continue
		}
		switch {
		case u.Port() != "":
			port = u.Port()
		case port == "" && u.Scheme == "https":
			port = "443"
		case port == "":
			port = "80"
		}
		addresses = append(addresses, hostOf(u.Hostname())+":"+port)
	}
	return addresses
}

// hostOf returns one name for all names of this machine.
func hostOf(host string) string {
	if slices.Contains([]string{"localhost", "::1", "0.0.0.0", "::"}, host) {
		return "127.0.0.1"
	}
	return host
}

// refusedAt matches the address that a program could not connect to: node's words, Go's, and Python's (urllib3).
var refusedAt = lazyregexp.New(`\bECONNREFUSED (\S+:\d+)|\bdial tcp (\S+:\d+): (?:connect|connectex): |\(host='([^']+)', port=(\d+)\)`)

// Unreached returns the refusal in a failure that names one of these addresses as one that takes no connection: the server
// of the model is down. Another address may be that of a test.
func Unreached(failure string, endpoints []string) *Refusal {
	for _, m := range refusedAt().FindAllStringSubmatch(failure, -1) {
		address := m[1] + m[2]
		if m[3] != "" {
			address = m[3] + ":" + m[4]
		}
		index := strings.LastIndexByte(address, ':')
		host, port := strings.Trim(address[:index], "[]"), address[index+1:]
		if slices.Contains(endpoints, hostOf(host)+":"+port) {
			return &Refusal{Class: ProviderDown, Said: failure}
		}
	}
	return nil
}
