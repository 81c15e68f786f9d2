package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/lib/list"
)

// The limits that Outgrows can try.
const memoryBound, processBound = "memory", "processes"

// Reached counts how often commands ran into their limits.
type Reached struct {
	Killed  int64 // processes that the kernel killed because memory was used up
	Refused int64 // processes that were not started because the limit was reached
}

// Since returns the counts since an earlier count.
func (r Reached) Since(earlier Reached) Reached {
	return Reached{Killed: r.Killed - earlier.Killed, Refused: r.Refused - earlier.Refused}
}

// Bounds are the cgroups of a loop's commands. The supervisor is not in them. The kernel kills or refuses what goes
// beyond the limits, and the rest of the machine is not affected. Version 1 needs one cgroup for each limit, version 2
// one for both.
type Bounds struct {
	Limits  Limits            // as requested
	groups  map[string]string // the folder of the cgroup of each controller
	unified int               // version 2: a descriptor of the cgroup in which commands are started; -1 for none
	joining []*os.File        // version 1: the files through which a thread joins
}

// inner is the cgroup in which commands run, inside the one with the limit. A command that makes namespaces of its own
// and mounts the cgroups sees this one, which it may write, and not the one above.
const inner = "in"

const memoryController, processController = "memory", "pids"

// NewBounds makes the cgroups of a token, or reuses what is left of them. If a limit can't be enforced, the error says
// why, and the others are enforced. Close it when nothing runs in it any more.
func NewBounds(token string, l Limits) (*Bounds, error) {
	b := &Bounds{Limits: l, groups: map[string]string{}, unified: -1}
	var failed []error
	for controller, limit := range map[string]int64{memoryController: l.Memory, processController: l.Processes} {
		if limit > 0 {
			failed = append(failed, b.bound(token, controller, limit))
		}
	}
	return b, errors.Join(failed...)
}

// bound makes the cgroup of one controller and sets its limit.
func (b *Bounds) bound(token, controller string, limit int64) error {
	parents, second, err := parentsOf(controller)
	if err != nil {
		return err
	}
	err = errors.New("no cgroup of this machine is this user's to divide")
	for _, parent := range parents {
		dir := filepath.Join(parent, boundsName(token))
		if made := os.Mkdir(dir, 0o755); made != nil && !errors.Is(made, fs.ErrExist) {
			err = made
			continue
		}
		if err = b.set(dir, controller, limit, second); err == nil {
			b.groups[controller] = dir
			return nil
		}
		_ = os.Remove(filepath.Join(dir, inner))
		_ = os.Remove(dir)
	}
	return fmt.Errorf("limiting %s: %w", controller, err)
}

// set writes the limit and opens the cgroup for joining.
func (b *Bounds) set(dir, controller string, limit int64, second bool) error {
	value := strconv.FormatInt(limit, 10)
	write := func(name, value string) error { return os.WriteFile(filepath.Join(dir, name), []byte(value), 0) }
	switch {
	case controller == processController:
		if err := write("pids.max", value); err != nil {
			return err
		}
	case second:
		if err := write("memory.max", value); err != nil {
			return err
		}
		_ = write("memory.swap.max", "0")
	default:
		_ = write("memory.memsw.limit_in_bytes", "-1") // it may never be below the other limit
		if err := write("memory.limit_in_bytes", value); err != nil {
			return err
		}
		_ = write("memory.memsw.limit_in_bytes", value) // if the kernel counts swap
	}
	_ = write("memory.use_hierarchy", "1") // always the case from Linux 5.11 on
	dir = filepath.Join(dir, inner)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if second {
		if b.unified >= 0 {
			return nil
		}
		fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
		b.unified = fd
		return err
	}
	tasks, err := os.OpenFile(filepath.Join(dir, "tasks"), os.O_WRONLY, 0)
	if err == nil {
		b.joining = append(b.joining, tasks)
	}
	return err
}

// Join puts the calling thread, and whatever it forks, into the cgroups of version 1. The thread's memory still counts
// for its process, which is in none of them.
func (b *Bounds) Join() error {
	for _, tasks := range b.joining {
		if _, err := tasks.WriteString("0"); err != nil {
			return fmt.Errorf("entering a cgroup: %w", err)
		}
	}
	return nil
}

