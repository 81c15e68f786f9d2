package wire_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
)

// sent returns an error as the other side receives it: through the converters of client and worker.
func sent(err error) error {
	c := temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: converter.GetDefaultDataConverter()})
	return c.FailureToError(c.ErrorToFailure(err))
}

func TestAFaultArrivesAsItWasSent(t *testing.T) {
	full := fault.New(fault.HashMismatch, "the hash is another one\nin two lines").Advise("Look.\nThen approve.")
	full.Cause, full.Step = fault.CycleTermination, fault.Setup
	for name, f := range map[string]*fault.Error{
		"with everything":         full,
		"with the table's advice": fault.New(fault.GateClosed, "no gate is open"),
		"without a word":          fault.New(fault.Cancelled, ""),
	} {
		for way, err := range map[string]error{
			"as it is":               f,
			"within a process":       wire.Encode(f, nil),
			"between processes":      sent(wire.Encode(f, nil)),
			"with a result":          wire.Encode(f, loop.Result{ExitStatus: "interrupted"}),
			"with a result, between": sent(wire.Encode(f, &loop.Result{ExitStatus: "interrupted", ErrorCode: string(f.Code)})),
			"wrapped":                fmt.Errorf("applying: %w", sent(wire.Encode(f, nil))),
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				require.Equal(t, f, wire.Decode(err))
				require.True(t, wire.Is(err, f.Code))
				require.False(t, wire.Is(err, fault.LedgerAhead))
			})
		}
	}
}

func TestTheResultOfAFailedLoopComesFirst(t *testing.T) {
	err := sent(wire.Encode(fault.New(fault.TestFailed, "tests fail"), &loop.Result{ExitStatus: "interrupted", Iterations: 3}))
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	var result loop.Result
	require.NoError(t, app.Details(&result))
	require.Equal(t, 3, result.Iterations)
	require.Equal(t, "ALO_TEST_FAILED", app.Type())
	require.True(t, app.NonRetryable())
	require.Contains(t, app.Message(), "tests fail\n", "people see the advice in the Temporal UI")
}

func TestWhatIsNoFaultIsNoFault(t *testing.T) {
	require.Nil(t, wire.Decode(nil))
	require.Nil(t, wire.Decode(errors.New("no disk")))
	require.Nil(t, wire.Decode(sent(temporal.NewApplicationError("panic", "PanicError"))))
	require.Nil(t, wire.Decode(sent(temporal.NewApplicationError("no type", ""))))
	require.Equal(t, fault.New(fault.LedgerAhead, "by another program"), wire.Decode(sent(temporal.NewApplicationError("by another program", "LEDGER_AHEAD"))))
	require.Equal(t, fault.New(fault.LedgerAhead, "x"), wire.Decode(sent(temporal.NewApplicationError("x", "LEDGER_AHEAD", "a detail of its own"))))
}

func TestRefusal(t *testing.T) {
	require.NoError(t, wire.Refusal(nil))
	plain := errors.New("no disk")
	require.Equal(t, plain, wire.Refusal(plain))
	f := fault.New(fault.GateClosed, "closed")
	require.Equal(t, f, wire.Decode(sent(wire.Refusal(fmt.Errorf("judging: %w", f)))))
}
