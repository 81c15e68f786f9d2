package evidence

import (
	"strconv"
	"strings"
	"time"
)

// Results is the name of the results file.
const Results = "loop-results.tsv"

// Row is one line of loop-results.tsv (P7). A row without a measurement of its own, or whose
// guard failed, carries the reference metric and a delta of 0; that is its maker's business. Without
// any metric, which a Deliver loop may do without, it has a dash.
type Row struct {
	Iter        int       `json:"iter"`
	Time        time.Time `json:"time"`
	Metric      *Decimal  `json:"metric"`
	Delta       Decimal   `json:"delta"`
	Kept        bool      `json:"kept"`
	Reason      string    `json:"reason,omitempty"` // "error:no-number", "guard-fail", "policy:…", …
	Description string    `json:"description,omitempty"`
}

// unmeasured stands for the metric where there is none.
const unmeasured = "-"

const stamp = "2006-01-02T15:04:05Z"

// String is the line without its newline: iteration, time in UTC, metric with the decimals that
// it was printed with, delta as FormatDelta has it, yes or no, and the description with the
// reason in front. The description is always one field of at most MaxDescription runes.
func (r Row) String() string {
	kept := "no"
	if r.Kept {
		kept = "yes"
	}
	description := clean(r.Description, MaxDescription)
	if reason := strings.Join(strings.Fields(clean(r.Reason, 80)), "-"); reason != "" { // one word
		description = strings.TrimSuffix(reason+": "+description, ": ")
	}
	metric := unmeasured
	if r.Metric != nil {
		metric = r.Metric.String()
	}
	return strings.Join([]string{
		strconv.Itoa(r.Iter), r.Time.UTC().Format(stamp), metric, FormatDelta(r.Delta), kept, description,
	}, "\t")
}
