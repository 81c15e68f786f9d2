// Package doctor checks that everything pawl needs is installed and works: Temporal, its own engine, git, space on
// the disk, agents, what a sandbox needs, the clock. Each problem is listed with its fix. It repairs nothing, and
// starts only what it has to try (a sandbox, a program's version). Start at Examine.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	sdk "go.temporal.io/sdk/client"

	"pawl/config"
	"pawl/internal/cli/render"
	"pawl/internal/client"
	"pawl/internal/engine/auth"
	"pawl/internal/home"
)

// The status of a finding: OK needs no action, Note is worth knowing, Failed keeps pawl from working.
const (
	OK     = "ok"
	Note   = "note"
	Failed = "failed"
)

// Row is one finding.
type Row = render.Finding

// Options says what to check.
type Options struct {
	// Home is pawl's folder; HomeErr is why it can't be used.
	Home    home.Home
	HomeErr error
	// Temporal has the settings of the connection; TemporalErr is why they can't be used.
	Temporal    config.Temporal
	TemporalErr error
	// Dial connects to a Temporal service.
	Dial func(context.Context, config.Temporal) (sdk.Client, error)
	// Engine returns what is known about the embedded engine; nil if this program has none.
	Engine func(ctx context.Context, dir string) (Engine, error)
	// Worker returns the environment of this host's worker, which starts the agents; false if none runs. Which returns the
	// path of a program in an environment, "" if it is not there.
	Worker func() ([]string, bool)
	Which  func(env []string, name string) string
	// Troubles returns the loops of this host that can't continue, each with the reason; nil if nobody knows them.
	Troubles func(context.Context) ([]client.Trouble, error)
}

// Engine is what is known about the embedded engine.
type Engine struct {
	Running                   bool
	Address, UI               string
	Held                      bool   // a process holds its lock
	Owner                     int    // that process
	Database, Version, Wanted string // the file, its schema ("" for no file) and the one that this program writes
	Damaged                   bool
	Unread                    string // the rows of the file that can't be read
	Size                      int64
	Taken                     []string   // its usual addresses that other programs use
	Pass                      *auth.Pass // the pass that it requires, nil if it requires none
	ID                        string     // identifies the engine
}

// Examine checks everything.
func Examine(ctx context.Context, o Options) []Row {
	wall, began := time.Now().Round(0), time.Now()
	e := &examination{ctx: ctx, o: o}
	e.home()
	e.temporal()
	e.git()
	e.disk()
	e.agents()
	e.loops()
	e.mended()
	e.rows = append(e.rows, sandbox()...)
	// Last, because it compares two clocks over the time of all other checks.
	e.clock(time.Now().Round(0).Sub(wall), time.Since(began))
	return e.rows
}

// examination collects findings.
type examination struct {
	ctx  context.Context
	o    Options
	rows []Row
}

func (e *examination) ok(name, format string, args ...any) { e.add(name, OK, "", format, args...) }
func (e *examination) note(name, fix, format string, args ...any) {
	e.add(name, Note, fix, format, args...)
}
func (e *examination) failed(name, fix, format string, args ...any) {
	e.add(name, Failed, fix, format, args...)
}

func (e *examination) add(name, status, fix, format string, args ...any) {
	e.rows = append(e.rows, Row{Name: name, Status: status, What: fmt.Sprintf(format, args...), Fix: fix})
}

// Sound reports whether nothing failed.
func Sound(rows []Row) bool {
	return !slices.ContainsFunc(rows, func(r Row) bool { return r.Status == Failed })
}
