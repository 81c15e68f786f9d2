package act

// Attributes are what the code around activities has to know about one of them.
type Attributes struct {
	// Urgency says in which order activities start when more of them wait than a worker has slots: 1 is first, and 3
	// is Temporal's default for an activity without one. Running loops go before a new loop, work of milliseconds
	// before work of minutes, and agents are last.
	Urgency int

	Step     bool // runs one command or agent, under a limit that its supervisor measures
	OwnLimit bool // a step that keeps its own limit if the loop has less time left, so the last change is judged
	Agent    bool // a step that asks an agent: it spends all budgets, appends pending events, may have its own slots

	MakesDesk bool // brings the desk to the head before it begins, unless its input says to leave it as it is
	NeedsDesk bool // needs what is on the desk: it is impossible if the desk is lost

	AnyHost bool // any host can do it, unless the spec names one
	Brief   bool // a short question to a host: a host that does not answer soon is down or asleep
}

var attributes = map[string]Attributes{
	CallName:     {Urgency: 4, Step: true, Agent: true, MakesDesk: true},
	CheckName:    {Urgency: 3, Step: true, MakesDesk: true},
	VerifyName:   {Urgency: 3, Step: true, OwnLimit: true},
	GuardName:    {Urgency: 3, Step: true},
	TestName:     {Urgency: 3, Step: true},
	CanaryName:   {Urgency: 3, Step: true},
	ProgressName: {Urgency: 1, Brief: true},

	CommitName:  {Urgency: 2, NeedsDesk: true},
	TakeName:    {Urgency: 2},
	SettleName:  {Urgency: 2},
	RecordName:  {Urgency: 2},
	ProposeName: {Urgency: 2},
	CloseName:   {Urgency: 2},

	OpenName:  {Urgency: 4, AnyHost: true},
	PlaceName: {Urgency: 1, AnyHost: true},
}

// Of returns the attributes of an activity, the zero value for a name without any.
func Of(name string) Attributes { return attributes[name] }
