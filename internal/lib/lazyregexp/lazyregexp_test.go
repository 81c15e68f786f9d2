package lazyregexp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/lazyregexp"
)

func TestAnExpressionIsCompiledWhenItIsUsed(t *testing.T) {
	wrong := lazyregexp.New("(") // compiles nothing
	require.Panics(t, func() { wrong() })
	word := lazyregexp.New(`a(\d)`)
	require.Equal(t, []string{"a1", "1"}, word().FindStringSubmatch("-a1-"))
	require.Same(t, word(), word(), "it is compiled once")
}
