package render

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"pawl/internal/loop"
	"pawl/internal/metric"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Duration returns a length of time in at most two units: 0.4s, 12s, 3m 5s, 2h 10m, 3d 4h.
func Duration(d time.Duration) string {
	d = max(d, 0)
	two := func(a time.Duration, first string, b time.Duration, second string) string {
		n, rest := d/a, d%a/b
		if rest == 0 {
			return strconv.FormatInt(int64(n), 10) + first
		}
		return strconv.FormatInt(int64(n), 10) + first + " " + strconv.FormatInt(int64(rest), 10) + second
	}
	const day = 24 * time.Hour
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', 1, 64) + "s"
	case d < time.Minute:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	case d < time.Hour:
		return two(time.Minute, "m", time.Second, "s")
	case d < day:
		return two(time.Hour, "h", time.Minute, "m")
	}
	return two(day, "d", time.Hour, "h")
}

// whole drops the fraction that Duration shows for short times: a limit is 5s, not 5.0s.
func whole(d time.Duration) string { return strings.Replace(Duration(d), ".0s", "s", 1) }

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// signed returns a number with its sign: +0.1, -3, +0.
func signed(d metric.Decimal) string {
	if d.Sign() >= 0 {
		return "+" + strings.TrimPrefix(d.String(), "-")
	}
	return d.String()
}

// change returns a difference with its sign and, beside it, its share of what it started from: -9995.2, -29 %.
func change(d, base metric.Decimal) string { return signed(d) + Around(", ", share(d, base), "") }

// share returns a difference in percent of what it started from: +1.5 %. It is "" where percent says nothing: of
// nothing, or where one is more than a thousand times the other.
func share(d, base metric.Decimal) string {
	if base.IsZero() || d.IsZero() {
		return ""
	}
	percent := 100 * d.Float() / math.Abs(base.Float())
	size := math.Abs(percent)
	digits := 0
	switch {
	case size >= 1e5 || size < 0.001:
		return ""
	case size < 0.1:
		digits = 3
	case size < 1:
		digits = 2
	case size < 10:
		digits = 1
	}
	return fmt.Sprintf("%+.*f %%", digits, percent)
}

// amount returns a quantity of a resource in words.
func amount(r loop.Resource, n metric.Decimal) string {
	switch r {
	case loop.ActiveTime:
		return amountShort(r, n) + " active"
	case loop.WallClock, loop.CostUSD:
		return amountShort(r, n)
	case loop.ToolCalls:
		return counted(n, "tool call")
	case loop.Tokens:
		return counted(n, "token")
	}
	return counted(n, "iteration")
}

// spent returns what a loop has cost, as far as its agents say, "" if nothing ran yet.
func spent(u loop.Usage) string {
	var parts []string
	add := func(n int64, word string) {
		if n > 0 {
			parts = append(parts, counted(loop.Count(n), word))
		}
	}
	if u.CostUSD.Sign() > 0 {
		parts = append(parts, "$"+u.CostUSD.String())
	}
	add(u.InputTokens+u.OutputTokens, "token")
	add(u.AgentCalls, "agent call")
	add(u.ToolCalls, "tool call")
	if u.ActiveMs > 0 {
		parts = append(parts, Duration(millis(float64(u.ActiveMs)))+" active")
	}
	return strings.Join(parts, ", ")
}

func counted(n metric.Decimal, word string) string {
	if n.String() == "1" {
		return "1 " + word
	}
	return n.String() + " " + word + "s"
}

// amounts returns quantities of resources in words.
func amounts(quantities map[loop.Resource]metric.Decimal) (texts []string) {
	for _, r := range loop.Resources {
		if n, ok := quantities[r]; ok {
			texts = append(texts, amount(r, n))
		}
	}
	return texts
}

// number returns a metric, or a dash if there is none.
func number(d *metric.Decimal) string { return cmp.Or(known("", d, ""), "–") }

// digest returns the part of a SHA-256 that people see, which is as much as an approval must give.
func digest(hash string) string { return hash[:min(16, len(hash))] }

// Short returns the part of a commit's hash that people see.
func Short(hash string) string { return hash[:min(10, len(hash))] }

// branchName returns a branch without refs/heads/.
func branchName(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }
