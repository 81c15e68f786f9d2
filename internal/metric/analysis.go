package metric

import (
	"cmp"
	"hash/fnv"
	"path"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/lib/list"
)

// The maximum of what an Analysis remembers. Together these limits keep its JSON under about 8 KB, and the prompt at
// iteration 1,000 as long as at iteration 20 (P1).
const (
	maxAreas    = 24
	maxTypes    = 12
	maxKinds    = 16
	maxReasons  = 12
	maxPoints   = 12
	maxRejected = 64
	maxArea     = 120 // runes of a name
)

// Trial is one finished iteration as the analysis sees it.
type Trial struct {
	N           int
	Area        string   // where the change was; if "", Area(Files) is used
	Files       []string // the files that changed
	Kept        bool
	Metric      *Decimal // nil without a measurement of its own, for example after a failed guard
	Delta       Decimal
	Reason      string // "" if the metric decided
	Description string
	Idea        string // what was intended, however the writer worded the result; "" if nobody said it
}

// undecided reports whether something else than the metric refused a measured change.
func (t Trial) undecided() bool { return !t.Kept && t.Reason != "" }

// AreaStat counts the trials in one area, or of one type of file, kind of change or reason.
type AreaStat struct {
	Area           string  `json:"a"`
	Tried          int     `json:"t"`
	Kept           int     `json:"k,omitempty"`
	DiscardsInARow int     `json:"d,omitempty"`
	Last           int     `json:"l"` // the last iteration that tried it
	Gain           Decimal `json:"g"` // sum of the kept deltas, in the metric's own unit and sign
}

// Point is a measured metric, and whether the change behind it was kept.
type Point struct {
	Value     Decimal `json:"v"`
	Kept      bool    `json:"k,omitempty"`
	Undecided bool    `json:"u,omitempty"` // it was not kept, but not because of its metric
}

// Analysis is what a loop has learnt so far: where changes improved the metric and where they were always discarded,
// what kinds of change they were, and which way the metric goes (P1). It gets one trial at a time and never grows
// beyond a limit. It forgets first what was tried longest ago.
//
// It is a value: copies share nothing that Add changes, so it may be part of workflow state. The zero value has
// learnt nothing.
type Analysis struct {
	Tried    int        `json:"t,omitempty"` // trials so far, without the baseline
	Kept     int        `json:"k,omitempty"`
	Areas    []AreaStat `json:"a,omitempty"` // the most recently tried last, as in all four lists
	Types    []AreaStat `json:"y,omitempty"` // by file name extension
	Kinds    []AreaStat `json:"i,omitempty"` // by the first word of the description
	Reasons  []AreaStat `json:"r,omitempty"` // why trials were discarded; Tried counts them
	Points   []Point    `json:"p,omitempty"` // the last measured metrics, oldest first
	Rejected []Rejected `json:"x,omitempty"` // the last discarded descriptions
}

// Rejected is a discarded change: its iteration, a hash of the Fingerprint of its idea or its description, and a hash
// of the Idea, "" if that was not recorded yet.
type Rejected struct {
	N    int    `json:"n"`
	Hash string `json:"h"`
	Idea string `json:"i,omitempty"`
}

// Add adds one trial. Iteration 0, the baseline, is only a point of the metric's course.
func (a *Analysis) Add(t Trial) {
	if t.Metric != nil {
		a.Points = list.Last(append(slices.Clone(a.Points), Point{*t.Metric, t.Kept, t.undecided()}), maxPoints)
	}
	if t.N == 0 {
		return
	}
	a.Tried++
	if t.Kept {
		a.Kept++
	}
	a.Areas = count(a.Areas, maxAreas, clean(cmp.Or(t.Area, Area(t.Files)), maxArea), t)
	for _, ext := range extensions(t.Files) {
		a.Types = count(a.Types, maxTypes, ext, t)
	}
	fingerprint := Fingerprint(t.Description)
	kind, _, _ := strings.Cut(fingerprint, " ")
	a.Kinds = count(a.Kinds, maxKinds, clean(kind, 24), t)
	if t.Kept {
		return
	}
	a.Reasons = count(a.Reasons, maxReasons, clean(t.Reason, maxArea), t)
	for i, words := range []string{t.Idea, t.Description} {
		said := Fingerprint(words)
		if said == "" || i > 0 && said == Fingerprint(t.Idea) {
			continue
		}
		r := Rejected{N: t.N, Hash: hash(said)}
		if idea := Idea(words); idea != "" {
			r.Idea = hash(idea)
		}
		a.Rejected = list.Last(append(slices.Clone(a.Rejected), r), maxRejected)
	}
}