// relievedWithin is how long the kernel may take to free the memory of a room that is gone.
const relievedWithin = 2 * time.Second

// Relieved waits, up to relievedWithin, until half of the memory is free again. The kernel frees what a room had in
// memory some time after the room.
func (b *Bounds) Relieved() {
	dir := b.groups[memoryController]
	for deadline := time.Now().Add(relievedWithin); dir != "" && time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		for _, name := range []string{"memory.current", "memory.usage_in_bytes"} {
			if used, err := strconv.ParseInt(said(dir, name), 10, 64); err == nil && used < b.Limits.Memory/2 {
				return
			}
		}
	}
}

// Reached returns the counts since the cgroups were made.
func (b *Bounds) Reached() (r Reached) {
	if dir := b.groups[memoryController]; dir != "" {
		r.Killed = count(dir, "memory.events", "oom_kill") + counts(dir, "memory.oom_control", "oom_kill")
	}
	if dir := b.groups[processController]; dir != "" {
		r.Refused = counts(dir, "pids.events", "max")
	}
	return r
}

// counts adds up a number over a cgroup and all cgroups in it, because a version 1 cgroup counts only itself.
func counts(top, file, name string) (n int64) {
	for _, dir := range cgroups(top) {
		n += count(dir, file, name)
	}
	return n
}

