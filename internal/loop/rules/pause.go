package rules

import (
	"fmt"
	"slices"

	"pawl/internal/fault"
	"pawl/internal/loop"
)

// pauses are the points at which a pause may begin, the soonest first, with the reply to its sender.
var pauses = []struct{ at, text string }{
	{loop.PauseNow, "pausing"},
	{loop.PauseStep, "pausing before the next step"},
	{loop.PauseIteration, "pausing before the next iteration"},
}

func soonness(boundary string) int {
	return slices.IndexFunc(pauses, func(p struct{ at, text string }) bool { return p.at == boundary })
}

// Sooner reports whether a pause at a begins before one at b.
func Sooner(a, b string) bool { return soonness(a) < soonness(b) }

// PauseDue reports whether a requested pause begins at the point that the loop has reached. A pause that should have
// begun sooner begins there too.
func PauseDue(s loop.State, boundary string) bool {
	return s.PauseRequested && soonness(s.PauseAt) <= soonness(boundary)
}

// pause asks a loop to pause. If two pauses are requested, the sooner one counts.
func pause(s loop.State, m loop.Message) (Reply, error) {
	n := soonness(m.Choice)
	switch {
	case n < 0:
		return Reply{}, fault.New(fault.InvalidMessage, "a loop can't pause before %q", clip(m.Choice)).
			Advise(fmt.Sprintf("Leave `choice` out to pause now, or choose %s or %s.", loop.PauseStep, loop.PauseIteration))
	case s.Status == loop.Paused && !ofSteward(s, s.PausedBy) || PauseDue(s, m.Choice), s.Status == loop.Paused && ofSteward(s, m.By):
		if s.Status != loop.Paused {
			return Reply{Text: "a pause is requested already"}, nil
		}
		return Reply{Text: "already paused"}, nil
	}
	text := pauses[n].text
	if m.Choice == loop.PauseNow && s.Gate != nil { // its answer may end the loop
		text += " if the loop goes on"
	}
	reply := received(loop.MessagePause, m, text, "")
	reply.Events[0].How = m.Choice
	return reply, nil
}

// ofSteward reports whether a message is from the steward that started the loop.
func ofSteward(s loop.State, person string) bool {
	return s.Steward != "" && person == loop.StewardName(s.Steward)
}
