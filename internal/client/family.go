package client

import (
	"errors"
	"fmt"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/kind"
)

// Family is what those have in common that people address in the same way: loops of any kind, or
// stewards.
type Family struct {
	Word                   string // loop
	show, again, ownGroups string // commands: to see one, to start one, and what has the others
}

// The families.
var (
	Loop    = Family{"loop", "pawl show", "pawl run", "pawl"}
	Steward = Family{"steward", "pawl steward show", "pawl steward up", "pawl steward"}
)

// Of returns the family of a kind.
func Of(k kind.Kind) Family {
	if k.Loop {
		return Loop
	}
	return Steward
}

// NotFound is the fault of what nobody knows.
func (f Family) NotFound(id string) *fault.Error {
	e := fault.New(fault.LoopNotFound, "there is no %s %s", f.Word, id)
	if f == Steward {
		return e.Advise("`pawl steward list` lists them; `" + f.again + " FILE` starts one.")
	}
	return e
}

// Naming returns a fault with commands in its advice that name whom it is about: the general advice of the table
// knows no ID. Every other error is returned as it is.
func (f Family) Naming(id string, err error) error {
	var general *fault.Error
	if !errors.As(err, &general) {
		return err
	}
	exact := strings.NewReplacer("`pawl show`", "`"+f.show+" "+id+"`", "`pawl diff`", "`pawl diff "+id+"`", "the loop", "the "+f.Word).Replace(general.Advice())
	if exact == general.Advice() {
		return err
	}
	return general.Advise(exact)
}

// runs says that a workflow of that type is of this family. One that a service does not name is.
func (f Family) runs(id, workflow string) error {
	k, known := kind.OfWorkflow(workflow)
	if other := Of(k); known && other != f {
		return fault.New(fault.LoopNotFound, "%s is a %s, not a %s", id, other.Word, f.Word).
			Advise(fmt.Sprintf("See it with `%s %s`; `%s --help` lists the other commands for a %s.", other.show, id, other.ownGroups, other.Word))
	}
	return nil
}

// over is the fault of a message to what has ended.
func (f Family) over(id, status string) *fault.Error {
	if status != "" {
		status = " (" + status + ")"
	}
	return fault.New(fault.GateClosed, "the %s %s has ended%s and takes no more messages", f.Word, id, status).
		Advise(fmt.Sprintf("See what came of it with `%s %s`, or start it again with `%s`.", f.show, id, f.again))
}
