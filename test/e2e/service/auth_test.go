package service_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
	"pawl/test/harness/world"
)

// An engine that requires a token, tested with the Temporal CLI, the UI, pawl itself and agents.
func TestE6_AnEngineThatAsksThroughTheProgram(t *testing.T) {
	world.Slow(t, "internal/engine has the tests of an engine that asks")
	world.NeedCLI(t)
	t.Parallel()
	w := world.Alone(t, `env >"$WORLD/env"; cat "$WORLD/home/engine/pass.json" "$WORLD/home/engine/temporal.toml" >"$WORLD/stolen" 2>&1; `+world.Raises)
	w.Set(doc{"sandbox": doc{"network": "open"}})
	u := w.Up("--auth")
	at := u.Serving.Address
	profile := []string{"--config-file", filepath.Join(w.Home, "engine", "temporal.toml"), "--profile", "pawl"}
	require.Equal(t, "temporal "+strings.Join(profile, " "), u.Serving.CLI)
	require.NoDirExists(t, filepath.Join(w.Dir, "temporalio"), "the user's own profiles stay as they are")
	token := passOf(t, w)

	// A loop waits for approval. Without the token, nothing of the engine can be reached.
	started := w.Pawl("start", w.SpecFile(), "--json")
	require.Equal(t, 0, started.Code, started.Err)
	st := w.Waits("waiting")
	payload := `{"by":"mallory","hash":"` + st.Gate.Hash + `"}`
	for _, how := range [][]string{
		{"--address", at},
		{"--address", at, "--tls", "--tls-disable-host-verification"},
		{"--address", at, "--tls", "--tls-disable-host-verification", "--api-key", strings.Repeat("0", 64)},
	} {
		for _, what := range [][]string{
			{"workflow", "start", "--type", "Improve", "--task-queue", "pawl", "--workflow-id", "stolen", "--input-file", w.JSONFile()},
			{"workflow", "signal", "--workflow-id", w.Loop, "--name", "approve", "--input", payload},
			{"workflow", "update", "execute", "--workflow-id", w.Loop, "--name", "approve", "--input", payload},
			{"workflow", "query", "--workflow-id", w.Loop, "--type", "state"},
			{"workflow", "list"},
			{"operator", "cluster", "health"},
		} {
			s := w.TryTemporal(append(what, how...)...)
			require.NotEqual(t, 0, s.Code, "%v %v\n%s", what, how, s.Out)
			require.NotContains(t, s.Out+s.Err, w.Loop)
			if len(how) > 2 {
				require.Contains(t, s.Out+s.Err, "Request unauthorized", what)
			} else { // it can't even connect
				require.Contains(t, s.Out+s.Err, "connection error", what)
			}
		}
	}
	for _, scheme := range []string{"http://", "https://"} {
		_, err := http.Get(scheme + at + "/api/v1/namespaces/default/workflows")
		require.Error(t, err, "there is no HTTP API")
	}
	require.Equal(t, "waiting", w.Waits("waiting").Status)

	// With the profile, the Temporal CLI can do all of that except the approval.
	require.Contains(t, w.Temporal(append([]string{"workflow", "list"}, profile...)...), w.Loop)
	require.Contains(t, w.Temporal(append([]string{"workflow", "query", "--workflow-id", w.Loop, "--type", "gate"}, profile...)...), st.Gate.Hash)
	contract := w.Temporal(append([]string{"workflow", "query", "--workflow-id", w.Loop, "--type", "contract"}, profile...)...)
	if m := sandbox.Probe(); m.Files != sandbox.ByNothing {
		require.Contains(t, contract, "answer nobody without pawl's token", "it was tried")
	}
	w.Temporal(append([]string{"workflow", "signal", "--workflow-id", w.Loop, "--name", "steer", "--input", `{"by":"ann","note":"go up"}`}, profile...)...)
	w.Temporal(append([]string{"workflow", "start", "--type", "Improve", "--task-queue", "nobodys", "--workflow-id", w.Loop + "-other", "--input", "{}"}, profile...)...)
	w.Temporal(append([]string{"workflow", "terminate", "--workflow-id", w.Loop + "-other"}, profile...)...)

	// The UI serves only people who came with a link. There they can answer the gate.
	base, _, _ := strings.Cut(u.Serving.UI, "/pawl-visit/")
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	code := func(c *http.Client, method, at, body string, headers ...string) (int, http.Header) {
		t.Helper()
		r, err := http.NewRequest(method, at, bytes.NewReader([]byte(body)))
		require.NoError(t, err)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		answer, err := c.Do(r)
		require.NoError(t, err)
		answer.Body.Close()
		return answer.StatusCode, answer.Header
	}
	signal := base + "/api/v1/namespaces/default/workflows/" + w.Loop + "/signal/approve"
	body, err := json.Marshal(doc{"signalName": "approve", "workflowExecution": doc{"workflowId": w.Loop}, "input": doc{"payloads": []doc{
		{"metadata": doc{"encoding": []byte("json/plain")}, "data": []byte(`{"by":"ann","hash":"` + st.Gate.Hash + `"}`)},
	}}})
	require.NoError(t, err)
	list := base + "/api/v1/namespaces/default/workflows"
	for _, c := range []struct{ method, at string }{{"GET", base}, {"GET", list}, {"POST", signal}, {"GET", base + "/api/v1/settings"}} {
		got, _ := code(http.DefaultClient, c.method, c.at, string(body))
		require.Equal(t, http.StatusUnauthorized, got, c)
		got, _ = code(http.DefaultClient, c.method, c.at, string(body), "Authorization", "Bearer "+token, "Cookie", "pawl-ui=x")
		require.Equal(t, http.StatusUnauthorized, got, c)
	}
	require.Equal(t, "waiting", w.Waits("waiting").Status)
	got, _ := code(browser, "GET", u.Serving.UI, "")
	require.Equal(t, http.StatusOK, got)
	got, _ = code(browser, "GET", list, "")
	require.Equal(t, http.StatusOK, got)
	home, err := http.NewRequest("GET", base, nil)
	require.NoError(t, err)
	var crossSite string
	for _, c := range jar.Cookies(home.URL) {
		if c.Name == "_csrf" {
			crossSite = c.Value
		}
	}
	got, _ = code(browser, "POST", signal, string(body), "Content-Type", "application/json", "X-CSRF-TOKEN", crossSite)
	require.Equal(t, http.StatusOK, got)

	// The loop runs to its end. Its agent has not seen the token, and its contract said so.
	w.Until("the loop ends", func() bool { return w.Show().Status == "completed" })
	require.Equal(t, "11", w.Kept("work/n"))
	require.NotEmpty(t, w.Read("env"))
	for _, name := range []string{"env", "stolen"} {
		require.NotContains(t, w.Read(name), token)
	}
	require.Equal(t, 2, strings.Count(w.Read("stolen"), "No such file or directory"), w.Read("stolen"))
	require.Contains(t, w.Pawl("doctor").Out, "a signal without them was refused")

	// It requires the same token until it is told not to.
	require.NoError(t, u.Stop())
	again := w.Up()
	require.Equal(t, token, passOf(t, w))
	require.NotEqual(t, 0, w.TryTemporal("workflow", "list", "--address", again.Serving.Address).Code)
	require.Contains(t, w.Temporal(append([]string{"workflow", "list"}, profile...)...), w.Loop)
	base, _, _ = strings.Cut(again.Serving.UI, "/pawl-visit/") // others may have the last engine's port by now
	got, _ = code(browser, "GET", base+"/api/v1/namespaces/default/workflows", "")
	require.Equal(t, http.StatusUnauthorized, got, "the session was the last engine's")
	refused := w.Pawl("up", "--auth=false")
	require.Equal(t, 2, refused.Code, refused.Err)
	require.Contains(t, refused.Err, "that engine requires a token")
	require.NoError(t, again.Stop())
	open := w.Up("--auth=false")
	require.Contains(t, w.Temporal("workflow", "list", "--address", open.Serving.Address), w.Loop)
	require.Contains(t, w.Pawl("doctor").Out, "it requires no token, API key or certificate")
	refused = w.Pawl("up", "--auth")
	require.Equal(t, 2, refused.Code, refused.Err)
	require.Contains(t, refused.Err, "that engine requires no token")
}

