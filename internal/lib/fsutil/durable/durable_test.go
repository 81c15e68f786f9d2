package durable_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/fsutil/durable"
)

// TestMain lets the test binary be the other process, which takes the lock and keeps it until it is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("DURABLE_TEST_LOCK"); path != "" {
		lock, err := durable.Lock(context.Background(), path)
		fmt.Println(err)
		time.Sleep(time.Minute)
		lock.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func names(t *testing.T, dir string) (out []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func content(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func TestAFileIsReplacedWithItsModeAndNothingElseStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	require.NoError(t, durable.WriteFile(path, []byte("old, and longer"), 0o644))
	require.NoError(t, durable.WriteFile(path, []byte("new"), 0o600))
	require.Equal(t, "new", content(t, path))
	fi, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), fi.Mode())
	require.NoError(t, durable.WriteCache(path, []byte("newest")))
	require.Equal(t, "newest", content(t, path))
	require.Equal(t, []string{"record.json"}, names(t, filepath.Dir(path)))
}

func TestAReaderSeesTheOldOrTheNewAndNothingBetween(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	a, b := bytes.Repeat([]byte("a"), 100_000), bytes.Repeat([]byte("b"), 200_000)
	require.NoError(t, durable.WriteFile(path, a, 0o600))
	done := make(chan error)
	go func() {
		var err error
		for i := range 100 {
			err = errors.Join(err, durable.WriteFile(path, [][]byte{a, b}[i%2], 0o600))
		}
		done <- err
	}()
	for {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(got, a) || bytes.Equal(got, b), "%d bytes", len(got))
		select {
		case err := <-done:
			require.NoError(t, err)
			return
		default:
		}
	}
}

func TestWhatCannotTakeItsPlaceLeavesTheOldAndNoDraft(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	require.NoError(t, os.MkdirAll(filepath.Join(taken, "full"), 0o700))
	require.Error(t, durable.WriteFile(taken, []byte("x"), 0o600))
	require.Error(t, durable.WriteCache(taken, []byte("x")))
	require.DirExists(t, filepath.Join(taken, "full"))
	require.Equal(t, []string{"taken"}, names(t, dir))
	require.Error(t, durable.WriteFile(filepath.Join(dir, "missing", "x"), nil, 0o600))
}

func TestTheFirstToCreateAFileWins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spec.yaml")
	put := func(text string) error {
		d, err := durable.NewDraft(path, 0o644)
		require.NoError(t, err)
		require.Equal(t, ".yaml", filepath.Ext(d.Name()), "readers tell formats by the extension")
		_, err = d.WriteString(text)
		require.NoError(t, err)
		return d.Create()
	}
	require.NoError(t, put("first"))
	require.ErrorIs(t, put("second"), fs.ErrExist)
	require.Equal(t, "first", content(t, path))
	require.Equal(t, []string{"spec.yaml"}, names(t, filepath.Dir(path)))
}

func TestAnEmptyOrDamagedRecordIsTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	var got map[string]int
	require.ErrorIs(t, durable.ReadJSON(path, &got), fs.ErrNotExist)
	require.NoError(t, durable.WriteJSON(path, map[string]int{"n": 1}))
	require.NoError(t, durable.ReadJSON(path, &got))
	require.Equal(t, map[string]int{"n": 1}, got)
	whole := content(t, path)
	for name, torn := range map[string]string{
		"empty": "", "cut off": whole[:len(whole)/2], "zeroes": string(make([]byte, len(whole))), "another shape": "[1]",
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(torn), 0o600))
			err := durable.ReadJSON(path, &got)
			require.ErrorIs(t, err, durable.ErrTorn)
			require.ErrorContains(t, err, path)
		})
	}
	for name, write := range map[string]func(string, any) error{"written": durable.WriteJSON, "cached": durable.CacheJSON} {
		t.Run("a folder in its place, "+name, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, os.MkdirAll(filepath.Join(path, "x"), 0o700))
			require.ErrorIs(t, durable.ReadJSON(path, &got), durable.ErrTorn)
			require.NoError(t, write(path, map[string]int{"n": 2}))
			require.NoError(t, durable.ReadJSON(path, &got))
			require.Equal(t, map[string]int{"n": 2}, got)
		})
	}
	require.ErrorContains(t, durable.WriteJSON(path, func() {}), "encoding record.json")
	require.ErrorAs(t, durable.WriteJSON(path, func() {}), new(*json.UnsupportedTypeError))
}

