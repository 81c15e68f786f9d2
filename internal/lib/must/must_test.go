package must_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/must"
)

func TestAnErrorThatCannotHappenPanics(t *testing.T) {
	require.Equal(t, 3, must.Have(3, nil))
	err := errors.New("it happened")
	require.PanicsWithValue(t, err, func() { must.Have(3, err) })
}
