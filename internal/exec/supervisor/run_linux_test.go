package supervisor_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
	"pawl/internal/lib/fsutil/dirfd"
)

func TestRunReportsHowTheMainProcessEnded(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, test := range []struct {
		name, script, signal string
		code                 int
	}{
		{"success", "true", "", 0},
		{"failure", "exit 3", "", 3},
		{"the highest code", "exit 255", "", 255},
		{"killed by a signal", "kill -TERM $$", "SIGTERM", -1},
		{"killed by SIGKILL", "kill -KILL $$", "SIGKILL", -1},
		{"default signals even though the supervisor catches them", "kill -INT $$; exit 1", "SIGINT", -1},
		{"the main process counts, not what it started", "sh -c 'exit 9' & exit 4", "", 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			result := s.sh(test.script)
			require.Equal(t, test.code, result.ExitCode)
			require.Equal(t, test.signal, result.Signal)
			require.Empty(t, result.StartError)
			require.False(t, result.TimedOut || result.Interrupted)
			require.Positive(t, result.Elapsed)
		})
	}
}

func TestRunGivesTheCommandExactlyWhatWasAsked(t *testing.T) {
	t.Parallel()
	s := start(t)
	odd := "caf\xe9 \xff\n'\"" // arguments and variables are bytes, not text
	require.NoError(t, os.WriteFile(s.path("in"), []byte("from stdin"), 0o600))
	c := s.command("sh", "-c", `printf '%s|%s|' "$0" "$ODD"; pwd; cat; echo problem >&2`, odd)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "ODD=" + odd, "SUPERVISED_BY=somebody else"}
	c.Stdin = s.path("in")
	require.NoError(t, os.WriteFile(c.Stdout, []byte(strings.Repeat("old ", 1000)), 0o644))

	result := s.run(context.Background(), c)
	require.Zero(t, result.ExitCode)
	require.Equal(t, odd+"|"+odd+"|"+s.dir+"\nfrom stdin", s.out())
	require.Equal(t, "problem\n", read(t, c.Stderr))
	require.EqualValues(t, len(s.out()), result.StdoutBytes)
	require.EqualValues(t, len("problem\n"), result.StderrBytes)
	for _, path := range []string{c.Stdout, c.Stderr} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
	}

	c.Argv, c.Stdin = []string{"env", "-0"}, ""
	s.run(context.Background(), c)
	require.Equal(t, []string{"PATH=" + os.Getenv("PATH"), "ODD=" + odd, "SUPERVISED_BY=" + s.token, ""},
		strings.Split(s.out(), "\x00"))
}

func TestRunGivesTheCommandNothingElse(t *testing.T) {
	t.Parallel()
	s := start(t)
	// Only the three standard streams are open (and what ls opens to list them). A leaked control socket would hide
	// the worker's death, and a leaked pipe the end of the output.
	require.Zero(t, s.sh("exec ls /proc/self/fd").ExitCode)
	require.Equal(t, "0\n1\n2\n3\n", s.out())
	require.Zero(t, s.sh("ps -o sid=,pgid= -p $$; echo $$; cat").ExitCode)
	words := strings.Fields(s.out())
	require.Len(t, words, 3, s.out())
	require.Equal(t, []string{words[2], words[2]}, words[:2], "session and group of its own")
	session, err := unix.Getsid(s.Pid())
	require.NoError(t, err)
	require.Equal(t, s.Pid(), session, "and so has the supervisor")
}

