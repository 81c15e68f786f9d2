package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/exec/supervisor"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/spec"
)

// A command that fills the disk would stop every loop of the host. So pawl watches what a command writes while it
// runs, also on file systems without quotas. A command is ended if its files exceed limits.deskBytes, or if almost
// nothing is free and the command itself has written a lot.
const (
	// roomEvery is the time between two looks, unless a look takes long.
	roomEvery = 250 * time.Millisecond
	// lookShare is how many times longer than a look the time to the next one is.
	lookShare = 10
	// littleRoom is how much must stay free for others, and how much a command must have written to be ended for that.
	littleRoom = 128 << 20
	// fewFiles is how many more files the disk must be able to hold. fileSize is what an empty file takes.
	fewFiles = 20_000
	fileSize = 512
)

// Room watches what a command writes.
type Room struct {
	dirs  []string // where it can write
	most  int64    // 0 for no limit
	home  string   // a folder on the disk that all loops share
	since time.Time
	// unnamed returns the bytes of files that processes of the command have open and that no longer have a name.
	unnamed func() int64

	over atomic.Pointer[string] // why the command was ended
}

// RoomOf returns the room of a command that runs in a tree.
func (ws *Workspace) RoomOf(dir string, s *supervisor.Supervisor) *Room {
	dirs := []string{dir, ws.layers("")}
	if dir == ws.Desk.Dir {
		dirs = append(dirs, ws.Exchange())
	}
	return &Room{dirs: dirs, most: int64(ws.DeskBytes), home: ws.Machine.Home.Dir, since: time.Now(), unnamed: s.Unnamed}
}

// Watch looks until ctx ends, and calls end when there is too little room.
func (r *Room) Watch(ctx context.Context, end func()) {
	for wait := roomEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		began := time.Now()
		if reason := r.look(ctx); reason != "" {
			r.over.Store(&reason)
			end()
			return
		}
		wait = max(roomEvery, lookShare*time.Since(began))
	}
}

// Ended returns why the command was ended for its room, or counts as failed for it, "" if neither. It includes what
// the command has written since the last look.
func (r *Room) Ended(ctx context.Context) string {
	if reason := r.over.Load(); reason != nil {
		return *reason
	}
	return r.look(ctx)
}

func (r *Room) look(ctx context.Context) string {
	if r.most > 0 {
		size, deep := r.size(ctx, time.Time{})
		switch {
		case size > r.most:
			return fmt.Sprintf("limits.deskBytes (%s) was used up: tree and caches hold %s", spec.Size(r.most), mebibytes(size))
		case deep:
			return "limits.deskBytes can't be kept: tree or caches have folders so deep that what is in them can't be counted"
		}
	}
	var st unix.Statfs_t
	if unix.Statfs(dirfd.At(r.home), &st) != nil {
		return ""
	}
	if free := int64(st.Bavail) * int64(st.Bsize); free < littleRoom {
		if size, deep := r.size(ctx, r.since); size > littleRoom || deep {
			return fmt.Sprintf("the disk is nearly full (%s are free at %s), and the command has written %s", mebibytes(free), r.home, mebibytes(size))
		}
	}
	if st.Files > 0 && st.Ffree < fewFiles {
		made := 0
		if r.changed(ctx, r.since, func(fs.FileInfo) { made++ }); made > fewFiles {
			return fmt.Sprintf("the disk at %s can hold almost no more files, and the command has written %d", r.home, made)
		}
	}
	return ""
}

// size returns how many bytes the files changed after a time take, at least what a name and an inode take. deep says that
// there are files that can't be counted.
func (r *Room) size(ctx context.Context, cutoff time.Time) (bytes int64, deep bool) {
	bytes = r.unnamed()
	deep = r.changed(ctx, cutoff, func(info fs.FileInfo) {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			bytes += max(int64(st.Blocks)*512, fileSize)
		}
	})
	return bytes, deep
}

// changed calls visit for every file that was changed after a time, until ctx ends, unless it can't be read. deep says that
// a folder has a longer path than the system accepts.
func (r *Room) changed(ctx context.Context, cutoff time.Time, visit func(fs.FileInfo)) (deep bool) {
	for _, dir := range r.dirs {
		_ = filepath.WalkDir(dirfd.At(dir), func(_ string, d fs.DirEntry, err error) error {
			deep = deep || errors.Is(err, syscall.ENAMETOOLONG)
			if err != nil || ctx.Err() != nil {
				return ctx.Err()
			}
			if info, err := d.Info(); err == nil && info.ModTime().After(cutoff) {
				visit(info)
			}
			return nil
		})
	}
	return deep
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
