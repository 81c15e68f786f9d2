package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	sdk "go.temporal.io/sdk/client"

	"pawl/config"
	"pawl/internal/cli/doctor"
	"pawl/internal/cli/render"
	"pawl/internal/client/launch"
	"pawl/internal/engine/auth"
	"pawl/internal/fault"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
	"pawl/internal/spec"
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
	if misused, is := errors.AsType[*usageError](err); is {
		misused.of = cmd.CommandPath()
	}
	a.explain(err)
	if err := a.explainJSON(err); err != nil {
		a.say("the error can't be written as JSON: %s", err)
	}
	return exitCode(err)
}

// takesNumber annotates a command whose last argument is a number.
const takesNumber = "number"

// negative moves a negative number behind `--` if the command takes a number. Elsewhere a word such as -5 is a flag.
func negative(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd.Annotations[takesNumber] == "" || slices.Contains(args, "--") {
		return args
	}
	i := slices.IndexFunc(args, func(arg string) bool {
		n, err := strconv.Atoi(arg)
		return err == nil && n < 0
	})
	if i < 0 {
		return args
	}
	if flag, long := strings.CutPrefix(args[i-1], "--"); long {
		if f := cmd.Flag(flag); f != nil && f.NoOptDefVal == "" {
			return args // the value of that flag
		}
	}
	return append(slices.Delete(slices.Clone(args), i, i+1), "--", args[i])
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

// command wraps the function of a command. Once it runs, the arguments are understood: its error is no usage error.
func (a *app) command(do func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.ran = true
		if a.asked {
			return a.printVersion()
		}
		if err := blank(cmd, args); err != nil {
			return err
		}
		return a.suggesting(cmd.Context(), args, do(cmd, args))
	}
}

// suggesting returns the error of a command. If nobody knows the loop or steward that its first argument names, the error
// says which one may have been meant.
func (a *app) suggesting(ctx context.Context, args []string, err error) error {
	unknown, is := errors.AsType[*fault.Error](err)
	if !is || unknown.Code != fault.LoopNotFound || len(args) == 0 {
		return err
	}
	_ = a.visit(ctx, func(s *session) error {
		rows, err := s.Listed(ctx)
		ids := list.Map(rows, func(r launch.Row) string { return r.Loop })
		if meant := spec.Alike(args[0], ids); err == nil && meant != "" && !slices.Contains(ids, args[0]) {
			unknown = fault.New(unknown.Code, "%s%s", unknown.What, meaning(meant)).Advise(unknown.Do)
		}
		return nil
	})
	return unknown
}

// blank refuses empty arguments, as of a variable that is not set. For a steward, no task would mean all of them.
func blank(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return usage("an argument of " + cmd.CommandPath() + " is empty")
		}
	}
	if f := cmd.Flags().Lookup("task"); f != nil && f.Changed && strings.TrimSpace(f.Value.String()) == "" {
		return usage("--task is empty; leave it out if you mean no task")
	}
	return nil
}

// brief wraps a command that ends at the first signal.
func (a *app) brief(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return a.command(func(cmd *cobra.Command, args []string) error {
		ctx, stop := a.untilSignal(cmd.Context())
		defer stop()
		return do(ctx, args)
	})
}

// visiting wraps a brief command that only reads or answers.
func (a *app) visiting(do func(ctx context.Context, s *session, args []string) error) func(*cobra.Command, []string) error {
	return a.brief(func(ctx context.Context, args []string) error {
		return a.visit(ctx, func(s *session) error { return do(ctx, s, args) })
	})
}

// visitingLoop is visiting for a command about a loop, this folder's if none is named.
func (a *app) visitingLoop(u unnamed, do func(ctx context.Context, s *session, args []string) error) func(*cobra.Command, []string) error {
	return a.brief(a.naming(u, func(ctx context.Context, args []string) error {
		return a.visit(ctx, func(s *session) error { return do(ctx, s, args) })
	}))
}

// untilSignal returns a context that ends at the first signal. stop releases the signals.
func (a *app) untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-a.deps.Signals:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// say writes a message of the program itself to stderr, or to its log.
func (a *app) say(format string, args ...any) {
	text := dirfd.Known(fmt.Sprintf(format, args...))
	if a.told != nil {
		a.told.Info(text)
		return
	}
	a.screen.Print(a.hung("pawl: " + text))
}

