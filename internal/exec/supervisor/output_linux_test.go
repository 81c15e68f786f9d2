package supervisor_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"pawl/internal/exec/supervisor"
)

func TestOutputBeyondTheLimitKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.command(part("flood", "100000")...)
	result := s.run(context.Background(), c)
	require.Zero(t, result.ExitCode)
	require.Greater(t, result.StdoutBytes, int64(100_000_000))

	out := s.out()
	omitted := fmt.Sprintf(supervisor.Omission, result.StdoutBytes-supervisor.DefaultOutputLimit)
	require.InDelta(t, supervisor.DefaultOutputLimit, len(out), 200)
	head, tail, found := strings.Cut(out, "\n"+omitted)
	require.True(t, found, "the line that says so is missing, or does not start a line")
	require.InDelta(t, supervisor.DefaultOutputLimit/4, len(head), 1)
	require.Len(t, tail, supervisor.DefaultOutputLimit*3/4)
	require.True(t, strings.HasSuffix(tail, "\nthe last line\n"))
	for name, lines := range map[string][]string{
		"head": strings.Split(head, "\n"), "tail": strings.Split(strings.TrimSuffix(tail, "the last line\n"), "\n"),
	} {
		lines = lines[1 : len(lines)-1] // the lines at the cut are incomplete
		first, err := strconv.Atoi(strings.TrimPrefix(lines[0][:len("line 0123456789")], "line "))
		require.NoError(t, err)
		for i, line := range lines {
			require.Equal(t, fmt.Sprintf("line %010d %s", first+i, padding), line, name)
		}
	}
}

func TestOutputIsKeptByteForByte(t *testing.T) {
	t.Parallel()
	s := start(t)
	const limit = 1000
	for _, size := range []int{0, 1, 249, 250, 251, 999, 1000, 1001, 1750, 1751, 4000, 200_000} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			data := make([]byte, size)
			rand.New(rand.NewSource(int64(size))).Read(data)
			if size > limit && size%2 == 0 {
				data[limit/4-1] = '\n' // otherwise that hardly ever happens
			}
			require.NoError(t, os.WriteFile(s.path("in"), data, 0o600))
			c := s.command("cat")
			c.Stdin, c.OutputLimit = s.path("in"), limit
			result := s.run(context.Background(), c)
			require.EqualValues(t, size, result.StdoutBytes)
			want := data
			if size > limit {
				omitted := fmt.Sprintf(supervisor.Omission, size-limit)
				if data[limit/4-1] != '\n' {
					omitted = "\n" + omitted
				}
				want = bytes.Join([][]byte{data[:limit/4], data[size-limit*3/4:]}, []byte(omitted))
			}
			require.Equal(t, want, []byte(s.out()))
		})
	}
}

func TestOutputLimitHoldsForEachStream(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.command("sh", "-c", "head -c 100000 /dev/zero; head -c 200000 /dev/zero >&2; head -c 50 /dev/zero")
	c.OutputLimit = 4
	result := s.run(context.Background(), c)
	require.EqualValues(t, 100050, result.StdoutBytes)
	require.EqualValues(t, 200000, result.StderrBytes)
	require.Equal(t, "\x00\n"+fmt.Sprintf(supervisor.Omission, 100046)+"\x00\x00\x00", s.out())
	require.Equal(t, "\x00\n"+fmt.Sprintf(supervisor.Omission, 199996)+"\x00\x00\x00", read(t, s.path("err")))
}

