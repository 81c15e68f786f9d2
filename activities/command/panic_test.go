package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/command"
)

// TestAPanicInAStepIsItsErrorAlone: as the SDK does for an activity. Otherwise what one loop's agent prints could end the
// worker of all loops, again and again.
func TestAPanicInAStepIsItsErrorAlone(t *testing.T) {
	t.Parallel()
	out, err := command.New(nil).JoinOrStart("x/1", func() (any, error) { panic("an index out of range") })()
	require.Nil(t, out)
	require.ErrorContains(t, err, "an index out of range")
	require.ErrorContains(t, err, "panic_test.go", "it says where")
}