func TestRunSaysWhyACommandDidNotStart(t *testing.T) {
	t.Parallel()
	s := start(t)
	file := func(name, text string, mode os.FileMode) string {
		require.NoError(t, os.WriteFile(s.path(name), []byte(text), mode))
		return s.path(name)
	}
	file("data", "", 0o644)
	file("nowhere", "#!/no/such/interpreter\n", 0o755)
	file("noise", "\x00\x01\x02", 0o755)
	for _, test := range []struct {
		name string
		argv []string
		dir  string
		want string
	}{
		{"no command", nil, s.dir, "there is no command"},
		{"not in PATH", []string{"no-such-program"}, s.dir, "was not found in PATH"},
		{"no such file", []string{"./missing"}, s.dir, "missing\" does not exist"},
		{"not executable", []string{"./data"}, s.dir, "is not executable"},
		{"a directory", []string{"/"}, s.dir, "is a directory"},
		{"no interpreter", []string{"./nowhere"}, s.dir, "interpreter"},
		{"not a program", []string{"./noise"}, s.dir, "neither a program for this machine nor a script"},
		{"directory missing", []string{"/bin/true"}, s.path("gone"), "gone\" does not exist"},
		{"directory is a file", []string{"/bin/true"}, s.path("data"), "is not a directory"},
		{"a NUL in an argument", []string{"/bin/true", "a\x00b"}, s.dir, "invalid argument"},
		{"only in a relative directory of PATH", []string{"noise"}, s.dir, "was not found in PATH"},
		{"in one that the supervisor, in /, would find", []string{"sort"}, s.dir, "was not found in PATH"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := s.command(test.argv...)
			c.Dir = test.dir
			c.Env = append(c.Env, "PATH=.::usr/bin:bin")
			result := s.run(context.Background(), c)
			require.Contains(t, result.StartError, test.want)
			require.Equal(t, -1, result.ExitCode)
		})
	}
	require.Zero(t, s.sh("true").ExitCode, "the supervisor goes on")
}

func TestRunReportsTroubleWithItsOwnFilesAsAnError(t *testing.T) {
	t.Parallel()
	s := start(t)
	require.NoError(t, unix.Mkfifo(s.path("fifo"), 0o600))
	for name, change := range map[string]func(*supervisor.Command){
		"stdin missing":            func(c *supervisor.Command) { c.Stdin = s.path("missing") },
		"stdout without directory": func(c *supervisor.Command) { c.Stdout = s.path("missing/out") },
		"stderr is a FIFO":         func(c *supervisor.Command) { c.Stderr = s.path("fifo") },
	} {
		t.Run(name, func(t *testing.T) {
			c := s.command("touch", s.path("ran"))
			change(&c)
			_, err := s.Run(context.Background(), c)
			require.Error(t, err)
			require.NotErrorIs(t, err, supervisor.ErrSupervisorDied)
			require.NoFileExists(t, s.path("ran"))
		})
	}
	require.Zero(t, s.sh("true").ExitCode, "the supervisor goes on")
}

func TestLimitEndsTheCommandAndWhatItStarted(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, test := range []struct{ name, script, signal string }{
		{"that obeys", "exec sleep 1000", "SIGINT"},
		{"that ignores it", "trap '' INT TERM HUP; sleep 1000 & while :; do sleep 1000; done", "SIGKILL"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := s.command("sh", "-c", test.script)
			c.Limit, c.Grace = 100*time.Millisecond, 100*time.Millisecond
			result := s.run(context.Background(), c)
			require.True(t, result.TimedOut)
			require.False(t, result.Interrupted)
			require.Equal(t, -1, result.ExitCode)
			require.Equal(t, test.signal, result.Signal)
			require.GreaterOrEqual(t, result.Elapsed, c.Limit)
			require.Less(t, result.Elapsed, patience)
		})
	}
}

