package agentcall

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"pawl/internal/agent/adapter"
	"pawl/internal/agent/transcript"
	"pawl/internal/exec/supervisor"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
)

// Call makes one call of a streaming agent as Step does, without a loop around it. It follows command.OutputLimit bytes of
// the output, if that is set.
func Call(ctx context.Context, s *supervisor.Supervisor, use string, in api.Call, command supervisor.Command, tell func(loop.Usage, string)) (api.Called, error) {
	adapter, _ := adapter.Lookup(use)
	limit := command.OutputLimit
	command.OutputLimit = cmp.Or(limit, streamLimit)
	c, err := newCall(adapter, in.Budget, command.Stdout, tell)
	if err != nil {
		return api.Called{}, err
	}
	c.limit = limit
	c.quiet.limit = time.Duration(in.SilenceMs) * time.Millisecond
	result, err := c.run(ctx, s, command)
	out := api.Called{Outcome: api.Outcome{ExitCode: result.ExitCode, Signal: result.Signal, TimedOut: result.TimedOut, Interrupted: result.Interrupted, StartError: result.StartError, Log: filepath.Dir(command.Stdout)}}
	_, refusal := c.collect(&out)
	(&Exchange{call: c}).classify(&out, refusal, time.Now())
	return out, err
}

// Collect reads what an agent without a stream left in a folder.
func Collect(dir string, exitCode int) api.Called {
	out := api.Called{Outcome: api.Outcome{ExitCode: exitCode, Log: dir}}
	(&Exchange{Dir: dir}).Collect(&out, filepath.Join(dir, "stdout"), api.Call{})
	return out
}

// Retold returns the transcript of an output in a file, after those of attempts that were lost.
func Retold(use, file string, lost ...string) (string, error) {
	adapter, _ := adapter.Lookup(use)
	var t transcript.Writer
	err := (&call{adapter: adapter, file: file, lost: lost}).retell(&t)
	return string(t.Bytes()), err
}