// passOf returns the token in the world's $PAWL_HOME, which only the user can read.
func passOf(t *testing.T, w *world.World) string {
	t.Helper()
	for _, name := range []string{"pass.json", "temporal.toml", "certificate.pem", "engine.json"} {
		info, err := os.Stat(filepath.Join(w.Home, "engine", name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
	info, err := os.Stat(filepath.Join(w.Home, "engine"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	var p struct{ Token string }
	require.NoError(t, json.Unmarshal([]byte(w.ReadHome("engine/pass.json")), &p))
	require.Len(t, p.Token, 64)
	return p.Token
}

// If agents can't have their own network, the engine requires a token by itself, and says so.
func TestE6_WhereTheNetworkCannotBeClosedTheEngineAsks(t *testing.T) {
	world.Slow(t, "TestE6_AnEngineThatAsksThroughTheProgram asks")
	const without = `echo 0 >/proc/sys/user/max_net_namespaces && exec "$0" "$@"`
	if err := exec.Command("unshare", "--user", "--map-root-user", "sh", "-c", without, "true").Run(); err != nil {
		world.Lacks(t, "user namespaces, to be without network namespaces in")
	}
	w := world.Alone(t, world.Raises)
	t.Parallel()
	program := world.Program(t)
	up := func(flags ...string) string {
		c := w.Prepare(append([]string{"up"}, flags...)...)
		path, err := exec.LookPath("unshare")
		require.NoError(t, err)
		c.Cmd.Path, c.Cmd.Args = path, append([]string{"unshare", "--user", "--map-root-user", "sh", "-c", without, program, "up"}, flags...)
		c.Begin()
		w.Until("it serves", func() bool { return strings.Contains(world.ReadFile(c.Err), "the worker is ready") })
		require.NoError(t, c.Cmd.Process.Signal(syscall.SIGINT))
		s := c.Wait()
		require.Equal(t, 0, s.Code, s.Err)
		return s.Out + s.Err
	}
	const says = "agents have no network of their own on this machine, so the engine requires a token"
	said := up()
	require.Contains(t, said, says)
	require.Contains(t, said, "--profile pawl")
	passOf(t, w)
	said = up("--auth=false")
	require.NotContains(t, said, says)
	require.NoFileExists(t, filepath.Join(w.Home, "engine", "pass.json"))
}
