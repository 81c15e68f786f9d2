package govern

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pawl/internal/act"
	"pawl/internal/evidence"
	"pawl/internal/outcome"
	"pawl/internal/program"
	"pawl/internal/spec"
)

// The bounds of a loop's patience with a provider that does not let its agent work.
const (
	// mostRefusals is how often in a row a call is refused until a time that is known before a person is asked.
	mostRefusals = 20
	// cut is what programs may leave out of that time.
	cut = time.Second
)

// backoff is how long the loop sleeps after each refusal in a row of which nobody knows when it ends. Then a person is
// asked.
var backoff = []time.Duration{30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}

// Patience is what follows a call that was refused: the loop sleeps until then, or asks a person.
type Patience struct {
	Until time.Time
	Ask   string // why a person is asked, "" where the loop sleeps
}

// AfterRefusal decides what follows a call of an agent that its provider has refused for the nth time in a row.
func AfterRefusal(a spec.Agent, class outcome.Class, r act.Refused, times int, now time.Time) Patience {
	said := cmp.Or(r.Said, "it does not say why")
	if r.Status != 0 && !strings.Contains(said, fmt.Sprint(r.Status)) {
		said = fmt.Sprintf("%d %s", r.Status, said)
	}
	often := "refused " + evidence.Counted(times, "time") + " in a row"
	switch {
	case class == outcome.AuthMissing:
		return Patience{Ask: fmt.Sprintf("%s can't sign in to its provider (%s): %s, then answer %s", a.Use, said, signIn(a.Use), Retry)}
	case r.Until.After(now) && times <= mostRefusals:
		return Patience{Until: r.Until.Add(cut)}
	case r.Until.After(now):
		return Patience{Ask: fmt.Sprintf("the rate limit of %s does not end (%s, %s): answer %s to try it again", a.Use, said, often, Retry)}
	case times <= len(backoff):
		return Patience{Until: now.Add(backoff[times-1])}
	case class == outcome.RateLimited:
		return Patience{Ask: fmt.Sprintf("the rate limit of %s is used up, and it is not known until when (%s, %s): answer %s once it has ended", a.Use, said, often, Retry)}
	}
	return Patience{Ask: fmt.Sprintf("the provider of %s does not answer as it should (%s, %s): answer %s once it works again", a.Use, said, often, Retry)}
}

// GoOn is what a person may choose where an agent was not allowed to use a tool: what it did without is judged.
const GoOn = "go-on"

// AfterDenial is what a person is asked after a call in which an agent was not allowed to use some tools, "" where nobody
// is: a role that may not edit is held to fewer tools whatever the contract approves.
func AfterDenial(s spec.Spec, role, phase string, tools []string) string {
	if len(tools) == 0 || !s.AsksOfTools() || !slices.Contains(Needs(phase), spec.CanEditSource) || Permit(s, role, spec.CanEditSource) != nil {
		return ""
	}
	return fmt.Sprintf("the %s was not allowed to use %s: amend approvals.tools to call it again, or answer %s to have its work judged as it is", role, strings.Join(tools, ", "), GoOn)
}

// signIn says what to set for an agent that nobody knows.
func signIn(use string) string {
	p, _ := program.Lookup(use)
	if len(p.Keys) == 0 {
		return "give it its credentials, in agent.env or in its own settings"
	}
	text := "set " + spec.Or(p.Keys) + " for the worker"
	if p.Login != "" {
		text += ", or sign in with `" + p.Login + "` as the user that the worker runs as"
	}
	return text
}