// count reads a number from lines of "name number". It returns 0 if the name is missing.
func count(dir, file, name string) int64 {
	for line := range strings.SplitSeq(said(dir, file), "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}

// said returns the content of a file of a cgroup without white space around it, "" if it can't be read.
func said(dir, file string) string {
	text, _ := os.ReadFile(filepath.Join(dir, file))
	return strings.TrimSpace(string(text))
}

// cgroups returns a cgroup and all cgroups in it, each before those in it. What can't be read is left out.
func cgroups(top string) (dirs []string) {
	_ = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	return dirs
}

// Close closes the files. The cgroups stay until RemoveBounds.
func (b *Bounds) Close() {
	for _, tasks := range b.joining {
		tasks.Close()
	}
	if b.unified >= 0 {
		unix.Close(b.unified)
	}
}

// removeWithin is how long the kernel may take to release ended processes.
const removeWithin = 5 * time.Second

// RemoveBounds kills what is left in the cgroups of a token, wherever they are on this machine, and removes them.
func RemoveBounds(token string) error {
	name := boundsName(token)
	var failed []error
	for _, m := range hierarchies() {
		for _, dir := range cgroups(m.at) { // what can't be read can't have been made
			if filepath.Base(dir) == name {
				failed = append(failed, removeBounds(dir))
			}
		}
	}
	return errors.Join(failed...)
}

// removeBounds removes a cgroup with everything in it.
func removeBounds(top string) error {
	for deadline := time.Now().Add(removeWithin); ; time.Sleep(2 * time.Millisecond) {
		var err error
		for _, dir := range slices.Backward(cgroups(top)) {
			for _, number := range strings.Fields(said(dir, "cgroup.procs")) {
				if pid, err := strconv.Atoi(number); err == nil && pid > 1 && pid != os.Getpid() {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
			err = os.Remove(dir)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("removing a cgroup: %w", err)
		}
	}
}

// hierarchy is a mounted tree of cgroups.
type hierarchy struct {
	at, root string
	second   bool
	options  []string
}

// hierarchies returns those of this machine (proc_pid_mountinfo(5)).
func hierarchies() (found []hierarchy) {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		mount, kind, _ := strings.Cut(line, " - ")
		mountFields, kindFields := strings.Fields(mount), strings.Fields(kind)
		if len(mountFields) < 5 || len(kindFields) < 3 || kindFields[0] != "cgroup" && kindFields[0] != "cgroup2" {
			continue
		}
		found = append(found, hierarchy{at: mountFields[4], root: mountFields[3], second: kindFields[0] == "cgroup2", options: strings.Split(kindFields[2], ",")})
	}
	return found
}

// parentsOf returns the cgroups in which a new one with this controller may be possible, the nearest first: this
// process's own and, with version 2, its parents, because a cgroup that has processes can't be divided. It does not go
// above a cgroup whose memory is limited more than that of its parents.
func parentsOf(controller string) (parents []string, second bool, err error) {
	cgroupOf := map[string]string{} // this process's cgroup for each controller of version 1, and as "" for version 2
	for line := range strings.SplitSeq(said("/proc/self", "cgroup"), "\n") {
		if parts := strings.SplitN(line, ":", 3); len(parts) == 3 {
			for controller := range strings.SplitSeq(parts[1], ",") {
				cgroupOf[controller] = parts[2]
			}
		}
	}
	pathOf := func(h hierarchy, controller string) string {
		if cgroupOf[controller] == "" {
			return ""
		}
		return filepath.Join(h.at, strings.TrimPrefix(cgroupOf[controller], h.root))
	}
	found := hierarchies()
	for _, h := range found {
		if dir := pathOf(h, controller); !h.second && slices.Contains(h.options, controller) && dir != "" {
			return []string{dir}, false, nil
		}
	}
	for _, h := range found {
		if !h.second {
			continue
		}
		for dir := pathOf(h, ""); within(dir, h.at) && dir != ""; dir = filepath.Dir(dir) {
			if slices.Contains(strings.Fields(said(dir, "cgroup.subtree_control")), controller) {
				parents = append(parents, dir)
			}
			if limit := said(dir, "memory.max"); dir == h.at || limit != "" && limit != "max" {
				break
			}
		}
	}
	if len(parents) == 0 {
		err = fmt.Errorf("no cgroup of this machine has the controller %s for this user", controller)
	}
	return parents, true, err
}

// boundsName returns the name of the cgroups of a token. It is the same on every host, so that the cgroups of a killed
// supervisor are found again.
func boundsName(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "pawl-" + hex.EncodeToString(sum[:8])
}

// How much memory Outgrows uses, with a limit of a quarter of it.
const tooMuch = 256 << 20

const outgrowName = "pawl-sandbox-outgrow"

// outgrow is the part of Outgrows that Main runs, in a process of its own: a thread that has joined a cgroup can't leave
// it. It joins through the files from descriptor 3 on, and then uses too much. It ends with 0 if nothing keeps it from that.
func outgrow(bound string, joining int) {
	runtime.LockOSThread() // on a busy machine, joining takes long enough for another thread to go on
	for i := range joining {
		if _, err := unix.Write(3+i, []byte("0")); err != nil {
			os.Exit(0)
		}
	}
	if bound == processBound {
		if _, err := syscall.ForkExec("/proc/self/exe", []string{outgrowName, "", "0"}, nil); err != nil {
			os.Exit(1)
		}
	}
	if bound != memoryBound {
		os.Exit(0)
	}
	for i, memory := 0, make([]byte, tooMuch); i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	os.Exit(0)
}

// Outgrows tries whether a process in cgroups like the token's can exceed a small limit of memory or processes.
func Outgrows(token, bound string) (outgrew bool) {
	token += ", tried"
	limits := Limits{Memory: tooMuch / 4}
	if bound == processBound {
		limits = Limits{Processes: 1}
	}
	b, err := NewBounds(token, limits)
	defer func() { _ = RemoveBounds(token) }()
	defer b.Close()
	if dir := b.groups[processController]; err == nil && dir != "" {
		err = os.WriteFile(filepath.Join(dir, "pids.max"), []byte("0"), 0)
	}
	if err != nil {
		return true
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return true
	}
	defer null.Close()
	files := []uintptr{null.Fd(), null.Fd(), null.Fd()}
	files = append(files, list.Map(b.joining, func(tasks *os.File) uintptr { return tasks.Fd() })...)
	var attributes syscall.SysProcAttr
	b.Begin(&attributes)
	pid, err := syscall.ForkExec("/proc/self/exe", []string{outgrowName, bound, strconv.Itoa(len(b.joining))},
		&syscall.ProcAttr{Env: []string{"GOMAXPROCS=1"}, Files: files, Sys: &attributes})
	if err != nil {
		return !errors.Is(err, syscall.EAGAIN)
	}
	var status syscall.WaitStatus
	for {
		if _, err = syscall.Wait4(pid, &status, 0, nil); !errors.Is(err, syscall.EINTR) {
			return err != nil || status.Exited() && status.ExitStatus() == 0
		}
	}
}
