package ui

import "strings"

// fields are names with values, one below the other. A value of several lines stays in its column.
type fields struct {
	style Style
	width int
	b     strings.Builder
}

func (s Style) fields(width int) *fields { return &fields{style: s, width: width} }

// add writes a field. It leaves out empty lines, and a field without any line.
func (f *fields) add(name string, lines ...string) {
	for _, line := range lines {
		if line == "" {
			continue
		}
		f.b.WriteString(strings.TrimRight("  "+f.style.Dim(pad(name, f.width))+"  "+line, " ") + "\n")
		name = ""
	}
}

func (f *fields) String() string { return strings.TrimSuffix(f.b.String(), "\n") }

// table renders rows under a head. Each column is as wide as its widest cell; the last one takes the rest of the
// screen.
func (s Style) table(head []string, rows [][]string) string {
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], columns(cell))
		}
	}
	line := func(row []string) string {
		var b strings.Builder
		for i, cell := range row {
			if i == len(row)-1 {
				b.WriteString(clip(cell, max(10, s.Width-columns(b.String()))))
				break
			}
			b.WriteString(pad(cell, widths[i]) + "  ")
		}
		return strings.TrimRight(b.String(), " ")
	}
	lines := []string{s.Dim(line(head))}
	for _, row := range rows {
		lines = append(lines, line(row))
	}
	return strings.Join(lines, "\n")
}
