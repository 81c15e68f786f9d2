package client

import (
	"fmt"

	"pawl/internal/fault"
	"pawl/internal/spec/kind"
)

// Family is a group of workflows that people address in the same way: loops of any kind, or stewards.
type Family struct {
	Word                   string // loop
	show, again, ownGroups string // commands: to see one, to start one again, and the group with its other commands
	end                    string // the command that ends one
}

// The families.
var (
	Loop    = Family{"loop", "pawl show", "pawl run", "pawl", "pawl halt"}
	Steward = Family{"steward", "pawl steward show", "pawl steward up", "pawl steward", "pawl steward stop"}
)

// Of returns the family of a kind.
func Of(k kind.Kind) Family {
	if k.Loop {
		return Loop
	}
	return Steward
}

// NotFound returns the fault for an ID that nobody knows.
func (f Family) NotFound(id string) *fault.Error {
	e := fault.New(fault.LoopNotFound, "there is no %s %s", f.Word, id)
	if f == Steward {
		return e.Advise("`pawl steward list` lists them; `" + f.again + " FILE` starts one.")
	}
	return e
}

// About returns an error whose advice, if it is general, has the commands for this ID.
func (f Family) About(id string, err error) error {
	if f == Steward {
		return fault.About(fault.Steward(id), err)
	}
	return fault.About(fault.Loop(id), err)
}

// runs returns nil if a workflow of that type is of this family, or if the type is unknown, else a fault.
func (f Family) runs(id, workflow string) error {
	k, ok := kind.OfWorkflow(workflow)
	if actual := Of(k); ok && actual != f {
		return fault.New(fault.LoopNotFound, "%s is a %s, not a %s", id, actual.Word, f.Word).
			Advise(fmt.Sprintf("See it with `%s %s`; `%s --help` lists the other commands for a %s.", actual.show, id, actual.ownGroups, actual.Word))
	}
	return nil
}

// over returns the fault for a message to a loop or steward that has ended.
func (f Family) over(id, status string) *fault.Error {
	if status != "" {
		status = " (" + status + ")"
	}
	return fault.New(fault.GateClosed, "the %s %s has ended%s and takes no more messages", f.Word, id, status).
		Advise(fmt.Sprintf("See what came of it with `%s %s`, or start it again with `%s`.", f.show, id, f.again))
}