func TestCancelledContextInterruptsTheCommand(t *testing.T) {
	t.Parallel()
	shell := func(script string) []string { return []string{"sh", "-c", script} }
	for _, test := range []struct {
		name     string
		argv     func(pidfile string) []string
		grace    time.Duration
		code     int
		signal   string
		leftover int
		out      string
	}{
		{"that has a last word", func(f string) []string { return part("polite", f) },
			patience, 3, "", 0, "usage: 42 tokens\n"},
		{"behind a shell that dies first", func(f string) []string { return shell(quoted(part("polite", f)) + "; true") },
			patience, -1, "SIGINT", 0, "usage: 42 tokens\n"},
		{"in another session", func(f string) []string { return shell("setsid " + quoted(part("polite", f)) + " & wait; true") },
			patience, -1, "SIGINT", 0, "usage: 42 tokens\n"},
		{"that ignores SIGINT", func(f string) []string { return part("stubborn", f) },
			100 * time.Millisecond, -1, "SIGKILL", 0, ""},
		{"whose daemon ignores it, which is not waited for", func(f string) []string {
			return shell(quoted(part("daemon", f+"-daemon", "closed")) + "; echo $$ > " + f + "; exec sleep 1000")
		}, patience, -1, "SIGINT", 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t)
			c := s.command(test.argv(s.path("pid"))...)
			c.Grace = test.grace
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() {
				await(s.path("pid"))
				cancel()
			}()
			result := s.run(ctx, c)
			require.True(t, result.Interrupted)
			require.False(t, result.TimedOut)
			require.Equal(t, test.code, result.ExitCode)
			require.Equal(t, test.signal, result.Signal)
			require.Equal(t, test.leftover, result.Leftover)
			require.Equal(t, test.out, s.out())
		})
	}
}

func TestContextThatHadEndedStartsNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	result := s.run(ctx, s.command("touch", s.path("ran")))
	require.Equal(t, supervisor.Result{ExitCode: -1, Interrupted: true}, result)
	require.NoFileExists(t, s.path("ran"))
	require.NoFileExists(t, s.path("out"))
}

func TestProgressCarriesTheTimeSpentIntoTheNextAttempt(t *testing.T) {
	t.Parallel()
	s := start(t)
	require.NoError(t, unix.Mkfifo(s.path("go"), 0o600))
	spent, err := supervisor.ReadProgress(s.path("progress"))
	require.NoError(t, err)
	require.Zero(t, spent, "before the first attempt")
	for _, torn := range []string{"", "\x00\x00\x00\x00"} {
		require.NoError(t, os.WriteFile(s.path("progress"), []byte(torn), 0o600))
		spent, err = supervisor.ReadProgress(s.path("progress"))
		require.NoError(t, err)
		require.Zero(t, spent, "a power cut has emptied it")
	}

	c := s.command("sh", "-c", "read line < go")
	c.Progress, c.Spent, c.Limit = s.path("progress"), 10*time.Second, time.Hour
	results := make(chan supervisor.Result, 1)
	go func() {
		result, _ := s.Run(context.Background(), c)
		results <- result
	}()
	require.Eventually(t, func() bool {
		spent, err = supervisor.ReadProgress(c.Progress)
		require.NoError(t, err)
		return spent > 0
	}, patience, often, "while it runs")
	require.GreaterOrEqual(t, spent, 11*time.Second)
	require.NoError(t, os.WriteFile(s.path("go"), []byte("\n"), 0))
	result := <-results
	require.Zero(t, result.ExitCode)
	spent, err = supervisor.ReadProgress(c.Progress)
	require.NoError(t, err)
	require.Equal(t, (c.Spent + result.Elapsed).Milliseconds(), spent.Milliseconds(), "at the end")

	c.Argv = []string{"sleep", "1000"}
	c.Limit = c.Spent + 50*time.Millisecond
	result = s.run(context.Background(), c)
	require.True(t, result.TimedOut)
	require.Less(t, result.Elapsed, c.Spent, "what was spent counts against the limit")

	c.Spent = c.Limit
	require.Equal(t, supervisor.Result{ExitCode: -1, TimedOut: true}, s.run(context.Background(), c), "nothing left")
}

func TestOneSupervisorRunsManyCommands(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i := range 50 {
		require.Equal(t, i, s.sh("exit "+strconv.Itoa(i)).ExitCode)
	}
	if os.Geteuid() == 0 { // no other user may inspect a supervisor
		descriptors, err := os.ReadDir("/proc/" + strconv.Itoa(s.Pid()) + "/fd")
		require.NoError(t, err)
		require.Less(t, len(descriptors), 50, "descriptors leak") // of 50 commands
	}

	// Callers at the same time take turns.
	results := make(chan int)
	for i := range 10 {
		go func() {
			c := s.command("sh", "-c", "mkdir alone && rmdir alone && exit "+strconv.Itoa(i))
			c.Stdout, c.Stderr = "", ""
			result, err := s.Run(context.Background(), c)
			if err != nil {
				result.ExitCode = -2
			}
			results <- result.ExitCode
		}()
	}
	sum := 0
	for range 10 {
		sum += <-results
	}
	require.Equal(t, 45, sum)
}

