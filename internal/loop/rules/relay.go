package rules

import (
	"slices"
	"strings"
	"time"

	"pawl/internal/lib/list"
	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/spec"
)

const (
	// worthWaiting is the longest time for which the loop sleeps until a rate limit ends. If it lasts longer, another
	// agent is asked.
	worthWaiting = 5 * time.Minute
	// rest is for how long a refused agent is not asked first, if nobody knows when its provider accepts work again.
	rest = 15 * time.Minute
)

// Eligible returns the agents of a role's chain that may make its calls, as indexes into the chain, in order. If the
// reviewer must be of another vendor (reviewer.otherVendor), agents of the writers' vendors are not eligible.
func Eligible(s spec.Spec, role string, writers []string) (places []int) {
	for i, a := range s.Agent.Chain(role) {
		if !s.Reviewer.OtherVendor || role != spec.RoleReviewer || !slices.Contains(writers, a.Maker()) {
			places = append(places, i)
		}
	}
	return places
}

// NextAgent returns the index of the agent that makes a call. It is the first that has not been refused in this round
// and is not known to be refused, else the first that has not been refused in this round. ok is false if all have
// been refused.
func NextAgent(chain []spec.Agent, eligible, refused []int, refusing map[string]time.Time, now time.Time) (place int, ok bool) {
	left := list.Filter(eligible, func(i int) bool { return !slices.Contains(refused, i) })
	place, ok = list.First(left, func(i int) bool { return !refusing[Name(chain[i])].After(now) })
	if !ok && len(left) > 0 {
		return left[0], true
	}
	return place, ok
}

// Name returns the name of a chain's agent in events.
func Name(a spec.Agent) string { return strings.Join(a.Label(), " ") }

// PassesOn reports whether another agent is asked at once after one was refused for this reason. If a rate limit ends
// soon, the loop waits instead.
func PassesOn(class result.Class, r api.Refused, now time.Time) bool {
	return class != result.RateLimited || !r.Until.After(now) || r.Until.Sub(now) > worthWaiting
}

// RestsUntil returns the time until which an agent that was refused is not asked first.
func RestsUntil(r api.Refused, now time.Time) time.Time {
	if r.Until.After(now) {
		return r.Until
	}
	return now.Add(rest)
}

// Gentlest returns the index of the refusal that the loop waits for after a whole chain was refused: the one that
// ends first, if that is known; else one that may end by itself; else the first, for which a person is asked.
func Gentlest(refused []api.Outcome) int {
	best := 0
	for i, o := range refused {
		b := refused[best]
		hasTime, bestKnown := !o.Refused.Until.IsZero(), !b.Refused.Until.IsZero()
		switch {
		case hasTime && (!bestKnown || o.Refused.Until.Before(b.Refused.Until)):
			best = i
		case !hasTime && !bestKnown && b.Class == result.AuthMissing && o.Class != result.AuthMissing:
			best = i
		}
	}
	return best
}
