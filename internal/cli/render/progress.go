package render

import (
	"strings"
	"time"
	"unicode/utf8"

	"pawl/internal/loop"
	"pawl/internal/spec/kind"
)

// barWidth is the width of the bar, in columns.
const barWidth = 20

// Progress renders the moving line of a loop: a bar over its iterations, the phase and how long it has run, the best
// metric, what was kept and what is left to spend (A8). Parts that do not fit are left out, from the end.
func (s Style) Progress(k kind.Kind, st loop.State, phaseSince, now time.Time) string {
	done := st.KeptCount + st.Discarded
	parts := []string{s.bar(st, done) + " " + s.stage(st, phaseSince, now)}
	if shown := st.Shown(); shown != nil {
		best := "best " + shown.String()
		if st.Baseline != nil && shown.Cmp(*st.Baseline) != 0 {
			best += " (" + change(shown.Sub(*st.Baseline), *st.Baseline) + ")"
		}
		parts = append(parts, best)
	}
	for _, figure := range k.Figures {
		if part := part(figure, st); part != "" {
			parts = append(parts, part)
		}
	}
	left := st.Budget.Left()
	delete(left, loop.Iterations) // the bar shows them
	if len(left) > 0 {
		parts = append(parts, "left: "+strings.Join(amounts(left), ", "))
	}
	line := parts[0]
	for _, part := range parts[1:] {
		if columns(line)+3+columns(part) >= s.Width {
			break
		}
		line += " │ " + part
	}
	return s.dressed(clip(line, s.Width-1))
}

// dressed colours the bar, after the line was measured and cut.
func (s Style) dressed(line string) string {
	if end := strings.LastIndexAny(line, "█░"); s.Color && end > 0 {
		_, size := utf8.DecodeRuneInString(line[end:])
		return cyan + line[:end+size] + reset + line[end+size:]
	}
	return line
}

func (s Style) bar(st loop.State, done int) string {
	limit := st.Budget[loop.Iterations].Limit
	if limit == nil || limit.Float() < 1 {
		return strings.Repeat("░", barWidth)
	}
	filled := min(barWidth, int(float64(barWidth)*float64(done)/limit.Float()))
	return strings.Repeat("█", filled) + strings.Repeat("░", barWidth-filled)
}

// stage returns where the loop is: the iteration and the phase, or what it waits for.
func (s Style) stage(st loop.State, began, now time.Time) string {
	activity := st.Doing()
	switch {
	case st.Status.Ended():
		activity = string(st.Status)
	case st.Gate != nil:
		activity, began = "waiting: "+string(st.Gate.Kind), st.Gate.OpenedAt
	case st.Sleep != nil:
		activity, began = "asleep until "+s.when(st.Sleep.Until)+":", st.Sleep.Since
	case st.Phase == "":
		activity = "starting"
	default:
		activity += above(1, ", attempt ", st.Attempt, "")
	}
	if limit := st.Budget[loop.Iterations].Limit; limit != nil && st.Iteration > 0 {
		activity = itoa(st.Iteration) + "/" + limit.String() + " " + activity
	}
	if began.IsZero() || st.Status.Ended() {
		return activity
	}
	return activity + " " + Duration(now.Sub(began))
}

// FirstWord is how long something may take before the first line about it, if no line can move.
const FirstWord = 10 * time.Second

// Pace says when to report that something still runs: after ten seconds, a minute, and at longer and longer intervals.
type Pace struct{ next time.Duration }

// Due reports whether it is time for a report.
func (p *Pace) Due(took time.Duration) bool {
	if took < max(p.next, FirstWord) {
		return false
	}
	for p.next <= took {
		p.next = max(time.Minute, 2*p.next)
	}
	return true
}
