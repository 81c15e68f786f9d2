package safego_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/safego"
)

func TestAPanicIsTheErrorOfItsGroup(t *testing.T) {
	t.Parallel()
	g, ctx := safego.WithContext(t.Context())
	g.Go(func() error { panic("an index out of range") })
	g.Go(func() error { <-ctx.Done(); return nil })
	err := g.Wait()
	require.ErrorContains(t, err, "an index out of range")
	require.ErrorContains(t, err, "safego_test.go", "it says where")
	require.ErrorIs(t, context.Cause(ctx), err)

	g, _ = safego.WithContext(t.Context())
	g.Go(func() error { return errors.ErrUnsupported })
	require.ErrorIs(t, g.Wait(), errors.ErrUnsupported)
	g, _ = safego.WithContext(t.Context())
	g.Go(func() error { return nil })
	require.NoError(t, g.Wait())
}
