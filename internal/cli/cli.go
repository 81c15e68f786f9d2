package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	sdk "go.temporal.io/sdk/client"

	"pawl/config"
	"pawl/internal/cli/doctor"
	"pawl/internal/cli/render"
	"pawl/internal/engine/auth"
	hostworker "pawl/internal/worker"
)

// Deps are the parts of the world that a program or a test passes.
type Deps struct {
	// Program is the name under which the program was called, "" for pawl.
	Program string
	// Embedded provides the engine. If it is nil, there is only the service that Temporal's settings name.
	Embedded *Embedded
	// Thin marks a program that starts and steers loops and never works on them. It has none of the commands that
	// work on loops, and the loops that it follows run in somebody else's worker.
	Thin bool
	// Signals delivers SIGINT, SIGTERM and SIGHUP. The commands that follow a loop read them themselves; the others
	// end at the first signal.
	Signals <-chan os.Signal

	// The fields below default to those of a real process.
	Dial     func(context.Context, config.Temporal, string, *slog.Logger) (sdk.Client, error)
	Worker   func(context.Context, hostworker.Options) error
	Terminal func(any) bool
	Now      func() time.Time
	After    func(time.Duration) <-chan time.Time
}

// Embedded is the engine that a program contains.
type Embedded struct {
	// Share starts the engine of a folder, or joins the one that another process runs.
	Share func(ctx context.Context, dir string, auth auth.Wish, logger *slog.Logger) (Engine, error)
	// Find returns the running engine of a folder. It starts none.
	Find func(ctx context.Context, dir string) (e Found, ok bool)
	// Unanswered returns why a running engine that Find does not find does not answer, nil if none runs.
	Unanswered func(dir string) error
	// Look examines the engine of a folder and changes nothing.
	Look func(ctx context.Context, dir string) (doctor.Engine, error)
}

// Found is an embedded engine that runs.
type Found struct {
	Address string
	// Link returns the address of a page of the Temporal UI. If the engine requires a token, it is good for one
	// visit.
	Link func(page string) string
	// Pass is the pass that the engine requires, nil if it requires none.
	Pass *auth.Pass
	// ID distinguishes it from any other engine at the same address.
	ID string
}

// Engine is this process's share in an embedded engine.
type Engine interface {
	Found() Found
	Owner() bool      // whether this process runs it
	Moved() bool      // whether it had to use another port than Temporal's own
	Replaced() string // the database that it moved aside, "" for none
	Close() error
}

// app is one execution of the command line.
type app struct {
	deps   Deps
	in     io.Reader
	out    io.Writer
	err    io.Writer
	screen *render.Screen // on stderr
	logs   io.Writer      // where the log is written, nil for a file under $PAWL_HOME
	told   *slog.Logger   // gets the program's own messages, nil if they are shown to people
	worker config.Worker
	auth   auth.Wish   // for the engine that a command starts
	typed  chan string // the lines of stdin, nil before the first question
	// reading is the change or contract that is asked about, while it is read.
	reading *pages
	// contract is the whole text of the contract that is asked about.
	contract string
	notes    []string // of that contract

	json bool
	// answered says that something was printed as JSON: an error after that is in it, or only on stderr.
	answered bool
	asked    bool // for the version
	ran      bool // the arguments were understood
}

// Execute runs a command line and returns its exit code. Data goes to stdout, everything else to stderr.
func Execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, d Deps) int {
	a := newApp(stdin, stdout, stderr, d)
	return a.execute(ctx, a.root(), args)
}

// Serve is Execute for the program that is only this host's worker. The messages of worker and SDK go to stderr,
// where a service manager collects them.
func Serve(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, d Deps) int {
	a := newApp(stdin, stdout, stderr, d)
	a.logs = stderr
	if config.JSONLog() { // each line is JSON, so nothing else is written there
		a.told, _ = config.Logger(stderr) // an invalid level is reported when the log is opened
	}
	return a.execute(ctx, a.workerCommand(), args)
}

func newApp(stdin io.Reader, stdout, stderr io.Writer, d Deps) *app {
	d.Program = cmp.Or(d.Program, "pawl")
	if d.Dial == nil {
		d.Dial = config.Dial
	}
	if d.Worker == nil {
		d.Worker = hostworker.RunWorker
	}
	if d.Terminal == nil {
		d.Terminal = func(v any) bool { _, ok := render.Terminal(v); return ok }
	}
	if d.After == nil {
		d.After = time.After
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return &app{deps: d, in: stdin, out: stdout, err: stderr, screen: render.NewScreen(stderr)}
}

func (a *app) execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(helpCommand())
	a.common(root)
	root.SetArgs(negative(root, args))
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.ran {
		err = usage(together.ReplaceAllString(goWords.ReplaceAllString(err.Error(), ""), "--$1 and --$2 can't be used together"))
	}
	a.screen.Still()
	if misused, ok := errors.AsType[*usageError](err); ok {
		misused.of = cmd.CommandPath()
	}
	a.explain(err)
	if err := a.explainJSON(err); err != nil {
		a.say("the error can't be written as JSON: %s", err)
	}
	return exitCode(err)
}

// goWords is the part of the flag library's errors that only a Go programmer understands.
var goWords = regexp.MustCompile(`strconv\.[A-Za-z]+: `)

// together matches the error of the flag library for two flags that exclude each other.
var together = regexp.MustCompile(`^if any flags in the group \[(\S+) (\S+)\] are set none of the others can be; .*`)

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   a.deps.Program,
		Short: "Durable, governed loops for coding agents",
		Long: `pawl runs a coding agent in a loop that can only move forward: every change is
committed, judged by commands and policies that the agent cannot touch, and then
kept or undone. The loop survives the death of any process; people steer it from
here, from the Temporal CLI or from the Temporal UI.

` + exitTable(),
		// An unknown command is an error that names similar commands.
		Args: noArguments,
		RunE: a.command(func(cmd *cobra.Command, _ []string) error { return cmd.Help() }),
	}
	if !a.deps.Thin {
		root.AddCommand(a.demoCommand(), a.upCommand())
	}
	root.AddCommand(
		a.initCommand(), a.validateCommand(), a.runCommand(), a.startCommand(),
		a.listCommand(), a.showCommand(), a.watchCommand(), a.inboxCommand(), a.logCommand(), a.diffCommand(), a.reportCommand(),
		a.approveCommand(), a.rejectCommand(), a.applyCommand(), a.answerCommand(), a.extendCommand(), a.amendCommand(),
		a.steerCommand(), a.pauseCommand(), a.continueCommand(), a.haltCommand(), a.modeCommand(),
		a.stewardCommand(), a.doctorCommand(), a.cleanCommand(),
	)
	return a.versioned(root)
}

// common adds the flags that all commands have.
func (a *app) common(root *cobra.Command) {
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print data as JSON")
}
