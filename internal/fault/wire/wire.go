// Package wire carries faults between workflows, activities and clients. A fault travels as data, in the details of an
// ApplicationError, and nobody has to parse a text. The package decides nothing. Start at Encode and Decode.
package wire

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"pawl/internal/fault"
)

// Encode returns the error with which an activity, an update or a workflow fails for a fault. Its type is the fault's
// code, and it is never retried. A result, unless nil, comes first in the details, as the contract says for loops that
// failed.
func Encode(f *fault.Error, result any) error {
	sent := *f.Settled()
	details := []any{sent}
	if result != nil {
		details = []any{result, sent}
	}
	return temporal.NewNonRetryableApplicationError(f.Error(), string(f.Code), nil, details...)
}

// Refusal encodes the fault in err. It returns err itself if there is none, and nil for nil.
func Refusal(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return Encode(f, nil)
	}
	return err
}

// Decode returns the fault in err, in its own form or encoded. An ApplicationError of another program may have a code
// as its type and carry no fault: it becomes a fault with its message. Decode returns nil for every other error.
func Decode(err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	var app *temporal.ApplicationError
	if !errors.As(err, &app) {
		return nil
	}
	code := fault.Code(app.Type())
	for _, f := range details(app) {
		if f.Code == code && code != "" {
			return &f
		}
	}
	if _, known := fault.Lookup(code); known {
		return fault.New(code, "%s", app.Message())
	}
	return nil
}

// Is reports whether err has a fault with that code.
func Is(err error, code fault.Code) bool {
	f := Decode(err)
	return f != nil && f.Code == code
}

// details returns the possible faults in the details: the first and the second detail.
func details(app *temporal.ApplicationError) (found []fault.Error) {
	var first, second any // the SDK panics if it must read a value of its own process as another type
	_ = app.Details(&first)
	_ = app.Details(&first, &second)
	for _, detail := range []any{first, second} {
		switch v := detail.(type) {
		case fault.Error:
			found = append(found, v)
		case map[string]any:
			text := func(key string) string { s, _ := v[key].(string); return s }
			found = append(found, fault.Error{Code: fault.Code(text("code")), What: text("what"), Do: text("advice"), Cause: fault.Code(text("cause")), Step: text("step")})
		}
	}
	return found
}
