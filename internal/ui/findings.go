package ui

import "strings"

// Finding is one thing that was checked, and its status: ok, note or failed.
type Finding struct {
	Name, Status, What, Fix string
}

// Findings renders the findings. Below each problem is what to do.
func (s Style) Findings(all []Finding) string {
	width := 0
	for _, f := range all {
		width = max(width, columns(f.Name))
	}
	marks := map[string]string{"ok": s.paint(green, "ok  "), "note": s.paint(yellow, "note"), "failed": s.paint(red, "FAIL")}
	var b strings.Builder
	for _, f := range all {
		b.WriteString(marks[f.Status] + "  " + pad(f.Name, width) + "  " + Clean(f.What) + "\n")
		if f.Fix != "" {
			b.WriteString(strings.Repeat(" ", width+8) + s.Dim("→ "+Clean(f.Fix)) + "\n")
		}
	}
	return b.String()
}
