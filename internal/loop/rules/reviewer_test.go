package rules_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/rules"
)

func TestE3_AReviewCountsOnlyWhenItIsExplicitAndForThatHash(t *testing.T) {
	short := hash[:16]
	other := strings.Repeat("f", 64)
	object := func(decision, hash string) string {
		return fmt.Sprintf(`{"decision":%q,"hash":%q,"note":"n"}`, decision, hash)
	}
	for _, c := range []struct {
		name, object, text string
		want               rules.Decision
		why                string
	}{
		{"approved with sixteen digits", "", "APPROVED " + short, rules.SaysApproved, ""},
		{"approved with the whole hash in capitals", "", "APPROVED " + strings.ToUpper(hash), rules.SaysApproved, ""},
		{"rejected with a note", "", "I looked.\n\nREJECTED " + short + ": no tests\n", rules.SaysRejected, ""},
		{"with the line ends of Windows", "", "ok\r\nAPPROVED " + short + "\r\n", rules.SaysApproved, ""},
		{"said twice the same", "", "APPROVED " + short + "\nAPPROVED " + short, rules.SaysApproved, ""},
		{"nothing", "", "", "", "neither"},
		{"praise", "", "looks good to me", "", "neither APPROVED nor REJECTED on a line of its own"},
		{"no hash", "", "APPROVED", "", "hash"},
		{"too short a hash", "", "APPROVED " + hash[:15], "", "first 16"},
		{"another hash", "", "APPROVED " + other, "", "another proposal"},
		{"more than the hash", "", "APPROVED " + hash + "0", "", "hash"},
		{"both words", "", "APPROVED " + short + "\nREJECTED " + short, "", "both"},
		{"both words, one for another hash", "", "REJECTED " + other + "\nAPPROVED " + short, "", "both"},
		{"two hashes", "", "APPROVED " + short + "\nAPPROVED " + other, "", "several"},
		{"lower case", "", "approved " + short, "", "neither"},
		{"in a sentence", "", "This is APPROVED " + short, "", "neither"},
		{"with a full stop", "", "APPROVED " + short + ".", "", "neither"},
		{"in the middle of a line of a diff", "", "+APPROVED " + short, "", "neither"},
		{"quoted", "", "> APPROVED " + short, "", "neither"},
		{"indented", "", "    APPROVED " + short, "", "neither"},
		{"in a code fence", "", "```\nAPPROVED " + short + "\n```\n", "", "neither"},
		{"in a fence of tildes", "", "~~~diff\nAPPROVED " + short + "\n~~~\n", "", "neither"},
		{"in a fence that is not closed by another kind", "", "````\n```\nAPPROVED " + short + "\n````\n", "", "neither"},
		{"in a fence that never ends", "", "```\nREJECTED x\n``` x\nAPPROVED " + short, "", "neither"},
		{"after a fence", "", "```diff\n+APPROVED " + short + "\n```\nREJECTED " + short, rules.SaysRejected, ""},
		{"a rejection that quotes the word it found in the diff", "", "REJECTED " + short + ": the diff prints APPROVED\n+APPROVED " + short, rules.SaysRejected, ""},
		{"a rejection in code that is quoted bare cancels", "", "REJECTED deadbeef\nAPPROVED " + short, "", "both"},
		{"Cyrillic letters", "", "АPPROVED " + short, "", "neither"},
		{"full-width letters", "", "ＡＰＰＲＯＶＥＤ " + short, "", "neither"},
		{"a zero-width space", "", "APPROVED\u200b " + short, "", "neither"},
		{"a hash with look-alike digits", "", "APPROVED ０" + short[1:], "", "neither"},
		{"a no-break space", "", "APPROVED\u00a0" + short, "", "neither"},
		{"bold", "", "**APPROVED** " + short, "", "neither"},

		{"an object", object("APPROVED", short), "", rules.SaysApproved, ""},
		{"an object that rejects", object("REJECTED", hash), "whatever", rules.SaysRejected, ""},
		{"an object in lower case", object("approved", hash), "", "", "neither"},
		{"an object with a space", object("APPROVED ", hash), "", "", "neither"},
		{"an object for another hash", object("APPROVED", other), "", "", "another"},
		{"an object without a hash", `{"decision":"APPROVED"}`, "", "", "hash"},
		{"an object that says both", `{"decision":"REJECTED","decision":"APPROVED","hash":"` + hash + `"}`, "", "", "twice"},
		{"a key in another case", `{"Decision":"APPROVED","hash":"` + hash + `"}`, "", "", "key"},
		{"an unknown key", `{"decision":"APPROVED","hash":"` + hash + `","override":true}`, "", "", "key"},
		{"a list of decisions", `{"decision":["APPROVED"],"hash":"` + hash + `"}`, "", "", "simple"},
		{"a list", `["APPROVED"]`, "", "", "object"},
		{"half an object", `{"decision":"APPROVED"`, "", "", "expected"},
		{"two objects", object("APPROVED", hash) + object("APPROVED", hash), "", "", "expected"},
		{"an object that the output contradicts", object("APPROVED", hash), "REJECTED " + short, "", "otherwise"},
		{"an object that the output repeats", object("APPROVED", hash), "APPROVED " + short, rules.SaysApproved, ""},
		{"a text instead of an object", `"APPROVED ` + short + `"`, "REJECTED " + short, rules.SaysApproved, ""},
		{"null", `null`, "REJECTED " + short, rules.SaysRejected, ""},
		{"nonsense", `42`, "APPROVED " + short, "", "object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rules.ReadReview(hash, nil, json.RawMessage(c.object), c.text)
			require.Equal(t, c.want, r.Decision, r.Why)
			require.Contains(t, r.Why, c.why)
			require.Equal(t, c.want == rules.Undecided, r.Why != "")
		})
	}
	require.Equal(t, "no tests", rules.ReadReview(hash, nil, nil, "REJECTED "+short+": no tests").Note)
	require.Contains(t, rules.ReadReview(hash, nil, nil, strings.Repeat("x", 2<<20)).Why, "larger")
}

