//go:build crashtest

package crashpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

var (
	mu   sync.Mutex
	seen = map[string]int{} // how often each point was passed, and "" for all points together
)

// At kills the process with SIGKILL at the n-th passage of the point named by PAWL_CRASH=<point>#<n> (n is 1 if it is
// missing), or of any point if only #<n> is given. With PAWL_CRASH_VICTIM=<file> it kills the process whose ID is in
// that file instead, at every n-th passage, and removes the file. With PAWL_CRASH_TRACE=<file> it appends the time in
// nanoseconds and the point's name to that file.
func At(point string) {
	mu.Lock()
	defer mu.Unlock()
	seen[point]++
	seen[""]++
	if trace := os.Getenv("PAWL_CRASH_TRACE"); trace != "" {
		if f, err := os.OpenFile(trace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			fmt.Fprintln(f, time.Now().UnixNano(), point)
			f.Close()
		}
	}
	want, nth, found := strings.Cut(os.Getenv("PAWL_CRASH"), "#")
	if want == "" && nth == "" || want != "" && want != point {
		return
	}
	n := 1
	if found {
		n, _ = strconv.Atoi(nth)
	}
	if victim := os.Getenv("PAWL_CRASH_VICTIM"); victim != "" {
		if seen[want]%n == 0 {
			killOther(victim)
		}
		return
	}
	if seen[want] == n {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// killOther kills the process named in a file. A missing file means that it was killed already.
func killOther(victim string) {
	b, err := os.ReadFile(victim)
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 || os.Remove(victim) != nil {
		return
	}
	syscall.Kill(pid, syscall.SIGKILL)
}
