package sandbox_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
)

// Each sentence of the contract about a sandbox was tried in it. So each claim holds here, and fails if what it
// claims is taken away.
func TestE6_ClaimsAreTried(t *testing.T) {
	for name, m := range everyMachine(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			answer := httptest.NewServer(http.NotFoundHandler())
			defer answer.Close()
			engine := []string{answer.Listener.Addr().String()}
			socket := filepath.Join(p.dir, "tmux.sock")
			l, err := net.Listen("unix", socket)
			require.NoError(t, err)
			defer l.Close()
			said := func(policy sandbox.Policy) []sandbox.Broken {
				facts := sandbox.Facts{
					Policy: policy, Repo: p.repo, Engine: engine, Sockets: []string{socket},
					Private: []string{filepath.Join(p.pawl, "stores"), filepath.Join(p.home, ".ssh")},
				}
				claims := sandbox.Claims(facts)
				s, err := supervisor.Start(t.Name(), policy.Machine.Files)
				require.NoError(t, err)
				defer s.Close()
				found, err := s.Check(context.Background(), supervisor.Check{Sandbox: policy, Asked: sandbox.Asked(claims)})
				require.NoError(t, err)
				_, broken := sandbox.Said(claims, found)
				return broken
			}
			require.Empty(t, said(sandbox.Make(p.request)))
			for what, open := range map[string]func(*sandbox.Request){
				"FILES":      func(r *sandbox.Request) { r.Allow = []string{filepath.Join(p.home, ".ssh")} },
				"REPOSITORY": func(r *sandbox.Request) { r.Own = append(r.Own, p.repo) },
				"ENGINE":     func(r *sandbox.Request) { r.Network = sandbox.Open },
				"PROCESSES":  func(r *sandbox.Request) { r.Machine = sandbox.Machine{Filter: true} },
				"CALL":       func(r *sandbox.Request) { r.Machine.Filter = false },
			} {
				r := p.request
				open(&r)
				require.Contains(t, sandbox.InWords(said(sandbox.Make(r))), what)
			}
		})
	}
}

// TestE6_TheContractSaysWhatSandboxAllowComesTo compares the sentences with what a command can do.
func TestE6_TheContractSaysWhatSandboxAllowComesTo(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			link := filepath.Join(p.dir, "link")
			require.NoError(t, os.Symlink(filepath.Join(p.home, "notes"), link))
			p.request.Allow = []string{"~/tools", link, p.pawl, filepath.Join(p.pawl, "stores"), p.repo, filepath.Join(p.repo, ".git"), "~/../nowhere"}
			policy := sandbox.Make(p.request)
			said := sandbox.Grants(policy, p.request.Allow)
			tools, notes := filepath.Join(p.home, "tools"), filepath.Join(p.home, "notes")
			require.Equal(t, []string{
				"agent and commands may write ~/tools (" + tools + ")",
				"agent and commands may write " + link + " (" + notes + ")",
				"agent and commands do not reach " + p.pawl + ", although sandbox.allow names it",
				"agent and commands do not reach " + p.pawl + "/stores, although sandbox.allow names it",
				"agent and commands can read " + p.repo + ", but not write it, although sandbox.allow names it",
				"agent and commands may write " + p.repo + "/.git",
				"agent and commands may write ~/../nowhere if it exists when they start (now it does not)",
			}, said)
			code, out := p.sh(`touch ~/tools/x "` + link + `/x" "$W/repo/.git/x" && ! touch "$W/repo/x" && ! ls "` + p.pawl + `/stores"`)
			require.Zero(t, code, out)
			for _, claim := range sandbox.Claims(sandbox.Facts{Policy: policy, Repo: p.repo, Allow: p.request.Allow})[:2] {
				require.Contains(t, claim.Holds, "(but for what sandbox.allow lets them write)")
			}
			files := sandbox.Claims(sandbox.Facts{Policy: policy, Allow: p.request.Allow})[0].Holds
			require.Contains(t, files, "and nothing else of this machine (but for what sandbox.allow lets them write): not $PAWL_HOME, not the rest of your home", "it may be all of that")
		})
	}
}

