package kind_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/agent/prompt"
	"pawl/internal/fault"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
)

// TestEveryKindIsWhole fails if a new kind lacks something that other packages read from it. See also
// TestEveryKindHasAWorkflow in internal/worker and TestEveryKindIsShown in internal/cli/render.
func TestEveryKindIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range kind.All {
		t.Run(k.Name, func(t *testing.T) {
			require.NotEmpty(t, k.Name)
			require.False(t, seen[k.Name] || seen[k.Workflow], "the name and the workflow type are its own")
			seen[k.Name], seen[k.Workflow] = true, true
			same, err := kind.Of(k.Name)
			require.NoError(t, err)
			require.Equal(t, k.Workflow, same.Workflow)
			require.NotEmpty(t, k.Draft, "`pawl init` has nothing to write")
			for version := range k.Machines {
				machine(t, k, k.Machine(version+1, true))
			}
			require.Equal(t, k.Machine(len(k.Machines), true), k.Machine(kind.Version()+1, true), "another kind has newer rules, this one keeps its own")
			if k.Loop {
				loopKind(t, k)
			}
		})
	}
}

// machine checks what the driver of a loop relies on in a table.
func machine(t *testing.T, k kind.Kind, m phase.Machine) {
	begins, between := phase.None, 0
	for _, r := range m {
		for _, to := range slices.Concat(r.Next, r.Untested) {
			require.Equal(t, to, m.Row(to).At, "%s leads to a phase that has no row", r.At)
		}
		if r.Role != "" {
			require.Contains(t, spec.Roles(), r.Role)
		}
		require.False(t, r.Edits && r.Role == "", "somebody edits in %s", r.At)
		if r.Begins {
			begins = r.At
			require.NotEqual(t, r.At, m.Unbegun(r.At), "%s is entered again", r.At)
		}
		if r.Between {
			between++
		}
	}
	if k.Loop {
		require.NotEqual(t, phase.None, begins)
		require.Equal(t, 1, between)
		require.NoError(t, m.Check(m.Between(), begins), "the next iteration begins from there")
	}
}

func loopKind(t *testing.T, k kind.Kind) {
	for at := range k.Tasks {
		require.NotEmpty(t, k.Machine(kind.Version(), true).Row(at).Role, "nobody works in %s", at)
		require.NotEmpty(t, prompt.Brief{Call: api.Call{Phase: string(at)}, Kind: k}.Text())
	}
	for _, r := range k.Machine(kind.Version(), true) {
		if r.Role != "" && r.Role != kind.Reviewer {
			require.Contains(t, k.Tasks, r.At, "nobody says what the %s is asked for", r.Role)
		}
	}
	for _, key := range k.Stops {
		require.Contains(t, spec.Keys(), key)
	}
	for _, required := range []bool{true, false} {
		needed := k.Needed(required)
		require.NotEmpty(t, needed, "every loop is judged by something")
		problems := spec.Problems{}
		_, err := spec.FromMap(map[string]any{"kind": k.Name, "test": map[string]any{"required": required}})
		require.ErrorAs(t, err, &problems)
		for _, need := range needed {
			require.Contains(t, spec.Keys(), need.Key)
			require.True(t, slices.ContainsFunc(problems, func(p spec.Problem) bool { return p.Key == need.Key && p.Want == need.Want }), need.Key)
		}
	}
}

// TestAnUnknownKindIsAnError checks that the error has the name, and the known kinds.
func TestAnUnknownKindIsAnError(t *testing.T) {
	for _, name := range []string{"", "Improve", "improve ", "destroy"} {
		_, err := kind.Of(name)
		require.Equal(t, fault.InvalidSpec, fault.CodeOf(err))
		require.ErrorContains(t, err, "improve, deliver")
		doc, err := json.Marshal(map[string]any{"kind": name})
		require.NoError(t, err)
		_, err = spec.Parse(doc)
		require.ErrorContains(t, err, "kind: is", "in a spec, and so in the input of a workflow")
	}
	_, ok := kind.OfWorkflow("improve")
	require.False(t, ok)
}
