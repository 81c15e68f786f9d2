package lazyregexp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lazyregexp"
)

func TestAnExpressionIsCompiledWhenItIsUsed(t *testing.T) {
	wrong := lazyregexp.New("(")
	require.Equal(t, "(", wrong.String(), "to make it and to show it compiles nothing")
	require.Panics(t, func() { wrong.MatchString("") })
	require.Equal(t, []string{"a1", "1"}, lazyregexp.New(`a(\d)`).FindStringSubmatch("-a1-"))
}
