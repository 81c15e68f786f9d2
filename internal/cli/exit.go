package cli

import (
	"context"
	"errors"
	"fmt"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

// The exit codes of the contract.
const (
	exitOK          = 0
	exitInternal    = 1
	exitUsage       = 2
	exitFailed      = 3
	exitGate        = 4
	exitInterrupted = 5
	exitBudget      = 6
)

// exitMeanings is the explanation of the exit codes for people.
var exitMeanings = [...]string{
	exitOK:          "done; the loop completed",
	exitInternal:    "an internal error, or Temporal or a worker does not answer",
	exitUsage:       "wrong usage, an invalid spec, a refused message",
	exitFailed:      "the loop failed",
	exitGate:        "a gate opened and there is no terminal to answer at; the loop waits",
	exitInterrupted: "interrupted: halted, cancelled, rejected",
	exitBudget:      "a budget is used up",
}

func exitTable() string {
	table := "Exit codes:"
	for code, meaning := range exitMeanings {
		table += fmt.Sprintf("\n  %d  %s", code, meaning)
	}
	return table
}

// leaving ends a command with an exit code of its own, and with a last message if the user has not seen it yet.
type leaving struct {
	code int
	why  string
}

func (l *leaving) Error() string { return l.why }

// errInterrupted is a signal that arrived before there was a loop to end.
var errInterrupted = &leaving{code: exitInterrupted, why: "interrupted"}

// ended returns how a command ends after its loop ended with that status and code; nil for exit code 0.
func ended(status loop.Status, code fault.Code) error {
	if exit := rules.ExitCode(status, code); exit != exitOK {
		return &leaving{code: exit}
	}
	return nil
}

// usageError is a command line that was not understood.
type usageError struct{ what, of string } // of is the command whose help says more

func (u *usageError) Error() string { return u.what }

func usage(text string) error { return &usageError{what: text} }

// exitCode returns the exit code of the process for an error. No other code decides this.
func exitCode(err error) int {
	var left *leaving
	var misused *usageError
	var problems spec.Problems
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &left):
		return left.code
	case errors.As(err, &misused), errors.As(err, &problems):
		return exitUsage
	}
	if kind, ok := fault.Lookup(fault.CodeOf(err)); ok {
		return kind.Exit
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	return exitInternal
}