// A changed byte is noticed even if the file is still a valid document, except in the name of the checksum itself.
func TestARecordWithAnotherByteIsTorn(t *testing.T) {
	type record struct {
		Path string
		N    []int
		Of   map[string]string
	}
	want := record{"/a/b", []int{1, 23}, map[string]string{"sha256": "x"}}
	for name, write := range map[string]func(string, any) error{"indented": durable.WriteJSON, "cached": durable.CacheJSON} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "record.json")
			require.NoError(t, write(path, want))
			whole := content(t, path)
			require.True(t, json.Valid([]byte(whole)), whole)
			own := strings.LastIndex(whole, `"sha256"`)
			for i := range whole {
				damaged := []byte(whole)
				damaged[i] ^= 1
				require.NoError(t, os.WriteFile(path, damaged, 0o600))
				var got record
				if err := durable.ReadJSON(path, &got); err == nil {
					require.Equal(t, want, got, "%s", damaged)
					require.True(t, i >= own-4, "%s", damaged)
				} else {
					require.ErrorIs(t, err, durable.ErrTorn)
				}
			}
		})
	}
	for _, plain := range []any{"text", 7, []int{1}, struct{}{}, map[string]string{}, map[string]string{"a": "b"}} {
		path := filepath.Join(t.TempDir(), "plain")
		require.NoError(t, durable.WriteJSON(path, plain))
		got := reflect.New(reflect.TypeOf(plain))
		require.NoError(t, durable.ReadJSON(path, got.Interface()))
		require.Equal(t, plain, got.Elem().Interface())
	}
}

func TestARenamedFolderIsThere(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a"), 0o700))
	require.NoError(t, durable.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	require.Equal(t, []string{"b"}, names(t, dir))
	require.ErrorIs(t, durable.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "c")), fs.ErrNotExist)
}

// holder is another process that has the lock.
func holder(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DURABLE_TEST_LOCK="+path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "<nil>\n", line)
	return cmd
}

func TestALockIsAnotherProcesssUntilThatIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	other := holder(t, path)

	_, err := durable.TryLock(path)
	require.ErrorIs(t, err, durable.ErrLocked)
	locked, err := durable.Locked(path)
	require.NoError(t, err)
	require.True(t, locked)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = durable.Lock(ctx, path)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, path)

	ours := make(chan *os.File)
	go func() {
		f, _ := durable.Lock(context.WithoutCancel(t.Context()), path)
		ours <- f
	}()
	require.NoError(t, other.Process.Kill())
	f := <-ours
	require.NotNil(t, f)
	_, err = durable.TryLock(path)
	require.ErrorIs(t, err, durable.ErrLocked, "nor does this process get it twice")
	require.NoError(t, f.Close())
	f, err = durable.TryLock(path)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestALockStaysWithAProcessThatInheritedIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := durable.TryLock(path)
	require.NoError(t, err)
	child := exec.Command("sleep", "60")
	child.ExtraFiles = []*os.File{f}
	require.NoError(t, child.Start())
	require.NoError(t, f.Close())
	_, err = durable.TryLock(path)
	require.ErrorIs(t, err, durable.ErrLocked)
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	f, err = durable.TryLock(path)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestAskingAboutALockLeavesNoTrace(t *testing.T) {
	dir := t.TempDir()
	locked, err := durable.Locked(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	require.False(t, locked)
	require.Empty(t, names(t, dir))
	_, err = durable.TryLock(filepath.Join(dir, "missing", "lock"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}
