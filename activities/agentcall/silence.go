package agentcall

import (
	"context"
	"fmt"
	"os"
	"time"

	"pawl/internal/exec/supervisor"
	"pawl/internal/lib/fsutil/dirfd"
)

// silence is how long a program has printed nothing, and what its processes did meanwhile.
type silence struct {
	limit   time.Duration // 0 for none
	heard   time.Time     // when the program last printed something
	works   works
	tooLong bool // the program has to be ended
}

// mostSilence is by how many times work extends limits.silence. A program that spins must not hang for ever.
const mostSilence = 3

func (s *silence) begin(effort func() supervisor.Effort) {
	s.heard = time.Now()
	s.works = works{effort: effort}
}

// look decides whether the program has printed nothing for too long. What it does meanwhile counts.
func (s *silence) look(now time.Time) {
	quiet := now.Sub(s.heard)
	if s.limit <= 0 || quiet <= s.limit/4 {
		s.tooLong = false
		return
	}

	s.works.look(now, min(s.limit/4, 5*time.Second))
	idle := quiet > s.limit && now.Sub(s.works.last) > s.limit
	s.tooLong = idle || quiet > mostSilence*s.limit
}

// worked reports whether processes of the program were at work while it printed nothing.
func (s *silence) worked() bool { return s.works.last.After(s.heard) }

// failure says why the program was ended.
func (s *silence) failure() string {
	if s.worked() {
		return fmt.Sprintf("it said nothing for more than %s (limits.silence; work of its processes extends that at most threefold)", s.limit)
	}
	return fmt.Sprintf("it said nothing for %s (limits.silence)", s.limit)
}

// works follows whether a program works, by what its processes use.
type works struct {
	effort func() supervisor.Effort
	at     time.Time // of the last look
	used   supervisor.Effort
	last   time.Time // when it last was seen at work
}

// A program works if it uses a fifth of a core, or moves that many bytes between two looks. One that only draws a spinner
// or waits for an answer does not.
const (
	workingShare = 5
	workingBytes = 64 << 10
)

func (w *works) look(now time.Time, apart time.Duration) {
	quiet := now.Sub(w.at)
	if quiet < apart {
		return
	}
	used, first := w.effort(), w.at.IsZero()
	cpu, bytes := used.CPU-w.used.CPU, used.Bytes-w.used.Bytes
	w.at, w.used = now, used
	if !first && (cpu >= quiet/workingShare || bytes >= workingBytes) {
		w.last = now
	}
}

// run runs a program whose stdout is no stream, and ends it once it has printed nothing for too long.
func (s *silence) run(
	ctx context.Context, host *supervisor.Supervisor, command supervisor.Command,
) (supervisor.Result, error) {
	s.begin(host.Effort)
	var printedAt time.Time
	return watch(ctx, host, command, func() bool {
		if latest := lastWrite(command.Stdout, command.Stderr); latest.After(printedAt) {
			printedAt, s.heard = latest, time.Now()
		}
		s.look(time.Now())
		return s.tooLong
	})
}

// lastWrite returns when the latest of the files was written. Their sizes say less: a long output is kept in a ring.
func lastWrite(paths ...string) (latest time.Time) {
	for _, path := range paths {
		info, err := os.Stat(dirfd.At(path))
		if err == nil && info.ModTime().After(latest) {
			latest = info.ModTime()
		}
	}
	return latest
}
