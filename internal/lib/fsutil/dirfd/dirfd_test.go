package dirfd_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/fsutil/dirfd"
)

// swapped is a held folder whose parent was then renamed and replaced: one has "true", the other has "forged".
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
	var f *dirfd.Folder
	swapped(t, func(path string) {
		var err error
		f, err = dirfd.Open(path)
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
	path := swapped(t, func(path string) { require.NoError(t, dirfd.Keep(path)) })
	require.NoError(t, dirfd.Keep(path), "it stays the one that it was")
	file := filepath.Join(path, "in", "file")
	b, err := os.ReadFile(dirfd.At(file))
	require.NoError(t, err)
	require.Equal(t, "true", string(b))

	for _, other := range []string{path + "2/in", filepath.Dir(path), "in/file", ""} {
		require.Equal(t, other, dirfd.At(other))
	}

	// A child of a child has the folder too.
	cat := exec.Command("sh", "-c", `sh -c 'cat "$F"'; cat "$1"`, "sh")
	stdin, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer stdin.Close()
	cat.ExtraFiles = []*os.File{stdin}
	lent, known := dirfd.Lend(cat)
	cat.Args = append(cat.Args, lent(file))
	cat.Env = append(os.Environ(), "F="+lent(file))
	out, err := cat.Output()
	require.NoError(t, err)
	require.Equal(t, "truetrue", string(out))
	require.Len(t, cat.ExtraFiles, 2, "it is handed over once")
	require.Equal(t, "/elsewhere", lent("/elsewhere"))
	require.Equal(t, "no room for "+file, known("no room for "+lent(file)))
	require.Equal(t, "no room for "+file, dirfd.Known("no room for "+dirfd.At(file)))
}

func TestAnErrorNamesThePathThatPeopleKnow(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, dirfd.Keep(dir))
	path := filepath.Join(dir, "none")
	_, err := os.ReadFile(dirfd.At(path))
	err = dirfd.Named(err, path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "open "+path+": no such file or directory")
	require.NoError(t, dirfd.Named(nil, path))
	_, err = dirfd.Open(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A child process, which is this test again, takes the folders and reads through them.
func TestAProcessThatIsHandedTheFoldersKeepsThem(t *testing.T) {
	const handed = 4
	if file := os.Getenv("HELD_FILE"); file != "" {
		folder := filepath.Dir(filepath.Dir(file))
		dirfd.Take(handed, []string{folder})
		away := folder + ".away"
		if os.Rename(folder, away) == nil {
			require.NoError(t, os.Mkdir(folder, 0o700))
		}
		b, err := os.ReadFile(dirfd.At(file))
		require.NoError(t, err)
		fmt.Print(string(b), " ", dirfd.InPlace(folder))
		return
	}
	run := func(before func(folder string)) string {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		require.NoError(t, err)
		file := filepath.Join(dir, "in", "file")
		require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte("true"), 0o600))
		require.NoError(t, dirfd.Keep(dir))
		cmd := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "HELD_FILE="+file)
		nothing, err := os.Open(os.DevNull)
		require.NoError(t, err)
		defer nothing.Close()
		cmd.ExtraFiles = []*os.File{nothing}
		folders := dirfd.Hand(cmd)
		at := slices.Index(folders, dir)
		require.GreaterOrEqual(t, at, 0)
		cmd.ExtraFiles = []*os.File{nothing, cmd.ExtraFiles[1+at]} // without those of the other tests
		before(dir)
		out, _ := cmd.Output()
		return string(out)
	}
	if runtime.GOOS != "linux" {
		t.Skip("descriptors of folders have no names here")
	}
	require.Regexp(t, "^true /.* is no longer the folder", run(func(string) {}))
	require.Regexp(t, "^true /.* is no longer the folder", run(func(folder string) {
		require.NoError(t, os.Rename(folder, folder+".away"))
		require.NoError(t, os.Mkdir(folder, 0o700))
	}), "another stands there when it begins")
}

func TestAThreadWithMountsOfItsOwnOpensTheFoldersThatAreInPlace(t *testing.T) {
	path := swapped(t, func(path string) { require.NoError(t, dirfd.Keep(path)) })
	require.ErrorContains(t, dirfd.InPlace(path), "is no longer the folder")
	_, err := dirfd.Anew(slices.Values([]string{"/elsewhere", path + "/in"}))
	require.ErrorContains(t, err, path+" is no longer the folder")
	none, err := dirfd.Anew(slices.Values([]string{"/elsewhere"}))
	require.NoError(t, err)
	require.Empty(t, none)
	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	require.ErrorIs(t, dirfd.InPlace(path), fs.ErrNotExist)
	require.NoError(t, os.Rename(filepath.Dir(path)+".away", filepath.Dir(path)))
	require.NoError(t, dirfd.InPlace(path), "it is back")
	folders, err := dirfd.Anew(slices.Values([]string{"", path, path + "/in"}))
	require.NoError(t, err)
	defer folders.Close()
	require.Len(t, folders, 1)
	b, err := os.ReadFile(folders.At(path + "/in/file"))
	require.NoError(t, err)
	require.Equal(t, "true", string(b))
}

// A forged folder has replaced it, and its names lead elsewhere.
func TestTheRealPathInAKeptFolderIsSaidByItsPath(t *testing.T) {
	elsewhere, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	path := swapped(t, func(path string) {
		require.NoError(t, os.Symlink("in", filepath.Join(path, "short")))
		require.NoError(t, os.Symlink(elsewhere, filepath.Join(path, "out")))
		require.NoError(t, dirfd.Keep(path))
	})
	require.NoError(t, os.RemoveAll(filepath.Join(path, "in")))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(path, "in")))
	for name, want := range map[string]string{"": path, "/in": path + "/in", "/in/file": path + "/in/file", "/short/file": path + "/in/file", "/out": elsewhere} {
		got, err := dirfd.Real(path + name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = dirfd.Real(path + "/none")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
