package activities_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/act"
	"pawl/internal/workspace"
)

func TestE6_WhatTheWorkerKeepsSecretIsNeitherInheritedNorStored(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://app:hunter2@db/app")
	t.Setenv("PIP_INDEX_URL", "https://me:hunter2@pypi.example/simple")
	t.Setenv("GOFLAGS", "-mod=mod")
	l, env, _ := torn(t)
	path := filepath.Join(workspace.Steps(l.a.Home, l.o.Ref), "..", "environment.json")
	out, printed := l.run(env, act.Test{Step: l.step(1), Command: "env"})
	require.Zero(t, out.ExitCode)
	require.NotContains(t, printed, "hunter2")
	require.Contains(t, printed, "GOFLAGS=-mod=mod")
	require.NotContains(t, string(must(os.ReadFile(path))), "hunter2")

	// What an earlier pawl has stored.
	write(t, path, `["PATH=/usr/bin:/bin", "DATABASE_URL=postgres://app:hunter2@db/app"]`)
	l.a.Stop()
	_, printed = l.run(env, act.Test{Step: l.step(2), Command: "env"})
	require.NotContains(t, printed, "hunter2")
	require.NotContains(t, string(must(os.ReadFile(path))), "hunter2")
}
