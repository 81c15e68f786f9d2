package spec_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/spec"
)

func TestE6_HostsThatTheProxyLetsThrough(t *testing.T) {
	for entry, c := range map[string]struct{ named, others string }{
		"example.org":               {"example.org:443 example.org:1", "www.example.org:443 example.com:443 xexample.org:443 93.184.216.34:443"},
		"Example.ORG.":              {"example.org:80", ""},
		"*.example.org":             {"www.example.org:443 a.b.example.org:22", "example.org:443 xexample.org:443 www.example.org.evil.com:443"},
		"example.org:443":           {"example.org:443", "example.org:80"},
		"*.example.org:8080":        {"a.example.org:8080", "a.example.org:80 example.org:8080"},
		"my_db":                     {"my_db:5432", "my-db:5432"},
		"10.1.2.3":                  {"10.1.2.3:5432 ::ffff:10.1.2.3:80", "10.1.2.4:5432"},
		"10.0.0.0/8":                {"10.255.0.1:80", "11.0.0.1:80 ten.example.org:80"},
		"10.0.0.0/8:443":            {"10.0.0.1:443", "10.0.0.1:80"},
		"2001:db8::1":               {"2001:db8::1:443", "2001:db8::2:443"},
		"2001:db8::/32":             {"2001:db8:1::1:443", "2001:db9::1:443"},
		"[2001:db8::1]:443":         {"2001:db8::1:443", "2001:db8::1:80"},
		"[2001:db8::/32]:443":       {"2001:db8::7:443", "2001:db8::7:80"},
		"::ffff:10.1.2.3":           {"10.1.2.3:80", ""},
		"xn--bcher-kva.example:443": {"xn--bcher-kva.example:443", ""},
	} {
		h, err := spec.ParseHost(entry)
		require.NoError(t, err, entry)
		for hosts, want := range map[string]bool{c.named: true, c.others: false} {
			for target := range strings.FieldsSeq(hosts) {
				at := strings.LastIndex(target, ":")
				port := netip.MustParseAddrPort("0.0.0.0" + target[at:]).Port()
				assert.Equal(t, want, h.Names(target[:at], port), "%s and %s", entry, target)
			}
		}
	}
}

func TestE6_HostsThatAreNone(t *testing.T) {
	for entry, want := range map[string]string{
		"":                              "names no host",
		":443":                          "names no host",
		"*":                             "is not a host name",
		"*.":                            "is not a host name",
		"a.*.example.org":               "is not a host name",
		"https://example.org":           "is a URL and not a host",
		"https://example.org:443/":      "is a URL and not a host",
		"//example.org":                 "is a URL and not a host",
		"example.org/path":              "is not a range of addresses",
		"example.org:https":             `has the port "https"`,
		"example.org:0":                 `has the port "0"`,
		"example.org:65536":             `has the port "65536"`,
		"example.org:":                  `has the port ""`,
		"10.0.0.1/8":                    "is a range that begins at 10.0.0.0",
		"10.0.0.0/33":                   "is not a range of addresses",
		"fe80::1%eth0":                  "has a zone",
		"[2001:db8::1":                  "is not an address in brackets",
		"[2001:db8::1]443":              "is not an address in brackets",
		"127.1":                         "is not a host name",
		"0x7f.1":                        "is not a host name",
		"2130706433":                    "is not a host name",
		"0177.0.0.1":                    "is not a host name",
		"a b":                           "is not a host name",
		"a..b":                          "is not a host name",
		"-a.org":                        "is not a host name",
		"bücher.example":                "is not a host name",
		"user@example.org":              "is not a host name",
		strings.Repeat("a", 64):         "is not a host name",
		strings.Repeat("a.", 127):       "",
		strings.Repeat("a.", 127) + "a": "is not a host name",
	} {
		_, err := spec.ParseHost(entry)
		if want == "" {
			assert.NoError(t, err, entry)
		} else {
			assert.EqualError(t, err, want, "%q", entry)
		}
	}
}

func TestE6_TheNetworkOfALoopIsChecked(t *testing.T) {
	s := must(t, minimal)
	assert.Equal(t, spec.Sandbox{Use: "auto", Network: "filtered"}, s.Sandbox)
	for text, want := range map[string]string{
		`{"network": "closed"}`:                   `sandbox.network: is "closed"; want: filtered, none or open`,
		`{"hosts": [""]}`:                         `sandbox.hosts[0]: is "", which names no host; want: a host such as`,
		`{"hosts": ["a.org", "https://b.org/"]}`:  `sandbox.hosts[1]: is "https://b.org/", which is a URL and not a host; want: a host such as "registry.npmjs.org", "*.example.org", "example.org:443" or "10.0.0.0/8"`,
		`{"hosts": ["localhost:5432"]}`:           `sandbox.hosts[0]: is "localhost:5432", but the proxy never connects to this host`,
		`{"hosts": ["127.0.0.1"]}`:                `but the proxy never connects to this host`,
		`{"hosts": ["[::1]:80"]}`:                 `but the proxy never connects to this host`,
		`{"hosts": ["a.org"], "network": "none"}`: `sandbox.hosts: has no effect, since sandbox.network is none`,
		`{"hosts": ["a.org"], "network": "open"}`: `sandbox.hosts: has no effect, since sandbox.network is open`,
		`{"hosts": "a.org"}`:                      `sandbox.hosts: is "a.org"; want: hosts: ["a.org"]`,
	} {
		_, err := spec.Parse([]byte(strings.TrimSuffix(minimal, "}") + `,"sandbox":` + text + `}`))
		assert.ErrorContains(t, err, want, text)
	}
}

func FuzzParseHost(f *testing.F) {
	for _, entry := range []string{"example.org", "*.example.org:443", "10.0.0.0/8:1", "[2001:db8::/32]:443", "::ffff:10.0.0.1", "0x7f.1", "fe80::1%0"} {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		h, err := spec.ParseHost(entry)
		if err != nil {
			return
		}
		require.Equal(t, entry, h.Written)
		require.NotEqual(t, h.Name == "", h.Range.IsValid() == false, "a name or addresses, and never both")
		if h.Name != "" {
			require.Equal(t, h.Name, spec.HostName(h.Name))
			require.Equal(t, !h.Below, h.Names(h.Name, max(h.Port, 1)))
			_, err := netip.ParseAddr(h.Name)
			require.Error(t, err)
		}
	})
}
