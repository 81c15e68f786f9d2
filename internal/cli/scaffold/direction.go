package scaffold

import (
	"strings"

	"pawl/internal/lib/lazyregexp"
)

const (
	lower  = "lower"
	higher = "higher"
)

var (
	metricLine = lazyregexp.New(`^METRIC\s+(\S+?)=`)
	aNumber    = lazyregexp.New(`[0-9]`)

	// A rate is an amount per time, where more is better. Times, sizes and numbers of mistakes are costs.
	rates = lazyregexp.New(`(?i)(\b|_|\d)(ops|op|req|reqs|requests|iter|iters|iterations|it|calls|rows|items|events|tasks|[kmgt]?i?b|bytes|messages|msgs|runs)?\s?(/|_per_|\sper\s)\s?(s|sec|second|minute)\b|` +
		`(?i)(\b|_)(rps|qps|tps|fps|hz|khz|mhz|ops|throughput|score|coverage|accuracy|precision|recall|passed|speedup|hits)(\b|_)`)
	costs = lazyregexp.New(`(?i)(\d|\b|_)(ns|us|µs|ms|msec|s|sec|secs|seconds|millis|milliseconds|microseconds|nanoseconds|minutes)(/op|/iter|_per_op)?(\b|_)|` +
		`(?i)(\d|\b|_)(b|kb|mb|kib|mib|bytes?|allocs)(/op)?(\b|_)|` +
		`(?i)(\b|_)(time|duration|latency|elapsed|p50|p90|p95|p99|size|loc|lines|errors|failures|failed|warnings|misses|memory|rss|cycles|instructions|cost)(\b|_)`)
)

// Direction returns whether the number that a command printed should be "lower" or "higher". It reads the name of the
// last line METRIC name=number, else the last line with a number. It returns "" if the line suggests neither, or
// both.
func Direction(output string) string {
	last := LastNumber(output)
	if m := metricLine().FindStringSubmatch(last); m != nil {
		last = strings.NewReplacer("-", "_", ".", "_").Replace(m[1])
	}
	rate := rates().MatchString(last)
	cost := costs().MatchString(rates().ReplaceAllString(last, " "))
	switch {
	case rate && !cost:
		return higher
	case cost && !rate:
		return lower
	}
	return ""
}

// LastNumber returns the last line METRIC name=number of an output, else its last line with a number.
func LastNumber(output string) (last string) {
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		isMetric := metricLine().MatchString(line)
		if isMetric || aNumber().MatchString(line) && !metricLine().MatchString(last) {
			last = line
		}
	}
	return last
}
