package egress

import (
	"fmt"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Environment returns the variables by which programs in the sandbox find the proxy. They belong at the end of the
// environment, which has these values without them: the settings of the JVM's build tools are added to those there.
// docs/reference/sandbox.md lists the programs that were tried.
func Environment(values map[string]string) []string {
	address := fmt.Sprintf("127.0.0.1:%d", Port)
	const local = "localhost,.localhost,127.0.0.1,127.0.0.0/8,0.0.0.0,::1" // some programs do not understand ranges
	var vars []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		// ALL_PROXY is not socks5h: Python's httpx, and so most SDKs for models, refuses to start with that.
		vars = append(vars, name+"=http://"+address, strings.ToLower(name)+"=http://"+address)
	}
	vars = append(vars, "NO_PROXY="+local, "no_proxy="+local,
		"NODE_USE_ENV_PROXY=1",                                                // Node's own fetch, from 22.21 and 24.0 on
		"YARN_HTTP_PROXY=http://"+address, "YARN_HTTPS_PROXY=http://"+address, // Yarn 2 and later read no other variables
	)
	// JAVA_TOOL_OPTIONS would affect every JVM, and make each print a line to stderr.
	java := fmt.Sprintf("-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=%[1]d -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=%[1]d -Dhttp.nonProxyHosts=localhost|127.*|[::1]", Port)
	for _, name := range []string{"MAVEN_OPTS", "GRADLE_OPTS"} {
		vars = append(vars, name+"="+strings.TrimLeft(values[name]+" "+java, " "))
	}
	return vars
}

// Upstream returns the proxy that this process itself has to use, from its environment, and the hosts without it:
// Upstream and Direct of the Rules.
func Upstream() (proxy, direct string) {
	env := httpproxy.FromEnvironment()
	if env.HTTPSProxy != "" {
		return env.HTTPSProxy, env.NoProxy
	}
	return env.HTTPProxy, env.NoProxy
}
