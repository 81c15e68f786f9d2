package metric

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawl/internal/lib/list"
)

// Results is the name of the results file.
const Results = "loop-results.tsv"

// Row is one line of loop-results.tsv (P7). A row without a measurement of its own, or whose guard failed, carries
// the reference metric and a delta of 0; the code that makes the row fills them in. A row without any metric, which
// is possible in a Deliver loop, has a dash.
type Row struct {
	Iter        int       `json:"iter"`
	Time        time.Time `json:"time"`
	Metric      *Decimal  `json:"metric"`
	Delta       Decimal   `json:"delta"`
	Kept        bool      `json:"kept"`
	Reason      string    `json:"reason,omitempty"` // "error:no-number", "guard-fail", "policy:…", …
	Description string    `json:"description,omitempty"`

	// The fields below follow the columns of the source, if a change was evaluated more than once or more than one
	// number was read.
	Samples int                `json:"samples,omitempty"` // evaluations; Metric is their mean
	Spread  *Decimal           `json:"spread,omitempty"`  // their standard deviation
	LLR     *float64           `json:"llr,omitempty"`     // log likelihood ratio for the change
	Metrics map[string]Decimal `json:"metrics,omitempty"` // the further metrics
	// Unmeasured says that the change was never measured: Metric is the reference.
	Unmeasured bool `json:"unmeasured,omitempty"`
}

// neverMeasured is the last column of a row whose metric is the reference. Its number of evaluations is 0.
const neverMeasured = "not measured"

// unmeasured stands for a metric that is missing.
const unmeasured = "-"

const stamp = "2006-01-02T15:04:05Z"

// String returns the line without its newline: iteration, time in UTC, metric with the decimals with which it was
// printed, delta in the form of FormatDelta, yes or no, and the description after the reason. The description is
// always one field of at most MaxDescription runes. Nothing follows it if one number of one evaluation decides.
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
	columns := []string{strconv.Itoa(r.Iter), r.Time.UTC().Format(stamp), metric, FormatDelta(r.Delta), kept, description}
	return strings.Join(append(columns, r.further()...), "\t")
}

// further returns the columns after those of the source: the number of evaluations, their spread, the log likelihood
// ratio, and the further metrics as name=number. For a change that was never measured, a last column says so.
func (r Row) further() []string {
	if r.Unmeasured {
		return []string{"0", unmeasured, unmeasured, unmeasured, neverMeasured}
	}
	if r.Samples == 0 && len(r.Metrics) == 0 {
		return nil
	}
	spread, llr, metrics := unmeasured, unmeasured, unmeasured
	if r.Spread != nil {
		spread = r.Spread.String()
	}
	if r.LLR != nil {
		llr = strconv.FormatFloat(*r.LLR, 'g', -1, 64)
	}
	named := list.Map(slices.Sorted(maps.Keys(r.Metrics)), func(name string) string { return clean(name, 80) + "=" + r.Metrics[name].String() })
	if len(named) > 0 {
		metrics = strings.Join(named, " ")
	}
	return []string{strconv.Itoa(max(r.Samples, 1)), spread, llr, metrics}
}
