package act

// Attributes are what the envelopes around an activity have to know of it.
type Attributes struct {
	// Urgency is in which order activities start where more wait than a worker has slots for: 1 is first,
	// 3 is Temporal's own for those without one. Before a new loop is opened those under way go on, what
	// takes milliseconds before what takes minutes, and last of all agents.
	Urgency int

	Step     bool // runs one thing, under a limit that its supervisor measures
	OwnLimit bool // a step that keeps its limit where the loop has less time left: what the last of the time has made is still judged
	Agent    bool // a step that asks an agent: it spends all budgets, appends what is pending, and may have slots of its own

	MakesDesk bool // brings the desk to the head before it begins, unless it is to take it as it is
	NeedsDesk bool // takes what is on the desk: it can't be done where the desk is lost

	AnyHost bool // is done by any host, unless the spec names one
	Brief   bool // asks a host something: one that does not answer soon is down or asleep
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

// Of returns the attributes of an activity. One with nothing particular has none.
func Of(name string) Attributes { return attributes[name] }
