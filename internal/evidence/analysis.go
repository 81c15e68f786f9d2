package evidence

import (
	"cmp"
	"hash/fnv"
	"path"
	"slices"
	"strconv"
	"strings"
)

// What an Analysis remembers at most. Together they keep its JSON under about 8 KB and the
// prompt at iteration 1,000 as long as at iteration 20 (P1).
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
	Area        string   // where the change was; "" takes Area(Files)
	Files       []string // that changed
	Kept        bool
	Metric      *Decimal // nil without a measurement of its own, such as after a failed guard
	Delta       Decimal
	Reason      string // "" when the metric decided
	Description string
	Idea        string // what was to be done, however the writer worded what it did; "" where nobody said
}

// AreaStat is what came of the trials in one area, or of one type of file, kind of change or
// reason: Analysis counts all four alike.
type AreaStat struct {
	Area           string  `json:"a"`
	Tried          int     `json:"t"`
	Kept           int     `json:"k,omitempty"`
	DiscardsInARow int     `json:"d,omitempty"`
	Last           int     `json:"l"` // the iteration it was last tried in
	Gain           Decimal `json:"g"` // sum of the kept deltas, in the metric's own direction
}

// Point is a measured metric, and whether the change behind it was kept.
type Point struct {
	Value Decimal `json:"v"`
	Kept  bool    `json:"k,omitempty"`
}

// Analysis is what a loop has learnt so far: where changes improved the metric and where they
// were always discarded, what kinds of change they were, and which way the metric goes (P1). It
// is fed one trial at a time and never grows beyond a bound; what was tried longest ago is
// forgotten first.
//
// It is a value: copies do not share anything that Add changes, so it may live in workflow
// state. The zero value has learnt nothing.
type Analysis struct {
	Tried    int        `json:"t,omitempty"` // trials so far, the baseline not counted
	Kept     int        `json:"k,omitempty"`
	Areas    []AreaStat `json:"a,omitempty"` // most recently tried last, as in all four lists
	Types    []AreaStat `json:"y,omitempty"` // by file name extension
	Kinds    []AreaStat `json:"i,omitempty"` // by the first word of the description
	Reasons  []AreaStat `json:"r,omitempty"` // why trials were discarded; Tried counts them
	Points   []Point    `json:"p,omitempty"` // the last measured metrics, oldest first
	Rejected []Rejected `json:"x,omitempty"` // the last discarded descriptions
}

// Rejected is a discarded change: its iteration, and of its idea or its description a hash of the Fingerprint and one
// of the Idea, "" where that was not yet noted.
type Rejected struct {
	N    int    `json:"n"`
	Hash string `json:"h"`
	Idea string `json:"i,omitempty"`
}

// Add takes in one more trial. Iteration 0, the baseline, is only a point of the metric's
// course.
func (a *Analysis) Add(t Trial) {
	if t.Metric != nil {
		a.Points = last(append(slices.Clone(a.Points), Point{*t.Metric, t.Kept}), maxPoints)
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
		a.Rejected = last(append(slices.Clone(a.Rejected), r), maxRejected)
	}
}

// count is stats with t counted under name, which is moved to the end.
func count(stats []AreaStat, most int, name string, t Trial) []AreaStat {
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
	return last(append(counted, stat), most)
}

// last is the last n of list, in an array of its own.
func last[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	return slices.Clone(list[len(list)-n:])
}

func hash(s string) string {
	h := fnv.New64a()
	h.Write([]byte(s)) // never fails
	return strconv.FormatUint(h.Sum64(), 36)
}

// Discarded says whether a change of the same idea, or that was described alike, was discarded before, and in which
// iteration: the mechanical part of "avoid what failed" (P2). It remembers the last 64 wordings. reworded takes
// another wording of an idea for the idea.
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

// Improved are the areas in which changes were kept, the most often kept first.
func (a Analysis) Improved() []AreaStat {
	return pick(a.Areas, func(s AreaStat) bool { return s.Kept > 0 })
}

// AlwaysDiscarded are the areas that were tried at least twice and never successfully, the most
// often tried first.
func (a Analysis) AlwaysDiscarded() []AreaStat {
	return pick(a.Areas, func(s AreaStat) bool { return s.Kept == 0 && s.Tried > 1 })
}

// Stuck are the areas whose last changes, at least so many, were all discarded: time to pivot
// (P2, after 3).
func (a Analysis) Stuck(least int) []AreaStat {
	return pick(a.Areas, func(s AreaStat) bool { return s.DiscardsInARow >= least && s.DiscardsInARow > 0 })
}

func pick(stats []AreaStat, want func(AreaStat) bool) []AreaStat {
	var picked []AreaStat
	for _, s := range slices.Backward(stats) { // the most recent first among equals
		if want(s) {
			picked = append(picked, s)
		}
	}
	slices.SortStableFunc(picked, func(x, y AreaStat) int { return cmp.Or(y.Kept-x.Kept, y.Tried-x.Tried) })
	return picked
}

// Area is where a change was: the file itself when it is one, else the deepest directory that
// has all of them, "." for the root of the repository, "" for no files at all.
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

// extensions are the types of the files, each once: ".go", or the name of a file without one.
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
