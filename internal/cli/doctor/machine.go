package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/cli/scaffold"
	"pawl/internal/exec/supervisor"
	"pawl/internal/git"
	"pawl/internal/home/hostrecord"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/metric"
)

// home checks pawl's folder: it exists, it belongs to the user, and nobody else can read it.
func (e *examination) home() {
	const another = "Set PAWL_HOME to a folder that you can write."
	dir := e.o.Home.Dir
	fi, err := os.Stat(dir)
	if err = cmp.Or(e.o.HomeErr, err); err != nil {
		e.failed("home", another, "%s", firstLine(err))
		return
	}
	probe, err := os.CreateTemp(dir, ".doctor-*")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	owner, ok := fi.Sys().(*syscall.Stat_t)
	switch {
	case err != nil && !errors.Is(err, fs.ErrPermission):
		e.failed("home", "Make it writable again: loops continue then.", "%s can't be written: %s", dir, firstLine(err))
	case err != nil:
		e.failed("home", another, "%s can't be written: %s", dir, firstLine(err))
	case ok && int(owner.Uid) != os.Getuid():
		e.failed("home", "Set PAWL_HOME to a folder of your own.", "%s belongs to user %d", dir, owner.Uid)
	case fi.Mode().Perm()&0o077 != 0:
		e.failed("home", "chmod 700 "+dir, "%s can be read by others (mode %o): prompts and outputs are in it", dir, fi.Mode().Perm())
	default:
		e.ok("home", "%s", dir)
	}
	if torn, err := hostrecord.Torn(e.o.Home); err == nil && len(torn) > 0 && e.o.Troubles == nil {
		e.note("records", "The next `pawl up` makes them again from the ledgers.", "those of the loops %s are damaged", strings.Join(torn, ", "))
	}
	worker := "no worker now"
	if locked, err := durable.Locked(e.o.Home.WorkerLock()); err == nil && locked {
		worker = "its worker runs"
	}
	if id, err := e.o.Home.HostID(); err == nil {
		e.ok("host", "%s, %s", id, worker)
	} else {
		e.failed("host", "Check the folder "+dir+".", "%s", firstLine(err))
	}
}

// git checks that git is installed and new enough.
func (e *examination) git() {
	version, err := git.Version(e.ctx)
	if err == nil {
		e.ok("git", "%s", version)
		return
	}
	text := firstLine(err)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		text = "there is none on the PATH"
	}
	e.failed("git", fmt.Sprintf("Install git %s or later.", git.MinVersion), "%s", text)
}

// The free space that is needed: a loop has two clones of the repository and a store.
const (
	littleRoom = 5 << 30
	noRoom     = 500 << 20
	fewInodes  = 50_000
)

func (e *examination) disk() {
	dir := e.o.Home.Dir
	if e.o.HomeErr != nil {
		return
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		e.note("disk", "Check it with df "+dir+".", "its free space can't be read: %v", err)
		return
	}
	free := int64(st.Bavail) * int64(st.Bsize)
	const fix = "Remove what is not needed (`pawl clean` for loops that ended), or set PAWL_HOME to another disk."
	switch {
	case st.Files > 0 && st.Ffree < fewInodes:
		e.failed("disk", fix, "%s can still be made at %s", metric.Counted(int(st.Ffree), "file"), dir)
	case free < noRoom:
		e.failed("disk", fix, "%s free at %s", bytes(free), dir)
	case free < littleRoom:
		e.note("disk", fix, "%s free at %s; each loop has two clones of its repository", bytes(free), dir)
	default:
		e.ok("disk", "%s free at %s", bytes(free), dir)
	}
}

// agents checks the known agents that are installed, as the worker finds them, or this shell where none runs. None has to
// be installed: any program that edits files works.
func (e *examination) agents() {
	find, env, place := exec.LookPath, []string(nil), "the PATH"
	if e.o.Worker != nil {
		if workerEnv, runs := e.o.Worker(); runs {
			find, env, place = e.inWorker(workerEnv), workerEnv, "the worker's PATH"
		}
	}
	found := 0
	var names []string
	for _, agent := range scaffold.Agents {
		names = append(names, agent.Name)
		path, err := find(agent.Name)
		if err != nil {
			e.strayAgent(agent.Name, place)
			continue
		}
		found++
		version, err := supervisor.Version(e.ctx, path, env)
		if err != nil {
			e.failed("agent "+agent.Name, "Run it by hand, and reinstall it: "+path+" --version", "%s does not say its version: %v", path, err)
			continue
		}
		e.ok("agent "+agent.Name, "%s (%s)", version, path)
	}
	if found == 0 {
		e.note("agents", "Install one, or name any program that edits files as agent.command.", "none of %s is on %s", strings.Join(names, ", "), place)
	}
}

// inWorker finds programs in the worker's environment.
func (e *examination) inWorker(env []string) func(name string) (string, error) {
	return func(name string) (string, error) {
		path := e.o.Which(env, name)
		if path == "" {
			return "", exec.ErrNotFound
		}
		return path, nil
	}
}

// strayAgent notes an agent that this shell has, and the running worker does not.
func (e *examination) strayAgent(name, place string) {
	if path, err := exec.LookPath(name); err == nil {
		e.note("agent "+name, "Restart the worker from this shell: end it, then `pawl up`.", "%s is not on %s", path, place)
	}
}

// steadyClock is the largest allowed difference between wall clock and monotonic clock during the check.
const steadyClock = time.Second

// clock compares the time that passed on the wall clock with the time that really passed, and checks the year.
func (e *examination) clock(wall, monotonic time.Duration) {
	const fix = "Let this machine take its time from the network (timedatectl set-ntp true)."
	switch offset := (wall - monotonic).Abs(); {
	case offset > steadyClock:
		e.failed("clock", fix, "it was changed during this check: it counted %s, but %s passed", wall.Round(time.Millisecond), monotonic.Round(time.Millisecond))
	case time.Now().Year() < 2025:
		e.failed("clock", fix, "it says %s", time.Now().Format(time.DateOnly))
	default:
		e.ok("clock", "wall and monotonic clock agree")
	}
}

// bytes returns a size for people.
func bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.0f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d KB", n>>10)
}
