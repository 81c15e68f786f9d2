package rules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// Decision is a reviewer's decision on a proposal: one of two, or Undecided.
type Decision string

// The decisions (E3).
const (
	SaysApproved Decision = "APPROVED"
	SaysRejected Decision = "REJECTED"
	Undecided    Decision = ""
)

// Opinion is a reviewer's answer, parsed.
type Opinion struct {
	Decision Decision         `json:"decision"`
	Hash     string           `json:"hash,omitempty"` // as the answer gave it
	Note     string           `json:"note,omitempty"`
	Criteria []loop.Criterion `json:"criteria,omitempty"` // one for each criterion of the spec, in its order
	Why      string           `json:"why,omitempty"`      // why it is not a decision
	Failed   string           `json:"-"`                  // how the reviewer failed, "" if it answered
	TimedOut bool             `json:"-"`                  // there is no answer, because the phase's time is used up
}

// Limits of an answer.
const (
	maxNote   = 4000
	maxAnswer = 1 << 20
)

// ReadReview reads a reviewer's answer on the proposal with that hash (E3). The answer is the `review` of its result
// file, if it wrote one, else what it printed.
//
// As JSON it is {"decision", "hash", "note", "criteria": [{"criterion", "met", "evidence"}]}, with those keys and no
// others, each once. A JSON string is read like printed text.
//
// As text it is a line of its own, not indented, quoted or in a code fence:
//
//	APPROVED 0123456789abcdef
//	REJECTED 0123456789abcdef: why
//
// and a line for each acceptance criterion, by its number: "- [x] 1: evidence" or "- [ ] 2: why". The words anywhere
// else, for example in a quoted diff, decide nothing.
//
// The hash is that of the proposal, or its first 16 or more digits. Both words, another hash, or an approval that
// leaves a criterion without evidence is not a decision, and Why says so. A rejection needs no criteria.
func ReadReview(hash string, criteria []string, object json.RawMessage, printed string) Opinion {
	var text string
	object = bytes.TrimSpace(object)
	structured := len(object) > 0 && !bytes.Equal(object, []byte("null"))
	if structured && json.Unmarshal(object, &text) == nil {
		structured, printed = false, text
	}
	if len(object) > maxAnswer || len(printed) > maxAnswer {
		return undecided("the answer is larger than %d bytes", maxAnswer)
	}
	spoken, words := readText(printed, len(criteria))
	answer := spoken
	if structured {
		var err error
		if answer, err = readObject(object); err != nil {
			return undecided("the review in the result file is not what is expected: %v", err)
		}
		if words > 0 && (spoken.Decision != answer.Decision || spoken.Decision == Undecided) {
			return undecided("the result file says %s and the output says otherwise", answer.Decision)
		}
	}
	return answer.check(hash, criteria)
}

// check compares an answer with the proposal's hash and the criteria.
func (r Opinion) check(hash string, criteria []string) Opinion {
	switch {
	case r.Why != "":
		return undecided("%s", r.Why)
	case r.Decision != SaysApproved && r.Decision != SaysRejected:
		return undecided("it says neither APPROVED nor REJECTED on a line of its own")
	case len(r.Hash) < minHash || len(r.Hash) > len(hash):
		return undecided("it does not name the proposal's hash, at least its first %d digits", minHash)
	case !strings.HasPrefix(strings.ToLower(hash), strings.ToLower(r.Hash)):
		return undecided("it is for another proposal (%s)", clip(r.Hash))
	}
	r.Note = loop.Clip(strings.TrimSpace(r.Note), maxNote)
	given := r.Criteria
	r.Criteria = nil
	for i, c := range criteria {
		answers := slices.DeleteFunc(slices.Clone(given), func(g loop.Criterion) bool {
			return strings.TrimSpace(g.Criterion) != strconv.Itoa(i+1) && !sameWords(g.Criterion, c)
		})
		found := loop.Criterion{Criterion: c}
		switch {
		case len(answers) > 1:
			return undecided("criterion %d is answered %d times", i+1, len(answers))
		case len(answers) == 1:
			found.Evidence = loop.Clip(strings.TrimSpace(answers[0].Evidence), maxNote)
			found.Met = answers[0].Met && found.Evidence != ""
		}
		if r.Decision == SaysApproved && !found.Met {
			return undecided("it approves, but criterion %d (%s) is not ticked with evidence", i+1, clip(c))
		}
		r.Criteria = append(r.Criteria, found)
	}
	return r
}

