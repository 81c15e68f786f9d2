package held_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/held"
)

// swapped is a folder whose parent is renamed and replaced once it is held: "true" in the one, "forged" in the other.
func swapped(t *testing.T, hold func(path string)) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("descriptors of folders have no names here")
	}
	above := filepath.Join(t.TempDir(), "above")
	at := filepath.Join(above, "folder")
	put := func(text string) {
		require.NoError(t, os.MkdirAll(filepath.Join(at, "in"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(at, "in", "file"), []byte(text), 0o600))
	}
	put("true")
	hold(at)
	require.NoError(t, os.Rename(above, above+".away"))
	put("forged")
	return at
}

func TestAFolderThatIsHeldIsTheOneThatItWas(t *testing.T) {
	var f *held.Folder
	swapped(t, func(path string) {
		var err error
		f, err = held.Open(path)
		require.NoError(t, err)
	})
	defer f.Close()
	b, err := os.ReadFile(filepath.Join(f.Here(), "in", "file"))
	require.NoError(t, err)
	require.Equal(t, "true", string(b))

	cat := exec.Command("cat", "in/file")
	cat.Dir = f.Here()
	out, err := cat.Output()
	require.NoError(t, err)
	require.Equal(t, "true", string(out), "a process begins there")
}

func TestPathsBelowAKeptFolderLeadThere(t *testing.T) {
	path := swapped(t, func(path string) { require.NoError(t, held.Keep(path)) })
	require.NoError(t, held.Keep(path), "it stays the one that it was")
	file := filepath.Join(path, "in", "file")
	b, err := os.ReadFile(held.At(file))
	require.NoError(t, err)
	require.Equal(t, "true", string(b))

	for _, other := range []string{path + "2/in", filepath.Dir(path), "in/file", ""} {
		require.Equal(t, other, held.At(other))
	}

	// A child of a child has it as well.
	cat := exec.Command("sh", "-c", `sh -c 'cat "$F"'; cat "$1"`, "sh")
	stdin, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer stdin.Close()
	cat.ExtraFiles = []*os.File{stdin}
	lent := held.Lend(cat)
	cat.Args = append(cat.Args, lent(file))
	cat.Env = append(os.Environ(), "F="+lent(file))
	out, err := cat.Output()
	require.NoError(t, err)
	require.Equal(t, "truetrue", string(out))
	require.Len(t, cat.ExtraFiles, 2, "it is handed over once")
	require.Equal(t, "/elsewhere", lent("/elsewhere"))
}

func TestAnErrorNamesThePathThatPeopleKnow(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, held.Keep(dir))
	path := filepath.Join(dir, "none")
	_, err := os.ReadFile(held.At(path))
	err = held.Named(err, path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "open "+path+": no such file or directory")
	require.NoError(t, held.Named(nil, path))
	_, err = held.Open(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
