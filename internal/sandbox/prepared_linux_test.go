package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/proc"
	"pawl/internal/sandbox"
)

// rooms are the mount namespaces that a supervisor's threads are in, beside its own. They are held until the test's end: the
// number of one that is gone may be the next one's.
func rooms(t *testing.T, pid int) (all []string) {
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	require.NoError(t, err)
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/ns/mnt", pid))
	require.NoError(t, err)
	for _, path := range threads {
		if ns, err := os.Readlink(path); err == nil && ns != own {
			if held, err := os.Open(path); err == nil {
				t.Cleanup(func() { held.Close() })
			}
			all = append(all, ns)
		}
	}
	return all
}

// TestE6_ARoomThatIsMadeAheadIsTheOneThatTheCommandGets has one made before anything runs, and one asked for while a
// command runs in the same tree, which must not take that one's away.
func TestE6_ARoomThatIsMadeAheadIsTheOneThatTheCommandGets(t *testing.T) {
	for name, m := range machines(t) {
		if m.Files != sandbox.ByNamespace {
			continue // bwrap makes everything for each command; into a user's namespaces nobody can look from outside
		}
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			s, err := proc.Start(t.Name(), m.Files)
			require.NoError(t, err)
			defer s.Close()
			pid := supervisorOf(t)
			require.Empty(t, rooms(t, pid))
			s.Prepare(sandbox.Make(p.request))
			require.Eventually(t, func() bool { return len(rooms(t, pid)) == 1 }, 30*time.Second, time.Millisecond)
			ahead := rooms(t, pid)
			code, out := p.in(s, "readlink /proc/self/ns/mnt")
			require.Zero(t, code, out)
			require.Equal(t, ahead, []string{strings.TrimSpace(out)})

			other := p.request
			other.Fresh = "the next judgement"
			ran := make(chan string, 1)
			go func() {
				defer close(ran) // also where it fails
				code, out := p.in(s, `touch begun; until [ -e asked ]; do :; done; echo still here`)
				ran <- fmt.Sprintf("%d %s", code, out)
			}()
			require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(p.desk, "begun")); return err == nil }, 30*time.Second, time.Millisecond)
			s.Prepare(sandbox.Make(other))
			require.NoError(t, os.WriteFile(filepath.Join(p.desk, "asked"), nil, 0o600))
			require.Equal(t, "0 still here\n", <-ran)

			p.request = other
			_, out = p.in(s, "readlink /proc/self/ns/mnt")
			require.NotEqual(t, ahead, []string{strings.TrimSpace(out)}, "another judgement gets another room")
		})
	}
}