func sameWords(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}

func undecided(format string, args ...any) Opinion {
	return Opinion{Why: loop.Clip(fmt.Sprintf(format, args...), 500)}
}

// readObject reads the review object strictly: encoding/json takes keys in any case, and the last of two equal keys.
func readObject(object []byte) (Opinion, error) {
	var duplicate error
	review, _, err := spec.JSON(object, func(string, int) {}, func(key string, _ int) { duplicate = fmt.Errorf("it has %q twice", clip(key)) })
	if err = cmp.Or(err, duplicate, onlyKeys("review", review, "decision", "hash", "note", "criteria")); err != nil {
		return Opinion{}, err
	}
	criteria, _ := review.(map[string]any)["criteria"].([]any)
	for _, c := range criteria {
		if err := onlyKeys("a criterion", c, "criterion", "met", "evidence"); err != nil {
			return Opinion{}, err
		}
	}
	var r struct {
		Decision string
		Hash     string
		Note     string
		Criteria []struct {
			Criterion any
			Met       bool
			Evidence  string
		}
	}
	if json.Unmarshal(object, &r) != nil {
		return Opinion{}, errors.New("a value is not a simple one of the expected type")
	}
	out := Opinion{Decision: Decision(r.Decision), Hash: r.Hash, Note: r.Note}
	for _, c := range r.Criteria {
		name, ok := c.Criterion.(string)
		if number, isNumber := c.Criterion.(float64); isNumber {
			name, ok = strconv.FormatFloat(number, 'f', -1, 64), true
		}
		if !ok {
			return Opinion{}, errors.New("a criterion is named by its text or its number")
		}
		out.Criteria = append(out.Criteria, loop.Criterion{Criterion: name, Met: c.Met, Evidence: c.Evidence})
	}
	return out, nil
}

// onlyKeys returns an error unless a value is an object with no keys but these.
func onlyKeys(name string, value any, keys ...string) error {
	object, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is not an object", name)
	}
	for key := range object {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("%s has a key %q", name, clip(key))
		}
	}
	return nil
}

var (
	decisionLine  = lazyregexp.New(`^(APPROVED|REJECTED)(?:[ \t]+([0-9A-Fa-f]+))?(?:[ \t]*:[ \t]*(.*))?$`)
	criterionLine = lazyregexp.New(`^[-*] \[([ xX])\] (\d+)[:.)] ?(.*)$`)
	fenceLine     = lazyregexp.New("^ {0,3}(`{3,}|~{3,})(.*)$")
)

// readText reads an answer in words. If later lines decide otherwise than the first, there is no decision. words is
// the number of lines that decide.
func readText(text string, criteria int) (r Opinion, words int) {
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t\r")
		if m := fenceLine().FindStringSubmatch(line); m != nil {
			switch {
			case fence == "":
				fence = m[1]
			case m[1][0] == fence[0] && len(m[1]) >= len(fence) && m[2] == "":
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue
		}
		if m := decisionLine().FindStringSubmatch(line); m != nil {
			words++
			d := Decision(m[1])
			switch {
			case words == 1:
				r.Decision, r.Hash, r.Note = d, m[2], m[3]
			case d != r.Decision:
				r.Why = "it says both APPROVED and REJECTED"
			case !strings.EqualFold(m[2], r.Hash):
				r.Why = "it names several hashes"
			}
			continue
		}
		if m := criterionLine().FindStringSubmatch(line); m != nil && len(r.Criteria) <= 2*criteria {
			r.Criteria = append(r.Criteria, loop.Criterion{Criterion: strings.TrimLeft(m[2], "0"), Met: m[1] != " ", Evidence: m[3]})
		}
	}
	return r, words
}
