package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/agents"
)

// Limits of a loop's patience with a provider that refuses work.
const (
	// mostRefusals is how many refusals in a row, each with a known end, a call may have before a person is asked.
	mostRefusals = 20
	// cut is added to the end of a rate limit, because programs may report it without its fraction of a second.
	cut = time.Second
)

// backoff is how long the loop sleeps after each refusal in a row without a known end. Then a person is asked.
var backoff = []time.Duration{30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}

// Patience is what follows a refused call: the loop sleeps until a time, or asks a person.
type Patience struct {
	Until time.Time
	Ask   string // why a person is asked, "" if the loop sleeps
}

// AfterRefusal decides what follows a call of an agent that its provider has refused for the nth time in a row.
func AfterRefusal(a spec.Agent, class result.Class, r api.Refused, times int, now time.Time) Patience {
	said := cmp.Or(r.Said, "it does not say why")
	if r.Status != 0 && !strings.Contains(said, fmt.Sprint(r.Status)) {
		said = fmt.Sprintf("%d %s", r.Status, said)
	}
	often := "refused " + metric.Counted(times, "time") + " in a row"
	switch {
	case r.Printed:
		return Patience{Ask: fmt.Sprintf("the agent printed an error of its provider (%s), reported success and changed nothing: answer %s once it works again", said, Retry)}
	case class == result.AuthMissing:
		return Patience{Ask: fmt.Sprintf("%s can't sign in to its provider (%s): %s, then answer %s", a.Use, said, signIn(a.Use), Retry)}
	case r.Until.After(now) && times <= mostRefusals:
		return Patience{Until: r.Until.Add(cut)}
	case r.Until.After(now):
		return Patience{Ask: fmt.Sprintf("the rate limit of %s does not end (%s, %s): answer %s to try it again", a.Use, said, often, Retry)}
	case times <= len(backoff):
		return Patience{Until: now.Add(backoff[times-1])}
	case class == result.RateLimited:
		return Patience{Ask: fmt.Sprintf("the rate limit of %s is used up, and nobody knows when it ends (%s, %s): answer %s once it has ended", a.Use, said, often, Retry)}
	}
	return Patience{Ask: fmt.Sprintf("the provider of %s does not answer as it should (%s, %s): answer %s once it works again", a.Use, said, often, Retry)}
}

// GoOn is a person's choice after an agent was not allowed to use a tool: its work without the tool is judged.
const GoOn = "go-on"

// AfterDenial returns what a person is asked after a call in which an agent was not allowed to use some tools, "" if
// nobody is asked. Nobody is asked about a role that may not edit: it has fewer tools, whatever the contract approves.
func AfterDenial(s spec.Spec, role, phase string, tools []string) string {
	if len(tools) == 0 || !s.AsksOfTools() || !slices.Contains(Needs(phase), spec.CanEditSource) || Permit(s, role, spec.CanEditSource) != nil {
		return ""
	}
	return fmt.Sprintf("the %s was not allowed to use %s: amend approvals.tools to call it again, or answer %s to have its work judged as it is", role, strings.Join(tools, ", "), GoOn)
}

// signIn returns the advice for an agent without valid credentials.
func signIn(use string) string {
	p, _ := agents.Lookup(use)
	if len(p.Keys) == 0 {
		return "give it its credentials, in agent.env or in its own settings"
	}
	text := "set " + spec.Or(p.Keys) + " for the worker"
	if p.Login != "" {
		text += ", or sign in with `" + p.Login + "` as the user that the worker runs as"
	}
	return text
}
