package supervisor_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
)

var padding = strings.Repeat("x", 983)

// The test binary plays every role: the supervisor, workers that are killed, and commands.
func TestMain(m *testing.M) {
	supervisor.Main()
	if len(os.Args) > 2 && os.Args[1] == "play" {
		play(os.Args[2], os.Args[3:])
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // for every process that the race detector checks
	os.Exit(m.Run())
}

func play(part string, args []string) {
	switch part {
	case "stubborn": // PIDFILE: only SIGKILL ends it
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		enter(args[0])
		select {}
	case "polite": // PIDFILE: writes something when interrupted
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, syscall.SIGINT)
		enter(args[0])
		<-interrupted
		time.Sleep(200 * time.Millisecond) // asks its model server for the cost
		fmt.Println("usage: 42 tokens")
		os.Exit(3)
	case "daemon": // PIDFILE open|closed [generation]: two sessions away from its parent
		generation := "1"
		if len(args) == 3 {
			generation = "2"
			if args[2] == "2" {
				play("stubborn", args)
			}
		}
		again := exec.Command(self(), "play", "daemon", args[0], args[1], generation)
		again.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if args[1] == "open" {
			again.Stdout, again.Stderr = os.Stdout, os.Stderr
		}
		check(again.Start())
		if generation == "1" {
			check(again.Wait())
			await(args[0])
		}
		os.Exit(0)
	case "flood": // LINES of 1000 bytes, numbered
		n, err := strconv.Atoi(args[0])
		check(err)
		out := bufio.NewWriterSize(os.Stdout, 1<<16)
		for i := range n {
			fmt.Fprintf(out, "line %010d %s\n", i, padding)
		}
		fmt.Fprintln(out, "the last line")
		check(out.Flush())
		os.Exit(0)
	case "reaper": // TOKEN: has the token, and works in the directory
		dir, err := os.Getwd()
		check(err)
		fmt.Println(supervisor.Reap(args[0], dir))
		os.Exit(0)
	case "worker": // DIR TOKEN ARGV...: Start, Run, result.json
		work(args[0], args[1], args[2:])
	}
	os.Exit(99)
}

func work(dir, token string, argv []string) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, syscall.SIGINT)
	go func() {
		<-interrupts
		check(os.WriteFile(filepath.Join(dir, "interrupted"), nil, 0o600))
	}()
	if os.Getenv("REMOVE_BINARY") != "" {
		check(os.Remove(self()))
	}
	s, err := supervisor.Start(token, sandbox.ByNothing)
	check(err)
	write(filepath.Join(dir, "supervisor"), strconv.Itoa(s.Pid()))
	result, err := s.Run(context.Background(), supervisor.Command{Argv: argv, Dir: dir, Env: os.Environ(), Stdout: filepath.Join(dir, "out")})
	check(err)
	check(s.Close())
	data, err := json.Marshal(result)
	check(err)
	write(filepath.Join(dir, "result.json"), string(data))
	os.Exit(0)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(98)
	}
}

func enter(pidfile string) { write(pidfile, strconv.Itoa(os.Getpid())) }

// write is atomic, because the other side waits for the file.
func write(path, text string) {
	check(os.WriteFile(path+".next", []byte(text), 0o600))
	check(os.Rename(path+".next", path))
}

// await is for the roles; tests wait with require.Eventually.
func await(path string) {
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func self() string {
	path, err := os.Executable()
	check(err)
	return path
}

// part returns the argv of a command that plays a role.
func part(name string, args ...string) []string {
	return append([]string{self(), "play", name}, args...)
}

// quoted returns the same as a shell command.
func quoted(argv []string) string { return "'" + strings.Join(argv, "' '") + "'" }

const (
	patience = 30 * time.Second
	often    = 2 * time.Millisecond
)

var tokens atomic.Int64

func newToken() string {
	return fmt.Sprintf("proc-test-%d-%d", os.Getpid(), tokens.Add(1))
}

type testSupervisor struct {
	*supervisor.Supervisor
	t     *testing.T
	token string
	dir   string
}

// start returns a supervisor and checks that it leaves nothing behind.
func start(t *testing.T) testSupervisor {
	t.Helper()
	token := newToken()
	s, err := supervisor.Start(token, sandbox.ByNothing)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.False(t, lives(s.Pid()), "the supervisor survived Close")
		require.Empty(t, living(token))
	})
	return testSupervisor{s, t, token, t.TempDir()}
}

func (s testSupervisor) path(name string) string { return filepath.Join(s.dir, name) }

func (s testSupervisor) command(argv ...string) supervisor.Command {
	return supervisor.Command{Argv: argv, Dir: s.dir, Env: os.Environ(), Stdout: s.path("out"), Stderr: s.path("err")}
}

// run checks the package's promise for every command of every test.
func (s testSupervisor) run(ctx context.Context, c supervisor.Command) supervisor.Result {
	s.t.Helper()
	result, err := s.Run(ctx, c)
	require.NoError(s.t, err)
	require.Empty(s.t, living(s.token), "alive after Run returned")
	return result
}

func (s testSupervisor) sh(script string) supervisor.Result {
	s.t.Helper()
	return s.run(context.Background(), s.command("sh", "-c", script))
}

func (s testSupervisor) out() string { return read(s.t, s.path("out")) }

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// pid waits until a process has written its ID.
func pid(t *testing.T, path string) int {
	t.Helper()
	var n int
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		n, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	}, patience, often, "nobody wrote %s", path)
	return n
}

// living finds the processes of a token in another way than the code under test, so it does not share its mistakes.
func living(token string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		environ, _ := os.ReadFile(dir + "/environ")
		if strings.Contains("\x00"+string(environ), "\x00SUPERVISED_BY="+token+"\x00") {
			line, _ := os.ReadFile(dir + "/cmdline")
			found = append(found, filepath.Base(dir)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func lives(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !strings.Contains(string(status), "State:\tZ") && !strings.Contains(string(status), "State:\tX")
}

func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !lives(pid) }, patience, often, "process %d lives", pid)
	}
}
