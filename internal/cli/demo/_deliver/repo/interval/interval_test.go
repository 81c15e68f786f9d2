package interval

import (
	"fmt"
	"testing"
)

// spans reads intervals as people write them.
func spans(t *testing.T, texts ...string) (all []Interval) {
	t.Helper()
	for _, text := range texts {
		i, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, i)
	}
	return all
}

func equal(t *testing.T, got, want []Interval) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParseRefusesWhatIsNoSpan(t *testing.T) {
	for _, text := range []string{"", "9", "10:00-09:00", "09:61-10:00", "23:00-25:00", "-1:00-02:00"} {
		if i, err := Parse(text); err == nil {
			t.Errorf("%q was read as %v", text, i)
		}
	}
}

func TestMergeSorts(t *testing.T) {
	equal(t, Merge(spans(t, "14:00-15:00", "09:00-10:00")), spans(t, "09:00-10:00", "14:00-15:00"))
}

func TestMergeJoinsWhatOverlaps(t *testing.T) {
	equal(t, Merge(spans(t, "09:00-10:30", "10:00-11:00")), spans(t, "09:00-11:00"))
}

func TestMergeJoinsWhatTouches(t *testing.T) {
	equal(t, Merge(spans(t, "09:00-10:00", "10:00-11:00")), spans(t, "09:00-11:00"))
}

func TestMergeKeepsTheLongerOne(t *testing.T) {
	equal(t, Merge(spans(t, "09:00-12:00", "10:00-10:30")), spans(t, "09:00-12:00"))
}

func TestFreeIsWhatNobodyTakes(t *testing.T) {
	day := spans(t, "08:00-18:00")[0]
	equal(t, Free(day, spans(t, "09:00-10:00", "17:00-19:00", "07:00-08:30")), spans(t, "08:30-09:00", "10:00-17:00"))
}

func TestFreeOffersNothingDuringALongMeeting(t *testing.T) {
	day := spans(t, "08:00-18:00")[0]
	equal(t, Free(day, spans(t, "09:00-12:00", "10:00-10:30")), spans(t, "08:00-09:00", "12:00-18:00"))
}