func TestTheSameFileTwiceIsOneStream(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.command("sh", "-c", "for i in 1 2 3; do echo out $i; echo err $i >&2; done")
	c.Stderr = c.Stdout
	result := s.run(context.Background(), c)
	require.Equal(t, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n", s.out())
	require.EqualValues(t, len(s.out()), result.StdoutBytes)
	require.Zero(t, result.StderrBytes)
}

func TestOutputCanBeThrownAway(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.command("sh", "-c", "echo out; echo problem >&2")
	c.Stdout, c.Stderr = "", os.DevNull
	result := s.run(context.Background(), c)
	require.EqualValues(t, 4, result.StdoutBytes)
	require.EqualValues(t, 8, result.StderrBytes)
}

func TestOutputThatCannotBeWrittenIsAnErrorAndDoesNotStopTheCommand(t *testing.T) {
	s := start(t)
	limit := unix.Rlimit{Cur: 4096, Max: 4096} // like a full disk
	require.NoError(t, unix.Prlimit(s.Pid(), unix.RLIMIT_FSIZE, &limit, nil))
	result, err := s.Run(context.Background(), s.command("sh", "-c", "head -c 1000000 /dev/zero; exit 3"))
	require.ErrorContains(t, err, "file too large")
	require.Equal(t, 3, result.ExitCode)
	require.EqualValues(t, 1000000, result.StdoutBytes)
}

func TestOutputCanBeFollowedWhileTheCommandRuns(t *testing.T) {
	t.Parallel()
	s := start(t)
	require.NoError(t, unix.Mkfifo(s.path("go"), 0o600))
	done := make(chan supervisor.Result, 1)
	go func() {
		result, _ := s.Run(context.Background(), s.command("sh", "-c", "echo early; read line < go; echo late"))
		done <- result
	}()
	require.Eventually(t, func() bool {
		data, _ := os.ReadFile(s.path("out"))
		return string(data) == "early\n"
	}, patience, often)
	require.NoError(t, os.WriteFile(s.path("go"), []byte("\n"), 0))
	<-done
	require.Equal(t, "early\nlate\n", s.out())
}

func TestOutputThatIsStillInThePipeWhenTheCommandEndsIsKept(t *testing.T) {
	t.Parallel()
	s := start(t)
	require.NoError(t, unix.Mkfifo(s.path("go"), 0o600))
	for range 20 {
		done := make(chan supervisor.Result, 1)
		go func() {
			result, _ := s.Run(context.Background(), s.command("sh", "-c", "echo $$ > pid; read line < go; exec head -c 60000 /dev/zero"))
			done <- result
		}()
		command := pid(t, s.path("pid"))
		require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGSTOP))
		require.NoError(t, os.WriteFile(s.path("go"), []byte("\n"), 0))
		gone(t, command)
		require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGCONT))
		require.EqualValues(t, 60000, (<-done).StdoutBytes)
		require.NoError(t, os.Remove(s.path("pid")))
	}
}

func TestAStrangerWhoHoldsTheOutputDoesNotHoldUpRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	require.NoError(t, unix.Mkfifo(s.path("go"), 0o600))
	done := make(chan supervisor.Result, 1)
	go func() {
		result, _ := s.Run(context.Background(), s.command("sh", "-c", "echo $$ > pid; read line < go; echo the end"))
		done <- result
	}()
	stranger, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", pid(t, s.path("pid"))), os.O_WRONLY, 0)
	require.NoError(t, err)
	defer stranger.Close()
	require.NoError(t, os.WriteFile(s.path("go"), []byte("\n"), 0))
	select {
	case result := <-done:
		require.Zero(t, result.ExitCode)
		require.Less(t, result.Elapsed, patience)
		require.Equal(t, "the end\n", s.out())
	case <-time.After(patience):
		require.Fail(t, "Run waits for the stranger")
	}
}

// What is looked for is found wherever it passes: in what is kept, in what is lost, at a cut, in the last line.
func TestLinesAreFoundInOutputThatIsNotKept(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.command("sh", "-c", `
		echo first METRIC a=1
		yes x | head -n 2500000
		printf '\033[1mMETRIC\033[0m b=2\rMETRIC c=3\n'
		yes other | head -n 2500000
		printf 'METRIC d=4'`)
	c.Find = []string{"METRIC [a-d]=", "never"}
	result := s.run(context.Background(), c)
	require.Zero(t, result.ExitCode)

	found, err := os.ReadFile(c.Stdout + supervisor.FoundSuffix)
	require.NoError(t, err)
	require.Equal(t, "first METRIC a=1\n\x1b[1mMETRIC\x1b[0m b=2\nMETRIC c=3\nMETRIC d=4\n", string(found))

	head, tail, lost := supervisor.Kept([]byte(s.out()))
	require.Equal(t, result.StdoutBytes, int64(len(head)+len(tail))+lost)
	require.True(t, strings.HasPrefix(string(head), "first METRIC a=1\nx\n"))
	require.NotContains(t, string(head)+string(tail), "[pawl")
	require.True(t, strings.HasSuffix(string(tail), "other\nMETRIC d=4"))
}

func TestOfAShortOutputNothingIsLost(t *testing.T) {
	text := []byte("[pawl: 5 bytes left out here]\n")
	head, tail, lost := supervisor.Kept(text)
	require.Equal(t, text, head)
	require.Empty(t, tail)
	require.Zero(t, lost)
}
