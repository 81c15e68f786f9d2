package testreport

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
)

// noise lists what differs between two runs that fail in the same way, and what replaces it. The order matters. Plain
// numbers stay: "got 3" and "got 4" are different failures.
var noise = []struct {
	what lazyregexp.Regexp
	is   string
}{
	{lazyregexp.New(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([.,]\d+)?(Z|[+-]\d\d:?\d\d)?`), "<time>"},
	{lazyregexp.New(`\b\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(\.\d+)?`), "<time>"},
	{lazyregexp.New(`\b\d\d:\d\d:\d\d([.,]\d+)?`), "<time>"},
	{lazyregexp.New(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<uuid>"},
	{lazyregexp.New(`(?i)0x[0-9a-f]+\??`), "<address>"},
	{lazyregexp.New(`(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)/[^\s:"'()\[\],]*`), "<temp>"},
	{lazyregexp.New(`(?i)[a-z]:\\[^\s"']*\\temp\\[^\s:"']*`), "<temp>"},
	{lazyregexp.New(`\b\d+(\.\d+)?\s?(ns|µs|us|ms|s|sec|secs|seconds?|minutes?|m\d+(\.\d+)?s)\b`), "<duration>"},
	{lazyregexp.New(`\b(goroutine|thread|pid|process|tid|PID) (\d+)\b`), "$1 <n>"},
	{lazyregexp.New(`(thread '[^']*') \(\d+\)`), "$1"},
	{lazyregexp.New(`(\.[A-Za-z]\w*["']?):\d+(:\d+)?`), "$1:<line>"},
	{lazyregexp.New(`\((\d+):(\d+)\)`), "(<line>)"},
	{lazyregexp.New(`\bline \d+\b`), "line <line>"},
	{lazyregexp.New(`(localhost|\d+\.\d+\.\d+\.\d+|\]):\d+`), "$1:<port>"},
	{lazyregexp.New(`(?m)^\s*[>|]?\s*\d+\s*\|`), "<line>|"},
	{lazyregexp.New(`\+<address>`), ""},
}

// Signature returns a digest of how a run failed: the names and messages of the failing tests, without what differs
// from run to run (durations, addresses, times, line numbers, temporary paths). Two runs with the same signature
// failed in the same way. If no failing test is known, it is a digest of the end of the output. It returns "" for an
// empty report.
func Signature(r Report) string {
	if len(r.Failing) == 0 && r.Tail == "" && r.Failed == 0 {
		return ""
	}
	parts := list.Map(r.Failing, func(t Test) string { return normal(t.ID()) + "\x00" + normal(t.Message) })
	slices.Sort(parts)
	if len(r.Failing) == 0 {
		parts = []string{normal(r.Tail)}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", r.Failed, strings.Join(parts, "\x01")))
	return hex.EncodeToString(sum[:16])
}

// normal returns a message without its noise.
func normal(text string) string {
	for _, n := range noise {
		text = n.what().ReplaceAllString(text, n.is)
	}
	return strings.Join(strings.Fields(text), " ")
}