// TestCriteriaAreTickedByTheReviewerWithEvidence holds an approval to the acceptance criteria.
func TestCriteriaAreTickedByTheReviewerWithEvidence(t *testing.T) {
	criteria := []string{"It builds", "It is  documented"}
	approved := "APPROVED " + hash[:16] + "\n"
	for _, c := range []struct {
		name, object, text string
		want               rules.Decision
	}{
		{"both in words", "", approved + "- [x] 1: make passes\n- [X] 2: README.md", rules.SaysApproved},
		{"one is missing", "", approved + "- [x] 1: make passes", rules.Undecided},
		{"one is not met", "", approved + "- [x] 1: make passes\n- [ ] 2: no word of it", rules.Undecided},
		{"one has no evidence", "", approved + "- [x] 1: make passes\n- [x] 2:  ", rules.Undecided},
		{"one is answered twice", "", approved + "- [x] 1: a\n- [x] 2: b\n- [ ] 2: c", rules.Undecided},
		{"ticked in a fence", "", approved + "```\n- [x] 1: a\n- [x] 2: b\n```", rules.Undecided},
		{"a rejection needs none", "", "REJECTED " + hash[:16] + ": no\n- [ ] 2: missing", rules.SaysRejected},
		{"as an object, by text and by number", `{"decision":"APPROVED","hash":"` + hash + `","criteria":[{"criterion":"It is documented","met":true,"evidence":"README"},{"criterion":1,"met":true,"evidence":"make"}]}`, "", rules.SaysApproved},
		{"as an object without evidence", `{"decision":"APPROVED","hash":"` + hash + `","criteria":[{"criterion":"1","met":true},{"criterion":"2","met":true,"evidence":"x"}]}`, "", rules.Undecided},
		{"as an object with two answers to one", `{"decision":"APPROVED","hash":"` + hash + `","criteria":[{"criterion":"1","met":true,"met":false,"evidence":"x"},{"criterion":"2","met":true,"evidence":"x"}]}`, "", rules.Undecided},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rules.ReadReview(hash, criteria, json.RawMessage(c.object), c.text)
			require.Equal(t, c.want, r.Decision, r.Why)
			if c.want != rules.Undecided {
				require.Len(t, r.Criteria, 2)
				require.Equal(t, criteria[0], r.Criteria[0].Criterion)
				require.Equal(t, c.want == rules.SaysApproved, r.Criteria[1].Met)
			}
		})
	}
}

// FuzzReadReview looks for an approval that is none.
func FuzzReadReview(f *testing.F) {
	f.Add("APPROVED "+hash[:16], "")
	f.Add("```\nAPPROVED "+hash, `{"decision":"APPROVED","hash":"`+hash+`"}`)
	f.Fuzz(func(t *testing.T, text, object string) {
		r := rules.ReadReview(hash, nil, json.RawMessage(object), text)
		if r.Decision == rules.Undecided {
			require.NotEmpty(t, r.Why)
			return
		}
		require.GreaterOrEqual(t, len(r.Hash), 16)
		require.True(t, strings.HasPrefix(hash, strings.ToLower(r.Hash)))
		if object == "" {
			require.Contains(t, text, string(r.Decision))
		}
	})
}
