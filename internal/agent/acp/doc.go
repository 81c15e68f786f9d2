// Package acp is pawl's client for agents that speak the Agent Client Protocol: `agent.use: acp`. In the sandbox,
// pawl's own program starts the agent, sends it the prompt, answers its questions by what the contract approves, and
// prints what the agent does as lines of JSON. internal/agent/adapter reads these like those of any other program. The
// client decides nothing about a loop, offers the agent neither files nor a terminal, and keeps nothing. Start at
// Main.
package acp

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"pawl/internal/agent/adapter"
	"pawl/internal/metric"
	"pawl/internal/spec/agents"
)

// Main runs the client if this process was started for it, and then never returns. Every program of pawl calls it
// first.
func Main() {
	if len(os.Args) < 2 || os.Args[1] != adapter.ACPCommand {
		return
	}
	o, err := read(os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "reading the prompt:", err)
		os.Exit(1)
	}
	o.Prompt = string(prompt)
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Options are the input of a call of an agent.
type Options struct {
	Rules
	Argv   []string // the agent
	Model  string   // "" for the agent's own
	Dir    string   // the folder in which it works
	Prompt string
	Tools  int64           // how many tool calls are left, negative for any number
	Cost   *metric.Decimal // how many USD are left, nil for no limit
}

// read reads the arguments that the package adapter makes for this client.
func read(args []string) (o Options, err error) {
	f := flag.NewFlagSet(adapter.ACPCommand, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	var approved []string
	f.Func("approve", "an entry of approvals.tools", func(v string) error {
		approved = append(approved, v)
		return nil
	})
	f.Func("cost", "the USD that are left", func(v string) error {
		d, err := metric.ParseDecimal(v)
		o.Cost = &d
		return err
	})
	f.StringVar(&o.Model, "model", "", "the model")
	f.Int64Var(&o.Tools, "tools", -1, "the tool calls that are left")
	at := slices.Index(args, "--")
	if at < 0 || at == len(args)-1 {
		return o, fmt.Errorf("%s needs the command of an agent: %s", adapter.ACPCommand, strings.Join(args, " "))
	}
	if err := f.Parse(args[:at]); err != nil {
		return o, fmt.Errorf("%s: %w", adapter.ACPCommand, err)
	}
	o.Argv, o.Approved = args[at+1:], agents.Approve(approved)
	o.Dir, err = os.Getwd()
	return o, err
}
