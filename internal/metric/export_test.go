package metric

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"pawl/internal/metric/reason"
)

// ParseRows reads a results file. Its deltas have the two decimals of the file, not the precision of the event log.
// It skips blank lines. At the first line that is not a row it stops, and returns the rows before it and an error
// that names the line. A last line without a newline may still be in the process of being written; it must be a whole
// row too.
func ParseRows(data []byte) ([]Row, error) {
	var rows []Row
	for n, line := range bytes.Split(data, []byte("\n")) {
		text := strings.TrimSuffix(string(line), "\r")
		if strings.TrimSpace(text) == "" {
			continue
		}
		row, err := parseRow(text)
		if err != nil {
			return rows, fmt.Errorf("%s line %d: %w", Results, n+1, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func parseRow(text string) (row Row, err error) {
	fields := strings.Split(text, "\t")
	if len(fields) != 6 {
		return row, fmt.Errorf("%d fields instead of iteration, time, metric, delta, kept, description", len(fields))
	}
	if row.Iter, err = strconv.Atoi(fields[0]); err != nil || row.Iter < 0 {
		return row, fmt.Errorf("%s is not an iteration", quote(fields[0]))
	}
	// The source's example has no zone; it means UTC too.
	if row.Time, err = time.Parse(stamp, strings.TrimSuffix(fields[1], "Z")+"Z"); err != nil {
		return row, fmt.Errorf("%s is not a time such as 2026-03-27T14:02:11Z", quote(fields[1]))
	}
	if fields[2] != unmeasured {
		metric, err := ParseDecimal(fields[2])
		if err != nil {
			return row, fmt.Errorf("metric: %w", err)
		}
		row.Metric = &metric
	}
	if row.Delta, err = ParseDecimal(fields[3]); err != nil {
		return row, fmt.Errorf("delta: %w", err)
	}
	switch fields[4] {
	case "yes":
		row.Kept = true
	case "no":
	default:
		return row, fmt.Errorf("%s is neither yes nor no", quote(fields[4]))
	}
	row.Description = clean(fields[5], MaxDescription+82)
	if m := stated.FindStringSubmatch(row.Description); m != nil {
		row.Reason, row.Description = m[1], m[2]
	}
	return row, nil
}

// stated finds a reason of the table before a description.
var stated = func() *regexp.Regexp {
	var words []string
	for _, row := range reason.Table {
		word := regexp.QuoteMeta(row.Reason)
		if row.Reason == reason.Policy {
			word += "[A-Za-z0-9-]+"
		}
		words = append(words, word)
	}
	return regexp.MustCompile(`^(` + strings.Join(words, "|") + `)(?:: (\S.*)|)$`)
}()
