// Starter is the program that starts and steers loops on any Temporal service: the command line of pawl without
// engine and worker. It links no server. It only wires the parts together; start reading at internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"pawl/internal/agent/acp"
	"pawl/internal/cli"
	"pawl/internal/exec/supervisor"
)

func main() {
	acp.Main()        // never returns if this process speaks to an agent
	supervisor.Main() // never returns if this process supervises commands that are tried before a start
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	os.Exit(cli.Execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, cli.Deps{Program: "starter", Thin: true, Signals: signals}))
}
