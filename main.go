// Pawl is everything in one program: the embedded Temporal engine with its UI, the worker and
// the commands. It wires them and does nothing else; start reading at internal/cli.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"go.temporal.io/sdk/worker"

	"pawl/internal/agent/acp"
	"pawl/internal/cli"
	"pawl/internal/cli/doctor"
	"pawl/internal/engine"
	"pawl/internal/engine/auth"
	"pawl/internal/engine/headroom"
	"pawl/internal/exec/supervisor"
	hostworker "pawl/internal/worker"
)

func main() {
	headroom.Release()
	acp.Main()        // never returns where this process speaks to an agent
	supervisor.Main() // never returns where this process is a loop's supervisor
	hostworker.Pin()
	// Else the SDK reads the whole binary, the server with it, to make a checksum.
	worker.SetBinaryChecksum("pawl")
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	os.Exit(cli.Execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, cli.Deps{
		Embedded: &cli.Embedded{Share: share, Find: find, Unanswered: engine.Unanswered, Look: look},
		Signals:  signals,
	}))
}

// slack is how much garbage may lie about beside as much as lives.
var slack []byte

func share(ctx context.Context, dir string, auth auth.Wish, logger *slog.Logger) (cli.Engine, error) {
	// The engine makes much garbage of little data: twenty megabytes live, collected ten times a
	// second. A step's time is mostly the processor's, so memory is spent on it, and no more of it
	// where more lives: what is never written to takes none, but counts for when to collect.
	slack = make([]byte, 80<<20)
	runtime.KeepAlive(slack)
	e, err := engine.Share(ctx, engine.Options{Dir: dir, Auth: auth, Logger: logger, SearchAttributes: hostworker.SearchAttributes})
	if err != nil {
		return nil, err // and not a nil *Engine in an interface that is none
	}
	return owned{e}, nil
}

// owned is an engine as commands know it.
type owned struct{ *engine.Engine }

// Found is where the engine is now.
func (e owned) Found() cli.Found { return found(e.Endpoint()) }

func found(e engine.Endpoint) cli.Found {
	return cli.Found{Address: e.Address, Link: e.Link, Pass: e.Pass(), ID: e.ClusterID}
}

func find(ctx context.Context, dir string) (e cli.Found, ok bool) {
	at, ok := engine.Find(ctx, dir)
	return found(at), ok
}

func look(ctx context.Context, dir string) (doctor.Engine, error) {
	r, err := engine.Look(ctx, dir)
	return doctor.Engine(r), err
}
