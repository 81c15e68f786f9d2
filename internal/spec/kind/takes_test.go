package kind_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/spec/kind"
)

func TestAWorkflowTakesTheInputOfItsOwnKindAlone(t *testing.T) {
	for _, c := range []struct {
		kind    kind.Kind
		input   string
		refused string // a part of the error, "" if the input is accepted
	}{
		{kind.Improve, `{"kind": "improve"}`, ""},
		{kind.Improve, `{}`, ""},
		{kind.Deliver, `{"kind": "deliver"}`, ""},
		{kind.Steward, `{"kind": "steward"}`, ""},
		{kind.Improve, `{"kind": "steward"}`, "is for a workflow of type Steward (kind steward), and this one is of type Improve (kind improve)"},
		{kind.Deliver, `{"kind": "steward"}`, "is for a workflow of type Steward"},
		{kind.Deliver, `{}`, "is for a workflow of type Improve (kind improve)"},
		{kind.Steward, `{"kind": "improve"}`, "is for a workflow of type Improve (kind improve), and this one is of type Steward (kind steward)"},
		{kind.Steward, `{"kind": "deliver"}`, "is for a workflow of type Deliver"},
		{kind.Improve, `{"kind": "gardener"}`, `no kind "gardener"`},
		{kind.Improve, `[]`, ""}, {kind.Steward, `{`, ""}, {kind.Improve, `{"kind": 1}`, ""}, // the kind's own reader reports these
	} {
		err := c.kind.Takes([]byte(c.input))
		if c.refused == "" {
			require.NoError(t, err, c.input)
			continue
		}
		require.ErrorContains(t, err, c.refused)
		require.Equal(t, fault.InvalidSpec, fault.CodeOf(err))
		require.NotEmpty(t, err.(*fault.Error).Advice())
	}
}