func TestSignalsToTheSupervisorDoNotReachTheCommand(t *testing.T) {
	t.Parallel()
	s := start(t)
	require.NoError(t, unix.Mkfifo(s.path("go"), 0o600))
	results := make(chan supervisor.Result, 1)
	go func() {
		result, _ := s.Run(context.Background(), s.command("sh", "-c", "echo $$ > pid; read line < go; exit 7"))
		results <- result
	}()
	pid(t, s.path("pid"))
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		require.NoError(t, syscall.Kill(-s.Pid(), sig))
	}
	require.NoError(t, os.WriteFile(s.path("go"), []byte("\n"), 0))
	require.Equal(t, 7, (<-results).ExitCode)
}

func BenchmarkRun(b *testing.B) {
	s, err := supervisor.Start(newToken(), sandbox.ByNothing)
	require.NoError(b, err)
	defer s.Close()
	dir := b.TempDir()
	c := supervisor.Command{Argv: []string{"true"}, Dir: dir, Env: os.Environ(), Stdout: filepath.Join(dir, "out"), Stderr: filepath.Join(dir, "err")}
	for b.Loop() {
		if _, err := s.Run(context.Background(), c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExec is for comparison with BenchmarkRun.
func BenchmarkExec(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		out, err := os.Create(filepath.Join(dir, "out"))
		require.NoError(b, err)
		cmd := exec.Command("true")
		cmd.Stdout, cmd.Dir = out, dir
		require.NoError(b, cmd.Run())
		out.Close()
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s, err := supervisor.Start(newToken(), sandbox.ByNothing)
		require.NoError(b, err)
		require.NoError(b, s.Close())
	}
}

// One bubblewrap can't make a sandbox, another one makes a different sandbox than it should.
func TestWhatBubblewrapComesToIsNoVerdict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ does, says string }{
		"it fails":           {`echo "no source path" >&2; exit 1`, "the sandbox could not be made: no source path"},
		"it says nothing":    {`exit 0`, "the sandbox could not be made"},
		"the folder another": {`while [ "$1" != -- ]; do shift; done; shift; exec "$1" "$2" "$(echo "$3" | sed 's/"Inode":[0-9]*/"Inode":1/')" "$4" "$5"`, "is no longer the same folder"},
		"it works":           {`while [ "$1" != -- ]; do shift; done; shift; exec "$@"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			require.NoError(t, dirfd.Keep(dir))
			s := start(t)
			bwrap := s.path("bwrap")
			write(bwrap, "#!/bin/sh\n"+c.does+"\n")
			require.NoError(t, os.Chmod(bwrap, 0o755))
			command := s.command("true")
			command.Sandbox = &sandbox.Policy{
				Machine: sandbox.Machine{Files: sandbox.ByBwrap, Bwrap: bwrap}, Network: sandbox.Open,
				Places: []sandbox.Place{{Path: dir, Access: sandbox.Write}},
			}
			result, err := s.Run(context.Background(), command)
			if c.says == "" {
				require.NoError(t, err)
				require.Zero(t, result.ExitCode)
			} else {
				require.ErrorContains(t, err, c.says)
			}
		})
	}
}

func TestEffortIsThatOfTheWholeProcessTree(t *testing.T) {
	t.Parallel()
	s := start(t)
	require.NoError(t, unix.Mkfifo(s.path("go"), 0o600))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.Run(context.Background(), s.command("sh", "-c", "sh -c 'head -c 300000000 /dev/zero | cksum' >/dev/null; read line < go"))
	}()
	require.Eventually(t, func() bool {
		e := s.Effort()
		return e.CPU > 0 && e.Bytes >= 300_000_000
	}, patience, often, "also what has ended meanwhile")
	require.NoError(t, os.WriteFile(s.path("go"), []byte("\n"), 0))
	<-done
	require.Zero(t, s.Effort())
}
