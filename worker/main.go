// Worker is the program that works on loops in production: this host's worker, and nothing else, for the Temporal
// service in the settings. It links no server. It only wires the parts together; start reading at internal/worker.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"go.temporal.io/sdk/worker"

	"pawl/internal/agent/acp"
	"pawl/internal/cli"
	"pawl/internal/exec/supervisor"
)

func main() {
	acp.Main()        // never returns if this process speaks to an agent
	supervisor.Main() // never returns if this process is a loop's supervisor
	// Otherwise the SDK reads the whole binary to compute a checksum.
	worker.SetBinaryChecksum("pawl")
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	os.Exit(cli.Serve(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, cli.Deps{Program: "worker", Signals: signals}))
}
