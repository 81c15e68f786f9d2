package evidence

import (
	"maps"
	"slices"
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

	// What follows the columns of the source, where a change was evaluated more than once or more than one number
	// was read.
	Samples int                `json:"samples,omitempty"` // evaluations; Metric is their mean
	Spread  *Decimal           `json:"spread,omitempty"`  // their standard deviation
	LLR     *float64           `json:"llr,omitempty"`     // what they say for the change
	Metrics map[string]Decimal `json:"metrics,omitempty"` // further ones
	// Unmeasured says that the change was never measured: Metric is the reference, carried on.
	Unmeasured bool `json:"unmeasured,omitempty"`
}

// neverMeasured is the last column of a row whose metric is the reference's, after the evaluations, of which it has 0.
const neverMeasured = "not measured"

// unmeasured stands for the metric where there is none.
const unmeasured = "-"

const stamp = "2006-01-02T15:04:05Z"

// String is the line without its newline: iteration, time in UTC, metric with the decimals that
// it was printed with, delta as FormatDelta has it, yes or no, and the description with the
// reason in front. The description is always one field of at most MaxDescription runes. What follows it is nothing
// where one number of one evaluation decides.
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

// further are the columns that follow those of the source: how many evaluations, their spread, the log likelihood
// ratio, the further metrics as name=number; of a change that was never measured that, too.
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
	var named []string
	for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
		named = append(named, clean(name, 80)+"="+r.Metrics[name].String())
	}
	if len(named) > 0 {
		metrics = strings.Join(named, " ")
	}
	return []string{strconv.Itoa(max(r.Samples, 1)), spread, llr, metrics}
}