// hung wraps the lines of a message at a terminal, behind the width of "pawl: ".
func (a *app) hung(text string) string {
	style := a.screen.Style()
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = style.Hang(line, len("pawl: "))
	}
	return strings.Join(lines, "\n")
}

// terminal reports whether there is a person to ask: stdin and stderr are terminals.
func (a *app) terminal() bool { return a.deps.Terminal(a.in) && a.deps.Terminal(a.err) }

// style returns how data is rendered on stdout.
func (a *app) style() render.Style { return render.NewScreen(a.out).Style() }

// print writes data for people to stdout.
func (a *app) print(text string) error {
	_, err := io.WriteString(a.out, strings.TrimSuffix(text, "\n")+"\n")
	return err
}

// output writes a value to stdout: as JSON with --json, else as text for people.
func (a *app) output(v any, text string) error {
	if a.json {
		return a.printJSON(v)
	}
	return a.print(text)
}

// printJSON writes a value to stdout as indented JSON.
func (a *app) printJSON(v any) error {
	a.answered = true
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// explain says what went wrong and what to do, without the names of Go types.
func (a *app) explain(err error) {
	var problems spec.Problems
	var f *fault.Error
	var left *leaving
	var misused *usageError
	switch {
	case exitCode(err) == exitOK:
	case a.told != nil:
		advice := ""
		if errors.As(err, &f) {
			advice = f.Advice()
		}
		a.told.Error(dirfd.Known(err.Error()), "code", fault.CodeOf(err), "advice", advice)
	case errors.As(err, &misused):
		a.say("%s", render.Clean(misused.what))
		a.indent(fmt.Sprintf("See `%s --help`.", cmp.Or(misused.of, a.deps.Program)))
	case errors.As(err, &left):
		if left.why != "" {
			a.say("%s", left.why)
		}
	case errors.As(err, &problems):
		what := "the spec is invalid"
		if errors.Is(err, errTask) {
			what = errTask.Error()
		}
		a.say("%s (%s)", what, fault.InvalidSpec)
		for _, p := range problems {
			a.screen.Print(a.hung("  " + render.Clean(p.String())))
		}
	case errors.As(err, &f):
		what, more, _ := strings.Cut(strings.TrimSpace(f.What), "\n")
		a.say("%s (%s)", render.Clean(what), f.Code)
		a.indent(more)
		a.indent(f.Advice())
	default:
		what, more, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
		a.say("%s", render.Clean(what))
		a.indent(more)
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			a.indent("Make room on that disk: `pawl doctor` says how much is free, and `pawl clean` lists what ended loops still occupy.")
		}
	}
}

// failure is an error as --json prints it.
type failure struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Fix     string     `json:"fix,omitempty"`
}

// failureOf returns an error as --json prints it, nil for one that ends a command which has said everything.
func failureOf(err error) *failure {
	var problems spec.Problems
	var f *fault.Error
	var left *leaving
	var misused *usageError
	switch {
	case exitCode(err) == exitOK:
		return nil
	case errors.As(err, &left):
		if left.why == "" {
			return nil
		}
		return &failure{fault.Cancelled, left.why, ""}
	case errors.As(err, &misused):
		return &failure{fault.InvalidMessage, misused.what, fmt.Sprintf("See `%s --help`.", misused.of)}
	case errors.As(err, &problems):
		lines := list.Map(problems, func(p spec.Problem) string { return p.String() })
		return &failure{fault.InvalidSpec, strings.Join(lines, "\n"), fault.Recovery(fault.InvalidSpec)}
	case errors.As(err, &f):
		return &failure{f.Code, f.What, f.Advice()}
	}
	return &failure{fault.InfrastructureError, strings.TrimSpace(err.Error()), ""}
}

// explainJSON prints an error to stdout as {"error": {...}}, if --json was given and nothing was printed yet.
func (a *app) explainJSON(err error) error {
	said := failureOf(err)
	if !a.json || a.answered || a.told != nil || said == nil {
		return nil
	}
	said.Message, said.Fix = dirfd.Known(said.Message), dirfd.Known(said.Fix)
	return a.printJSON(struct {
		Error *failure `json:"error"`
	}{said})
}

// oneLine returns an error and what to do about it within a sentence.
func oneLine(err error) string {
	return render.Clean(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
}

// indent writes the rest of a message, which may quote a command's output.
func (a *app) indent(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = render.Clean(line); line != "" {
			a.screen.Print(a.hung("      " + line))
		}
	}
}
