package workspace_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/home/hostrecord"
	"pawl/internal/loop/api"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

func TestE6_WhatTheWorkerKeepsSecretIsNeitherInheritedNorStored(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://app:hunter2@db/app")
	t.Setenv("PIP_INDEX_URL", "https://me:hunter2@pypi.example/simple")
	t.Setenv("GOFLAGS", "-mod=mod")
	l, env, _ := actest.BeginLogged(t)
	path := filepath.Join(hostrecord.Steps(l.Home, l.Opened.Ref), "..", "environment.json")
	out, printed := l.RunTest(env, api.Test{Step: l.Step(1), Command: "env"})
	require.Zero(t, out.ExitCode)
	require.NotContains(t, printed, "hunter2")
	require.Contains(t, printed, "GOFLAGS=-mod=mod")
	require.NotContains(t, gittest.Read(t, path), "hunter2")

	// What an earlier version of pawl stored.
	gittest.Write(t, path, `["PATH=/usr/bin:/bin", "DATABASE_URL=postgres://app:hunter2@db/app"]`)
	l.Stop()
	_, printed = l.RunTest(env, api.Test{Step: l.Step(2), Command: "env"})
	require.NotContains(t, printed, "hunter2")
	require.NotContains(t, gittest.Read(t, path), "hunter2")
}
