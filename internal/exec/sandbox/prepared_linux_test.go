package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
)

// rooms returns the mount namespaces of a supervisor's threads, besides its own. It keeps them open until the end of
// the test, because the number of a namespace may be used again after it is gone.
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

// TestE6_ARoomThatIsMadeAheadIsTheOneThatTheCommandGets makes one room before anything runs. It asks for another one
// while a command runs in the same tree; that must not remove the command's room.
func TestE6_ARoomThatIsMadeAheadIsTheOneThatTheCommandGets(t *testing.T) {
	for name, m := range machines(t) {
		if m.Files != sandbox.ByNamespace {
			continue // bubblewrap makes everything for each command, and the namespaces of an ordinary user can't be read from outside
		}
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			s, err := supervisor.Start(t.Name(), m.Files)
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
				defer close(ran) // also if the command fails
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
