package render

import (
	"cmp"
	"slices"

	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/spec/phase"
)

// Delivery is what a reader wants to know at the end of a loop that runs tests, gathered from its events.
type Delivery struct {
	Fixes  int    // that passed the guard
	Before string // how the tests of the unchanged code ended, "" if they did not run
	First  string // how the tests of the first change that reached them ended
	Last   *loop.Tests
	Passed bool // the last run of the tests passed
	Runs   int  // of the tests
	Flaky  []string
	Review *loop.Event // the reviewer's last answer
}

// Follow returns what is known after the event.
func (d Delivery) Follow(e loop.Event) Delivery {
	switch {
	case e.Type == loop.ChangeAccepted && e.Phase == phase.Fix:
		d.Fixes++
	case e.Type == loop.TestsKnown && e.Judgement != nil && e.Judgement.Tests != nil:
		d.Before = ended(*e.Judgement.Tests, e.Judgement.Passed)
	case e.Type == loop.ChangeJudged && e.Step == "test" && e.Judgement != nil && e.Judgement.Tests != nil:
		d.Last, d.Passed = e.Judgement.Tests, e.Judgement.Passed
		if d.Runs++; d.Runs == 1 {
			d.First = ended(*d.Last, d.Passed)
		}
		d.Flaky = append(d.Flaky[:len(d.Flaky):len(d.Flaky)], d.Last.Flaky...)
	case e.Type == loop.ProposalReviewed:
		d.Review = &e
	}
	return d
}

// Phase returns the line for a phase that was entered.
func (s Style) Phase(e loop.Event) string { return "    → " + s.Bold(string(e.Phase)) }

// Review returns a reviewer's answer, with a line for each acceptance criterion.
func (s Style) Review(e loop.Event) []string {
	lines := []string{"reviewed: " + reviewed(e)}
	for _, c := range e.Criteria {
		box, color := "[ ] ", yellow
		if c.Met {
			box, color = "[x] ", green
		}
		lines = append(lines, s.paint(color, box)+Clean(c.Criterion)+s.Dim(note(c.Evidence)))
	}
	return lines
}

// course returns how the tests ended: of the unchanged code, after the first write, and at the end.
func (d Delivery) course() (lines []string) {
	outcome := ended(*d.Last, d.Passed)
	if d.Before == "" && d.Runs == 1 {
		return []string{outcome}
	}
	const width = len("after the first write: ")
	if d.Before != "" {
		lines = append(lines, pad("before:", width)+d.Before)
	}
	if d.Runs > 1 {
		lines = append(lines, pad("after the first write:", width)+d.First)
	}
	return append(lines, pad("at the end:", width)+outcome)
}

// delivered renders the final report of a loop that runs tests.
func (s Style) delivered(status loop.Status, r loop.Result, d Delivery) string {
	word := "Delivered"
	if status != loop.Completed {
		word = "Not delivered"
	}
	f := s.fields(11)
	if d.Last == nil {
		f.add("tests", "no change was tested")
	} else {
		f.add("tests", d.course()...)
		if !d.Passed {
			f.add("failing", names(d.Last.Failing))
		} else {
			f.add("failing", Around("", names(d.Last.Known), ", as before the first write"))
		}
		f.add("flaky", names(d.Flaky))
	}
	f.add("vanished", Clean(loop.Vanished(r.Kept)))
	if d.Review != nil {
		f.add("review", append([]string{reviewed(*d.Review)}, s.Review(*d.Review)[1:]...)...)
	}
	f.add("advice", advice(status, r))
	return word + ": " + plural(r.Iterations, "iteration") + ", " + plural(d.Fixes, "fix") + "\n" + f.String()
}

// advice returns what to do with a delivery.
func advice(status loop.Status, r loop.Result) string {
	switch p := r.Proposal; {
	case status != loop.Completed: // Ended shows what to do
		return ""
	case p == nil:
		return "nothing had to be changed"
	case p.State == "approved":
		return "apply the proposal"
	case p.State == "open":
		return "look at the proposal, approve it, apply it"
	case p.State == "rejected":
		return ""
	}
	return r.Recommendation
}

// tests returns the result of a test run, in one line.
func tests(j loop.Judgement) string {
	text := "tests: " + ended(*j.Tests, j.Passed)
	if j.Tests.Broken {
		text += "; something could not be built or loaded"
	}
	newlyFailing := slices.DeleteFunc(slices.Clone(j.Tests.Failing), func(name string) bool { return slices.Contains(j.Tests.Known, name) })
	if len(j.Tests.New) > 0 {
		text += "; newly failing: " + names(j.Tests.New)
	} else if !j.Passed && len(newlyFailing) > 0 {
		text += "; failing: " + names(newlyFailing)
	}
	text += Around("; failing as before the first write: ", names(j.Tests.Known), "")
	text += Around("; fixed: ", names(j.Tests.Fixed), "")
	text += Around("; flaky (passed when run again unchanged): ", names(j.Tests.Flaky), "")
	if !j.Passed && j.Tests.Failed == 0 && !j.Tests.Broken {
		text += note(otherThanTests(j))
	}
	return text
}

// otherThanTests returns why a run of the tests failed, "" if that is because of the tests.
func otherThanTests(j loop.Judgement) string {
	if j.Reason == "tests" {
		return ""
	}
	return j.Reason
}

// ended returns how a test run ended: how many tests passed and failed. If no test is named, it says whether the run
// passed, and what a failed one printed first.
func ended(t loop.Tests, passed bool) string {
	switch {
	case t.Passed+t.Failed+t.Skipped > 0:
		return counts(t)
	case passed:
		return "passed; " + counts(t)
	case t.Printed != "":
		return "failed: " + Clean(t.Printed)
	}
	return "failed; " + counts(t)
}

// reviewed returns a reviewer's answer in one line, with how many criteria it ticked off.
func reviewed(e loop.Event) string {
	text := cmp.Or(Clean(e.Reason), "no decision")
	if n := len(e.Criteria); n > 0 {
		met := list.Filter(e.Criteria, func(c loop.Criterion) bool { return c.Met })
		text += ", " + itoa(len(met)) + " of " + itoa(n) + " criteria met"
	}
	return text + note(e.Note)
}

// maxNames is how many tests a line names.
const maxNames = 4

func names(tests []string) string { return first(maxNames, tests, len(tests), ", ") }

// counts returns how many tests passed and failed.
func counts(t loop.Tests) string {
	if t.Passed+t.Failed+t.Skipped == 0 {
		return "the output names none"
	}
	return above(0, "", t.Failed, " failed, ") + itoa(t.Passed) + " passed" + above(0, ", ", t.Skipped, " skipped")
}
