package hostrecord_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
)

// A loop can be halted on a full disk too: the room for the note of its end was taken when it began.
func TestAnEndIsNotedOnAFullDisk(t *testing.T) {
	h := home.Home{Dir: t.TempDir()}
	err := syscall.Mount("tmpfs", h.Dir, "tmpfs", 0, "size=64k")
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skip("only root can mount a small disk: ", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(h.Dir, syscall.MNT_DETACH)) })
	r := record("x", "x")
	require.NoError(t, hostrecord.Write(h, r))
	filler, err := os.Create(filepath.Join(h.Dir, "filler"))
	require.NoError(t, err)
	_, err = io.Copy(filler, zeros{})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, filler.Close())

	end := hostrecord.End{
		FirstRun: r.FirstRun, Status: "halted", Reason: "halted by ann", Time: time.Now().UTC().Truncate(time.Second),
		Untold: &hostrecord.Untold{Name: "halt", Payload: []byte(`{"by":"ann"}`)},
	}
	long := end
	long.Reason = strings.Repeat("too long ", 1000)
	require.ErrorIs(t, hostrecord.NoteEnd(h, r, long), syscall.ENOSPC)
	require.False(t, hostrecord.Over(h, r))
	require.NoError(t, hostrecord.NoteEnd(h, r, end))
	got, noted := hostrecord.NotedEnd(h, r)
	require.True(t, noted)
	require.Equal(t, end, got)
	require.True(t, hostrecord.Awaits(h, r))
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