// count returns stats with t counted under name, which moves to the end.
func count(stats []AreaStat, limit int, name string, t Trial) []AreaStat {
	if name == "" {
		return stats
	}
	stat, counted := AreaStat{Area: name}, slices.Clone(stats)
	if i := slices.IndexFunc(counted, func(s AreaStat) bool { return s.Area == name }); i >= 0 {
		stat = counted[i]
		counted = slices.Delete(counted, i, i+1)
	}
	stat.Tried++
	stat.Last = t.N
	if t.Kept {
		stat.Kept++
		stat.DiscardsInARow = 0
		stat.Gain = stat.Gain.Add(t.Delta)
	} else {
		stat.DiscardsInARow++
	}
	return list.Last(append(counted, stat), limit)
}

func hash(s string) string {
	h := fnv.New64a()
	h.Write([]byte(s)) // never fails
	return strconv.FormatUint(h.Sum64(), 36)
}

// Discarded reports whether a change with the same idea, or with a similar description, was discarded before, and in
// which iteration. This is the mechanical part of "avoid what failed" (P2). It remembers the last 64 wordings. With
// reworded, another wording of an idea counts as the idea.
func (a Analysis) Discarded(description string, reworded bool) (iteration int, found bool) {
	want, idea := Fingerprint(description), Idea(description)
	if want == "" {
		return 0, false
	}
	want = hash(want)
	reworded = reworded && idea != ""
	idea = hash(idea)
	for _, r := range slices.Backward(a.Rejected) {
		if r.Hash == want || reworded && r.Idea == idea {
			return r.N, true
		}
	}
	return 0, false
}

// Improved returns the areas in which changes were kept, the most often kept first.
func (a Analysis) Improved() []AreaStat {
	return pick(a.Areas, func(s AreaStat) bool { return s.Kept > 0 })
}

// AlwaysDiscarded returns the areas that were tried twice or more, never with success, the most often tried first.
func (a Analysis) AlwaysDiscarded() []AreaStat {
	return pick(a.Areas, func(s AreaStat) bool { return s.Kept == 0 && s.Tried > 1 })
}

// Stuck returns the areas whose last changes, at least that many, were all discarded: time to pivot (P2, after 3).
func (a Analysis) Stuck(minimum int) []AreaStat {
	return pick(a.Areas, func(s AreaStat) bool { return s.DiscardsInARow >= minimum && s.DiscardsInARow > 0 })
}

func pick(stats []AreaStat, want func(AreaStat) bool) []AreaStat {
	var picked []AreaStat
	for _, s := range slices.Backward(stats) { // of equal ones, the most recent first
		if want(s) {
			picked = append(picked, s)
		}
	}
	slices.SortStableFunc(picked, func(x, y AreaStat) int { return cmp.Or(y.Kept-x.Kept, y.Tried-x.Tried) })
	return picked
}

// Area returns where a change was: the file itself if it is one, else the deepest folder that contains all of them,
// "." for the root of the repository, "" for no files.
func Area(files []string) string {
	switch len(files) {
	case 0:
		return ""
	case 1:
		return files[0]
	}
	common := strings.Split(path.Dir(files[0]), "/")
	for _, file := range files[1:] {
		dir := strings.Split(path.Dir(file), "/")
		n := 0
		for n < min(len(common), len(dir)) && common[n] == dir[n] {
			n++
		}
		common = common[:n]
	}
	return cmp.Or(strings.Join(common, "/"), ".")
}

// extensions returns the types of the files, each once: ".go", or the name of a file without an extension.
func extensions(files []string) []string {
	var types []string
	for _, file := range files {
		ext := path.Ext(file)
		if ext == "" || ext == "." {
			ext = path.Base(file)
		}
		if ext = clean(ext, 24); !slices.Contains(types, ext) {
			types = append(types, ext)
		}
		if len(types) == maxTypes {
			break
		}
	}
	return types
}
