//go:build crashtest

package crash

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

var (
	mu   sync.Mutex
	seen = map[string]int{}
)

// At kills the process with SIGKILL at the n-th passage of the point named by
// PAWL_CRASH=<point>#<n> (n is 1 where it is left out). With PAWL_CRASH_TRACE=<file> it appends
// the point's name to that file instead of guessing which points there are.
func At(point string) {
	mu.Lock()
	defer mu.Unlock()
	seen[point]++
	if trace := os.Getenv("PAWL_CRASH_TRACE"); trace != "" {
		if f, err := os.OpenFile(trace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			f.WriteString(point + "\n")
			f.Close()
		}
	}
	want, nth, found := strings.Cut(os.Getenv("PAWL_CRASH"), "#")
	n := 1
	if found {
		n, _ = strconv.Atoi(nth)
	}
	if want == point && seen[point] == n {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
