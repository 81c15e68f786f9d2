package govern

import (
	"slices"
	"strings"
	"time"

	"pawl/internal/act"
	"pawl/internal/outcome"
	"pawl/internal/spec"
)

const (
	// worthWaiting is how long a rate limit may last for which no other agent is asked: the loop sleeps until its end.
	worthWaiting = 5 * time.Minute
	// rest is how long an agent is not asked first whose provider refuses work until nobody knows when.
	rest = 15 * time.Minute
)

// Eligible returns which agents of a role's chain may make its calls, in order, by their place. Where a reviewer has to be
// of another vendor, those of the vendors that have written are not among them.
func Eligible(s spec.Spec, role string, writers []string) (places []int) {
	for i, a := range s.Agent.Chain(role) {
		if !s.Reviewer.OtherVendor || role != spec.RoleReviewer || !slices.Contains(writers, a.Maker()) {
			places = append(places, i)
		}
	}
	return places
}

// NextAgent returns the place of the agent that makes a call: the first that has not been refused in this round and is
// not known to be refused, else the first that has not been refused in this round. ok is false where all of them have.
func NextAgent(chain []spec.Agent, eligible, refused []int, refusing map[string]time.Time, now time.Time) (place int, ok bool) {
	left := slices.DeleteFunc(slices.Clone(eligible), func(i int) bool { return slices.Contains(refused, i) })
	for _, i := range left {
		if !refusing[Name(chain[i])].After(now) {
			return i, true
		}
	}
	if len(left) == 0 {
		return 0, false
	}
	return left[0], true
}

// Name is what an agent of a chain is called in events.
func Name(a spec.Agent) string { return strings.Join(a.Label(), " ") }

// PassesOn reports whether another agent is asked at once where this is why one was refused. A limit that ends soon is
// waited for.
func PassesOn(class outcome.Class, r act.Refused, now time.Time) bool {
	return class != outcome.RateLimited || !r.Until.After(now) || r.Until.Sub(now) > worthWaiting
}

// RestsUntil is until when an agent that was refused is not asked first.
func RestsUntil(r act.Refused, now time.Time) time.Time {
	if r.Until.After(now) {
		return r.Until
	}
	return now.Add(rest)
}

// Gentlest returns which of the refusals of a whole chain the loop waits for: the one that ends first, where that is
// known; else one that may end by itself; else the first, for which a person is asked.
func Gentlest(refused []act.Outcome) int {
	best := 0
	for i, o := range refused {
		b := refused[best]
		known, bestKnown := !o.Refused.Until.IsZero(), !b.Refused.Until.IsZero()
		switch {
		case known && (!bestKnown || o.Refused.Until.Before(b.Refused.Until)):
			best = i
		case !known && !bestKnown && b.Class == outcome.AuthMissing && o.Class != outcome.AuthMissing:
			best = i
		}
	}
	return best
}
