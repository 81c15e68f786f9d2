package rules

import (
	"path"
	"slices"
	"strings"

	"pawl/internal/loop/api"
)

// GuardFailure is a guard that failed on a change.
type GuardFailure struct {
	Retried int          // how often it was run again for that
	Failing *api.Failing // the tests that failed, nil if its output shows none
	Before  string       // the signature of the failure in the attempt before, "" for none
	Files   []string     // what the change touched
	Final   bool         // it took too long, changed files of the commit, or lacks a program
	InTime  bool         // there is time for two more runs
}

// RetriesGuard reports whether a guard that failed is run again on the same tree, to tell chance from a failure. It is not if
// something could not be built, if it failed in the same way before the rework, or if a test failed that the change touched.
func (r Improve) RetriesGuard(f GuardFailure) bool { return r.Version >= 6 && f.again(r.Retries) }

// RetriesGuard is the same in a delivery.
func (r Deliver) RetriesGuard(f GuardFailure) bool { return r.Version >= 6 && f.again(r.Retries) }

func (f GuardFailure) again(retries int) bool {
	if f.Retried >= retries || f.Final || !f.InTime {
		return false
	}
	failing := f.Failing
	if failing == nil {
		return true
	}
	if failing.Signature != "" && failing.Signature == f.Before {
		return false
	}
	return !failing.Broken && !touches(f.Files, failing.Units)
}

// Unnamed stands for the failures of a run whose output names no test.
const Unnamed = "a failure that names no test"

// RunAgain runs a guard that failed again as often as retries allows, the n-th time by rerun. It counts as passed then only
// if it passes twice; flaky is what had failed.
func RunAgain(first api.Outcome, retries func(retried int, last api.Outcome) bool, rerun func(n int, previous api.Outcome) (api.Outcome, error)) (last api.Outcome, flaky []string, err error) {
	last = first
	for retried := 0; !last.OK() && retries(retried, last); retried++ {
		for n := range 2 {
			if last, err = rerun(2*retried+n+1, last); err != nil {
				return last, nil, err
			}
			if !last.OK() {
				break
			}
		}
	}
	if !last.OK() || first.OK() {
		return last, nil, nil
	}
	if f := first.Failing; f != nil && len(f.Names) > 0 {
		return last, f.Names, nil
	}
	return last, []string{Unnamed}, nil
}

// RetriesUnchanged reports whether a guard that failed on the unchanged code is run again, as on a change.
func RetriesUnchanged(version int) bool { return version >= 7 }

// touches reports whether one of the files of a change is that of a failing test. A unit is a file, a package or a class.
func touches(files, units []string) bool {
	return slices.ContainsFunc(units, func(unit string) bool {
		return slices.ContainsFunc(files, func(file string) bool { return holds(file, unit) })
	})
}

func holds(file, unit string) bool {
	unit = strings.TrimPrefix(path.Clean(strings.ReplaceAll(unit, "\\", "/")), "./")
	if unit == api.RootUnit {
		return strings.HasSuffix(file, "_test.go") && path.Dir(file) == "."
	}
	if file == unit || strings.HasSuffix(file, "/"+unit) || strings.HasSuffix(unit, "/"+file) {
		return true
	}
	if strings.HasSuffix(file, "_test.go") { // Go's packages are folders
		dir := path.Dir(file)
		return dir != "." && (unit == dir || strings.HasSuffix(unit, "/"+dir))
	}
	class := strings.TrimSuffix(path.Base(file), path.Ext(file)) // com.example.CartTest
	return !strings.Contains(unit, "/") && unit[strings.LastIndex(unit, ".")+1:] == class
}
