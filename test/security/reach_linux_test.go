package security_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"pawl/test/harness/world"
)

// The ways in which a loop's commands are kept apart, and none.
const (
	byRoot, byOrdinary, byBwrap, byOrdinaryBwrap, byNobody = "namespaces", "namespaces of an ordinary user", "bubblewrap", "bubblewrap of an ordinary user", "no sandbox"
)

// waysHere are those that whoever runs the tests can try.
func waysHere() []string {
	if os.Geteuid() != 0 {
		return []string{byOrdinary, byOrdinaryBwrap}
	}
	return []string{byRoot, byOrdinary, byBwrap, byOrdinaryBwrap, byNobody}
}

// deedsHere are the ways in which whoever runs the tests does deeds that a sandbox makes no difference to, and without any.
func deedsHere() []string {
	if ways := waysHere(); slices.Contains(ways, byNobody) {
		return ways
	}
	return append(waysHere(), byNobody)
}

// needsWay skips where the machine has not what a way takes, or all are not to be tried.
func needsWay(t *testing.T, way string) {
	t.Helper()
	switch way {
	case byNobody:
	case byOrdinaryBwrap:
		world.Slow(t, "bubblewrap is much the same for everybody")
		fallthrough
	case byBwrap:
		if _, err := exec.LookPath("bwrap"); err != nil {
			world.Lacks(t, "there is no bubblewrap")
		}
	default:
		needsSandbox(t)
	}
}

// TestE6_WhatAHostileAgentReaches has an agent, and then verify, which runs what agents write, make every
// attempt, under everything that a sandbox is made of, and without one.
func TestE6_WhatAHostileAgentReaches(t *testing.T) {
	for _, way := range waysHere() {
		t.Run(way, func(t *testing.T) {
			if way == byNobody {
				world.Slow(t, "it shows that the attempts can succeed")
			}
			if way == byOrdinary {
				world.Slow(t, "internal/exec/sandbox runs its tests as an ordinary user, too")
			}
			if way == byBwrap {
				world.Slow(t, "the attempts are the same, and TestE6_TheJudgeIsInTheHomeThatItWas goes through bubblewrap")
			}
			needsWay(t, way)
			w, told := newVictim(t, way)
			lacks := strings.Fields(told["LACKS"])
			t.Logf("calls that this kernel was built without: %v", lacks)
			var program strings.Builder
			for _, name := range slices.Sorted(maps.Keys(told)) {
				fmt.Fprintf(&program, `%s="%s" `, name, told[name])
			}
			program.WriteString("'" + filepath.Join(w.Dir, "bin", "agent") + "' " + attempting)
			use := "required"
			if way == byNobody {
				use = "off"
			}
			w.Set(doc{
				"agent":   doc{"command": program.String() + " >work/report; " + world.Raises, "env": doc{}},
				"verify":  doc{"command": "[ ! -e work/report ] || " + program.String() + "; cat work/n", "timeout": "5m"},
				"sandbox": doc{"use": use, "allow": []string{}}, "newFiles": "allow",
			})
			run := w.Start("run", "--yes", w.SpecFile())
			listensLater(w, run)
			s := run.Wait()
			require.Equal(t, 0, s.Code, s.Err)
			if use == "required" && way != byBwrap && way != byOrdinaryBwrap { // validate runs outside of the worker, which lacks namespaces
				require.Contains(t, w.Pawl("validate", "--full", w.SpecFile()).Out, "sandbox, by "+way+":")
			}
			verify, err := filepath.Glob(filepath.Join(w.Home, "loops", w.Loop, "steps", "0001.*verify*", "stdout"))
			require.NoError(t, err)
			require.NotEmpty(t, verify, "%s%s", s.Out, s.Err)
			for where, said := range map[string]string{"the agent": w.Kept("work/report"), "verify": world.ReadFile(verify[len(verify)-1])} {
				came := map[string]string{}
				for line := range strings.Lines(said) {
					if word, name, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
						came[name] = word
					}
				}
				for _, group := range attempts {
					for _, a := range group.deeds {
						if a.plants != "" && where == "the agent" {
							continue
						}
						want := []string{refused, "lacks"}
						if a.open && way == byBwrap {
							want = []string{reached}
						}
						if a.call != 0 && !slices.Contains(lacks, strconv.Itoa(int(a.call))) {
							want = want[:1] // by the filter, since the kernel has it
						}
						if way == byNobody {
							want = []string{reached, "lacks"}
							if a.without != "" {
								want = []string{refused, "lacks"}
							}
						}
						assert.Contains(t, want, came[a.name], "%s: %s", where, a.name)
					}
				}
			}
			require.Equal(t, "11", w.Kept("work/n"))
			if way != byNobody {
				out, _ := exec.Command("grep", "-r", "-l", "planted", filepath.Join(w.Dir, "user")).Output()
				require.Empty(t, string(out), "the user finds it")
			}
			require.Empty(t, w.Read("canary-git"), "pawl ran what the agent had planted")
		})
	}
}

// attempting and apart are the arguments of this test's program as an agent, and as what starts pawl on a machine
// that has no namespaces for it.
const attempting, apart = "attempt", "bwrap-only"

// hostile is the agent, where this program was started as one, and never returns then.
func hostile() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == attempting:
		for _, group := range attempts {
			for _, a := range group.deeds {
				if a.plants != "" && os.Getenv("PAWL_RESULT") != "" {
					a.script = a.plants
				}
				fmt.Println(a.made() + ": " + a.name)
			}
		}
	case len(os.Args) == 3 && os.Args[1] == attempting:
		for _, group := range attempts {
			for _, a := range group.deeds {
				if a.name == os.Args[2] {
					err := a.try()
					if errors.Is(err, unix.ENOSYS) && a.call != 0 && slices.Contains(strings.Fields(os.Getenv("LACKS")), strconv.Itoa(int(a.call))) {
						err = errLacks
					}
					exit(err)
				}
			}
		}
	case len(os.Args) > 2 && os.Args[1] == apart:
		fmt.Fprintln(os.Stderr, withoutNamespaces(os.Args[2:]))
		os.Exit(1)
	default:
		return
	}
	os.Exit(0)
}

func exit(err error) {
	if errors.Is(err, errLacks) {
		os.Exit(lacking)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// made makes the attempt and says what came of it. Why it failed goes to stderr.
func (a attempt) made() string {
	ctx, end := context.WithTimeout(context.Background(), 30*time.Second)
	defer end()
	argv := []string{"bash", "-c", a.script}
	if a.try != nil {
		argv = []string{"/proc/self/exe", attempting, a.name}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	var left *exec.ExitError
	switch {
	case err == nil:
		return reached
	case errors.As(err, &left) && left.ExitCode() == lacking:
		return "lacks"
	}
	fmt.Fprintf(os.Stderr, "%s: %v: %.300s\n", a.name, err, out)
	return refused
}

// withoutNamespaces becomes a program for which the kernel has no calls by which a root can be made without
// another program: an older one, or a container's. bubblewrap does with those that it has.
func withoutNamespaces(argv []string) error {
	ret := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the call's number
	for _, call := range []uint32{unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR} {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: call}, ret(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)))
	}
	filter = append(filter, ret(unix.SECCOMP_RET_ALLOW))
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}
