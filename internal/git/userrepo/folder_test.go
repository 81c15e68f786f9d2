package userrepo_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/git/userrepo"
	"pawl/test/harness/gittest"
)

// TestS7_WhatSomebodyHasJustChangedIsNotOverwritten writes files that are not what the writer saw a moment ago.
func TestS7_WhatSomebodyHasJustChangedIsNotOverwritten(t *testing.T) {
	t.Parallel()
	user, _ := gittest.UserRepo(t, gittest.SomeFiles)
	folder, err := userrepo.OpenFolder(ctx, userrepo.At(user))
	require.NoError(t, err)
	defer folder.Close()
	require.NoError(t, folder.Write("tasks/a", []byte("first"), userrepo.Absent))
	seen, err := folder.Digest("tasks/a")
	require.NoError(t, err)
	at := filepath.Join(folder.Path, "tasks", "a")
	only := func(want ...string) {
		t.Helper()
		files, err := os.ReadDir(filepath.Dir(at))
		require.NoError(t, err)
		var names []string
		for _, file := range files {
			names = append(names, file.Name())
		}
		require.Equal(t, want, names, "nothing else is left")
	}

	gittest.Write(t, at, "theirs")
	for _, was := range []string{seen, userrepo.Absent, userrepo.NoFile} {
		require.ErrorIs(t, folder.Write("tasks/a", []byte("ours"), was), userrepo.ErrChanged)
		require.Equal(t, "theirs", gittest.Read(t, at))
		only("a")
	}

	require.NoError(t, os.Remove(at))
	require.ErrorIs(t, folder.Write("tasks/a", []byte("ours"), seen), userrepo.ErrChanged)
	only()

	gittest.Write(t, filepath.Join(at, "x"), "a folder of theirs")
	require.ErrorIs(t, folder.Write("tasks/a", []byte("ours"), seen), userrepo.ErrChanged)
	require.FileExists(t, filepath.Join(at, "x"))

	require.NoError(t, folder.Write("tasks/a", []byte("ours"), userrepo.NoFile), "a folder that a person lets pawl replace")
	require.Equal(t, "ours", gittest.Read(t, at))
	require.NoError(t, folder.Write("tasks/a", []byte("ours, again"), digestOf(t, folder)))
	require.Equal(t, "ours, again", gittest.Read(t, at))
	only("a")
}

func digestOf(t *testing.T, folder *userrepo.Folder) string {
	t.Helper()
	digest, err := folder.Digest("tasks/a")
	require.NoError(t, err)
	return digest
}

// TestS7_AFileThatSomebodySavesMeanwhileIsTheirs has a person save a file, as editors do, at some moment of a write.
func TestS7_AFileThatSomebodySavesMeanwhileIsTheirs(t *testing.T) {
	t.Parallel()
	user, _ := gittest.UserRepo(t, gittest.SomeFiles)
	folder, err := userrepo.OpenFolder(ctx, userrepo.At(user))
	require.NoError(t, err)
	defer folder.Close()
	at, theirs := filepath.Join(folder.Path, "a"), filepath.Join(t.TempDir(), "theirs")
	lasts, met := time.Duration(0), 0
	for i := range 300 {
		require.NoError(t, os.RemoveAll(at))
		require.NoError(t, folder.Write("a", []byte("first"), userrepo.Absent))
		seen, err := folder.Digest("a")
		require.NoError(t, err)
		gittest.Write(t, theirs, "theirs")
		saved := make(chan error)
		go func() {
			time.Sleep(lasts * time.Duration(i%30) / 30) // another moment each time
			saved <- os.Rename(theirs, at)
		}()
		began := time.Now()
		err = folder.Write("a", []byte("ours"), seen)
		lasts = time.Since(began)
		require.NoError(t, <-saved)
		if err != nil {
			require.ErrorIs(t, err, userrepo.ErrChanged)
			met++
		}
		require.Equal(t, "theirs", gittest.Read(t, at), "round %d: %v", i, err)
	}
	t.Logf("the person was first in %d rounds", met)
}
