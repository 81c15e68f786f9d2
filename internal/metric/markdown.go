package metric

import (
	"fmt"
	"slices"
	"strings"

	"pawl/internal/lib/list"
)

// Markdown returns the analysis for the agent's prompt: a list of at most maxBytes bytes. What does not fit is left
// out by whole lines; the least important come last. Names are written as code, so that the name of a file can't look
// like an instruction; line breaks and backticks in them are replaced. Trend is not part of it, because it needs the
// metric's direction.
func (a Analysis) Markdown(maxBytes int) string {
	if a.Tried == 0 {
		return fit([]string{"- Nothing has been tried yet."}, maxBytes)
	}
	lines := []string{fmt.Sprintf("- Tried so far: %d, kept: %d, discarded: %d.", a.Tried, a.Kept, a.Tried-a.Kept)}
	section := func(title string, stats []AreaStat, limit int, line func(AreaStat) string) {
		if len(stats) == 0 {
			return
		}
		lines = append(lines, "- "+title+":")
		for _, s := range stats[:min(len(stats), limit)] {
			lines = append(lines, "  - "+line(s))
		}
	}
	section("High-leverage targets first: areas that improved, by how much", byEffect(a.Improved()), 8, func(s AreaStat) string {
		return fmt.Sprintf("%s: delta %s, kept %d of %d, last in iteration %d", code(s.Area), FormatDelta(s.Gain), s.Kept, s.Tried, s.Last)
	})
	section("Stuck, pivot away from these areas", a.Stuck(3), 6, func(s AreaStat) string {
		return fmt.Sprintf("%s: the last %d changes were all discarded", code(s.Area), s.DiscardsInARow)
	})
	section("Areas that were always discarded", a.AlwaysDiscarded(), 8, func(s AreaStat) string {
		return fmt.Sprintf("%s: 0 of %d, last in iteration %d", code(s.Area), s.Tried, s.Last)
	})
	inLine := func(title string, stats []AreaStat, show func(AreaStat) string) {
		parts := list.Map(stats[:min(len(stats), 8)], show)
		if len(parts) > 0 {
			lines = append(lines, "- "+title+": "+strings.Join(parts, ", ")+".")
		}
	}
	ratio := func(s AreaStat) string { return fmt.Sprintf("%s %d of %d", code(s.Area), s.Kept, s.Tried) }
	always := func(AreaStat) bool { return true }
	inLine("Kept by kind of change (first word)", pick(a.Kinds, always), ratio)
	inLine("Kept by type of file", pick(a.Types, always), ratio)
	inLine("Discarded for", pick(a.Reasons, always), func(s AreaStat) string { return fmt.Sprintf("%s %d", code(s.Area), s.Tried) })
	return fit(lines, maxBytes)
}

// byEffect sorts areas by the gain of their kept changes, the largest first (P2). Every kept change improved the
// metric, so the sign of its gain does not matter.
func byEffect(stats []AreaStat) []AreaStat {
	effect := func(s AreaStat) Decimal {
		if s.Gain.Sign() < 0 {
			return s.Gain.Neg()
		}
		return s.Gain
	}
	slices.SortStableFunc(stats, func(x, y AreaStat) int { return effect(y).Cmp(effect(x)) })
	return stats
}

// code returns a name in backticks.
func code(name string) string { return "`" + strings.ReplaceAll(name, "`", "'") + "`" }

// fit joins lines up to the first that does not fit; a title without its list goes too.
func fit(lines []string, maxBytes int) string {
	size, n := 0, 0
	for n < len(lines) && size+len(lines[n])+1 <= maxBytes {
		size += len(lines[n]) + 1
		n++
	}
	if n < len(lines) && n > 0 && strings.HasSuffix(lines[n-1], ":") {
		n--
	}
	if n == 0 {
		return ""
	}
	return strings.Join(lines[:n], "\n") + "\n"
}
