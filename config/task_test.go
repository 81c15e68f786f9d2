package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/config"
	"pawl/internal/steward/task"
)

func TestS5_ATaskIsReadFromMarkdownYAMLAndJSON(t *testing.T) {
	want := task.Task{ID: "retry", Title: "Retry failed payments", Body: "# Retry failed payments\n\nThree times, with pauses.", Priority: 2, After: []string{"ledger"}, Tier: task.T2}
	markdown := "---\nid: retry\npriority: 2\nafter: [ledger]\ntier: T2\n---\n\n# Retry failed payments\n\nThree times, with pauses.\n"
	json := `{"id": "retry", "title": "Retry failed payments", "body": "# Retry failed payments\n\nThree times, with pauses.", "priority": 2, "after": ["ledger"], "tier": "T2"}`
	yaml := "id: retry\ntitle: Retry failed payments\nbody: \"# Retry failed payments\\n\\nThree times, with pauses.\"\npriority: 2\nafter: [ledger]\ntier: T2\n"
	for name, text := range map[string]string{"t.md": markdown, "t.json": json, "t.yaml": yaml} {
		got, err := config.LoadTask(write(t, name, text), nil)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
		got, err = config.LoadTask("-", strings.NewReader(text))
		require.NoError(t, err, name)
		require.Equal(t, want, got, "%s from stdin", name)
	}
	got, err := config.LoadTask("-", strings.NewReader("Mend the build.\n\n---\n\nIt fails.\n"))
	require.NoError(t, err)
	require.Equal(t, task.Task{Body: "Mend the build.\n\n---\n\nIt fails."}, got, "plain words are a task")
}

func TestS5_WhatIsWrongWithATaskIsSaidWithItsLine(t *testing.T) {
	path := write(t, "t.md", "---\nid: retry\nprio: 2\ntier: T9\n---\nWords.\n")
	_, err := config.LoadTask(path, nil)
	require.ErrorContains(t, err, path+":3: prio: is not a key of a task; want: priority (did you mean it?)")
	require.ErrorContains(t, err, path+`:4: tier: is "T9"`)
	_, err = config.LoadTask(write(t, "t.md", "---\nbody: x\n---\nWords.\n"), nil)
	require.ErrorContains(t, err, "is given in the front matter")
	_, err = config.LoadTask(write(t, "t.md", "---\nid: x\n---\n"), nil)
	require.ErrorContains(t, err, "body: is missing")
	path = write(t, "t.yaml", "title: t\nspec:\n  kind: deliver\n  scop: [a]\n")
	_, err = config.LoadTask(path, nil)
	require.EqualError(t, err, path+":4: spec.scop: is not a key of a spec; want: scope (did you mean it?)")
	_, err = config.LoadTask(write(t, "t.md", "---\ntitle: x\nplan: []\n---\n"), nil)
	require.ErrorContains(t, err, "t.md:3: plan: has no steps")
	_, err = config.LoadTask(write(t, "t.md", "---\nplan: [{id: x, kind: deliver, spec: {limits: {iterations: none}, repo: {path: /}}}]\n---\nWords.\n"), nil)
	require.ErrorContains(t, err, `plan[0].spec.limits.iterations: is "none"`)
	require.ErrorContains(t, err, "plan[0].spec.repo: can't be set here")
	_, err = config.LoadTask(t.TempDir()+"/none.md", nil)
	require.ErrorContains(t, err, "there is no file")
}
