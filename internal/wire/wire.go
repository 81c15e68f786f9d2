// Package wire carries faults between workflows, activities and clients. A fault travels as data, in
// the details of an ApplicationError, and never as text to be cut apart. It decides nothing. Start at
// Encode and Decode.
package wire

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"pawl/internal/fault"
)

// carried is a fault as it stands in the details.
type carried struct {
	Code   fault.Code `json:"code"`
	What   string     `json:"what"`
	Advice string     `json:"advice,omitempty"` // where it is more exact than the table's
	Cause  fault.Code `json:"cause,omitempty"`
}

// Encode returns the error by which an activity, an update or a workflow fails with a fault: its type
// is the code, and nobody retries it. A result, unless nil, comes first in the details, as the
// contract has it for loops that failed.
func Encode(f *fault.Error, result any) error {
	details := []any{carried{f.Code, f.What, f.Do, f.Cause}}
	if result != nil {
		details = []any{result, details[0]}
	}
	return temporal.NewNonRetryableApplicationError(f.Error(), string(f.Code), nil, details...)
}

// Refusal returns what Encode makes of the fault in err, and err itself where it is none. Nil stays
// nil.
func Refusal(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return Encode(f, nil)
	}
	return err
}

// Decode returns the fault in err: as it is, or as the other side encoded it. An ApplicationError
// whose type is a code and that carries no fault, as another program may make it, is one with its
// message. It is nil for every other error.
func Decode(err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	var app *temporal.ApplicationError
	if !errors.As(err, &app) {
		return nil
	}
	code := fault.Code(app.Type())
	for _, c := range details(app) {
		if c.Code == code && code != "" {
			return &fault.Error{Code: c.Code, What: c.What, Do: c.Advice, Cause: c.Cause}
		}
	}
	if _, known := fault.Lookup(code); known {
		return fault.New(code, "%s", app.Message())
	}
	return nil
}

// Is reports whether err carries a fault of that code.
func Is(err error, code fault.Code) bool {
	f := Decode(err)
	return f != nil && f.Code == code
}

// details returns what may be a fault in the details: the first or the second of them.
func details(app *temporal.ApplicationError) (found []carried) {
	var first, second any // the SDK panics where it is to read a value of its own process as another type
	_ = app.Details(&first)
	_ = app.Details(&first, &second)
	for _, detail := range []any{first, second} {
		switch v := detail.(type) {
		case carried:
			found = append(found, v)
		case map[string]any:
			text := func(key string) string { s, _ := v[key].(string); return s }
			found = append(found, carried{fault.Code(text("code")), text("what"), text("advice"), fault.Code(text("cause"))})
		}
	}
	return found
}