// If the network is open and the engine requires a token, the contract says so, after the engine was tried.
func TestE6_AnEngineThatAsksWhoComesIsTried(t *testing.T) {
	engine := func(status string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set(http.TrailerPrefix+"grpc-status", status)
		})
	}
	const refused, done = "7", "0"
	for name, m := range machines(t) {
		for _, c := range []struct {
			name   string
			engine http.Handler
			tls    bool
			holds  bool
		}{
			{"it asks", engine(refused), false, true},
			{"it asks, by TLS", engine(refused), true, true},
			{"it is a UI that asks", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }), false, true},
			{"it answers", engine(done), false, false},
			{"it answers, by TLS", engine(done), true, false},
			{"it is a UI that answers", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), false, false},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				p := newPlace(t, m)
				s := httptest.NewUnstartedServer(c.engine)
				s.EnableHTTP2 = true
				s.Config.Protocols = new(http.Protocols)
				s.Config.Protocols.SetHTTP1(true)
				s.Config.Protocols.SetHTTP2(true)
				s.Config.Protocols.SetUnencryptedHTTP2(true)
				if c.tls {
					s.StartTLS()
				} else {
					s.Start()
				}
				defer s.Close()
				p.request.Network = sandbox.Open
				claims := sandbox.Claims(sandbox.Facts{Policy: sandbox.Make(p.request), Auth: true, Engine: []string{s.Listener.Addr().String()}})
				started, err := supervisor.Start(t.Name(), m.Files)
				require.NoError(t, err)
				defer started.Close()
				found, err := started.Check(context.Background(), supervisor.Check{Sandbox: sandbox.Make(p.request), Asked: sandbox.Asked(claims)})
				require.NoError(t, err)
				lines, broken := sandbox.Said(claims, found)
				if c.holds {
					require.NotContains(t, sandbox.InWords(broken), "ENGINE")
					require.Contains(t, strings.Join(lines, "\n"), "answer nobody without pawl's token")
				} else {
					require.Contains(t, sandbox.InWords(broken), "THE ENGINE CAN BE REACHED")
				}
			})
		}
	}
	claims := sandbox.Claims(sandbox.Facts{Policy: sandbox.Policy{Network: sandbox.Open, Closed: []int{7233}}, Auth: true})
	require.NotContains(t, fmt.Sprint(claims), "token", "without a root of their own agents can read it")
}

// A machine with many containers has thousands of sockets, and each is a question.
func TestVeryMuchCanBeAsked(t *testing.T) {
	for name, m := range everyMachine(t) {
		t.Run(name, func(t *testing.T) {
			policy := sandbox.Make(newPlace(t, m).request)
			s, err := supervisor.Start(t.Name(), m.Files)
			require.NoError(t, err)
			defer s.Close()
			var asked []sandbox.Question
			for i := range 3000 {
				asked = append(asked, sandbox.Question{Deed: sandbox.Dialing, Target: fmt.Sprintf("/run/containerd/s/%064d", i)})
			}
			found, err := s.Check(context.Background(), supervisor.Check{Sandbox: policy, Asked: asked})
			require.NoError(t, err)
			require.Len(t, found, len(asked))
		})
	}
}

// TestE6_TheContractSaysWhatTheProxyLetsThrough: if the spec names a container, the proxy lets through connections to
// it, and no sentence says otherwise.
func TestE6_TheContractSaysWhatTheProxyLetsThrough(t *testing.T) {
	said := func(hosts ...string) string {
		p := sandbox.Policy{Network: sandbox.Filtered, Machine: sandbox.Machine{Files: sandbox.ByNamespace, Network: true}}
		p.Egress.Hosts = hosts
		lines, _ := sandbox.Said(sandbox.Claims(sandbox.Facts{Policy: p}), nil)
		return strings.Join(lines, "\n")
	}
	require.Contains(t, said(), "lets connections through to every host but this one and its containers, cloud metadata, ")
	named := said("example.org", "172.17.0.2:5432")
	require.Contains(t, named, "lets connections through to these hosts alone: example.org, 172.17.0.2:5432; and never to this host, cloud metadata, ")
	require.NotContains(t, named, "containers, cloud")
}
