package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
	"pawl/internal/lib/toolpath"
)

// Error is a git process that failed. The cause is the machine or a repository, never the quality of a change.
type Error struct {
	Args     []string // without the options that all processes of the Runner get
	ExitCode int      // -1 if git could not be started or a signal ended it
	Stderr   string   // the last 4 KiB at most
	Err      error    // the context's error, or why git could not be started
}

func (e *Error) Error() string {
	name := "git"
	if len(e.Args) > 0 {
		name += " " + e.Args[0]
	}
	switch {
	case errors.Is(e.Err, exec.ErrNotFound):
		return name + ": git is not on PATH; install it"
	case e.Err != nil:
		return fmt.Sprintf("%s: %v", name, e.Err)
	case e.Stderr == "":
		return fmt.Sprintf("%s: exit status %d", name, e.ExitCode)
	}
	return fmt.Sprintf("%s: exit status %d: %s", name, e.ExitCode, strings.TrimSpace(e.Stderr))
}

func (e *Error) Unwrap() error { return e.Err }

// NoRoom reports whether git could not write because the disk is full.
func (e *Error) NoRoom() bool {
	return strings.Contains(e.Stderr, "No space left on device") || strings.Contains(e.Stderr, "Disk quota exceeded")
}

// Starved reports whether a system call failed because the machine, or this process, had no files, processes or memory
// left. It says nothing about what git would have found.
func Starved(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM}, func(item error) bool { return errors.Is(err, item) })
}

// Exited reports whether err is a git process that exited with one of the codes.
func Exited(err error, codes ...int) bool {
	e := Failure(err)
	return e != nil && slices.Contains(codes, e.ExitCode)
}

// Failure returns the git process that ran to its end and failed, nil if err is anything else.
func Failure(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok && e.Err == nil {
		return e
	}
	return nil
}

// hardened is the configuration of every git process on a repository of pawl's own. It comes first on the command
// line, so it overrides every file, and git passes it to its children that work on the same repository.
var hardened = []string{
	// Nothing in a repository can name a program that runs here: no hooks, no file system monitor, no helper of the
	// ext:: transport. Attributes name filters, textconv and merge drivers, but only configuration defines them, and
	// git reads no configuration that a desk can write.
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.alternateRefsCommand=:",
	"protocol.ext.allow=never",
	"submodule.recurse=false",
	// A store is read while others write to it, so only the store itself repacks it.
	"gc.auto=0",
	"maintenance.auto=false",
	// What a ledger entry names survives a power cut: objects, packs and refs are on disk before the process that
	// wrote them reports success. The index is a cache and need not survive.
	"core.fsync=committed",
	"core.logAllRefUpdates=false",
	// The same tree gives the same change on every host and for every user.
	"core.attributesFile=/dev/null",
	"core.excludesFile=/dev/null",
	"core.autocrlf=false",
	"core.safecrlf=false",
	"core.ignoreCase=false",
	"core.precomposeUnicode=false",
	"core.symlinks=true",
	"core.fileMode=true",
	// Names that macOS or Windows treats as .git are refused on every host.
	"core.protectHFS=true",
	"core.protectNTFS=true",
	// An agent can't set the ctime back. So it shows a rewrite of the same size with a restored mtime.
	"core.trustctime=true",
	"core.checkStat=default",
	"core.untrackedCache=false",
	// The package worktree reads index versions 2 and 3, in one file.
	"index.version=2",
	"core.splitIndex=false",
	"core.sparseCheckout=false",
	"pack.writeReverseIndex=false",
	"advice.addEmbeddedRepo=false",
}

// Runner runs git in one place with one configuration. The zero Runner is for questions that need no repository.
type Runner struct {
	dir    string        // working directory
	in     *dirfd.Folder // the working directory if not nil, whatever is at its path now
	env    []string      // set on top of the cleaned environment
	config []string
	user   bool // with the user's configuration and credentials
}

// Hardened returns a Runner for a bare repository of pawl's own.
func Hardened(dir string) Runner {
	return Runner{dir: dir, env: []string{"GIT_DIR=" + dir}, config: hardened}
}

// AsUser returns a Runner for the user's repository with the user's configuration, which says what is ignored and who
// the user is. No hook and no file system monitor runs. Filters do run: they decide what the repository's files look
// like.
func AsUser(dir string) Runner {
	return Runner{dir: dir, user: true, config: []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=keep", "core.protectHFS=true", "core.protectNTFS=true",
	}}
}

// WithCredentials returns the same Runner with the user's configuration for other repositories: credentials, proxies,
// ssh, url rewriting, safe.directory. No transport runs a command from an address, whatever the user's configuration
// allows.
func (r Runner) WithCredentials() Runner {
	r.user = true
	return r.With("GIT_ALLOW_PROTOCOL=file:git:http:https:ssh")
}

// In returns the same Runner in a held folder.
func (r Runner) In(f *dirfd.Folder) Runner {
	r.in = f
	return r
}

// With returns the same Runner with additional environment variables.
func (r Runner) With(env ...string) Runner {
	r.env = slices.Concat(r.env, env)
	return r
}

// Program returns git's full path from package toolpath, "git" if there is none.
func Program() string {
	path, err := toolpath.Path("git")
	if err != nil {
		return "git"
	}
	return path
}

// Command is one git process that has not run yet.
type Command struct {
	Stdin io.Reader // nil: empty
	// Stdout reads the output while git runs. An error ends git; ErrEnough does so without a failure.
	Stdout func(io.Reader) error

	runner  Runner
	args    []string
	held    *os.File // nil for none
	started func()   // called once git has its end of its input
}

// ErrEnough is returned by Command.Stdout when nobody needs the rest of the output.
var ErrEnough = errors.New("enough")

// Command returns a git process with these arguments.
func (r Runner) Command(args ...string) *Command { return &Command{runner: r, args: args} }

// Input sets a text as the command's standard input and returns the command.
func (c *Command) Input(text string) *Command {
	c.Stdin = strings.NewReader(text)
	return c
}

// Holding makes the process and those that it starts have a file as their file 3, nil for none, and returns the command. A
// lock is kept so until they have ended, even if pawl has died.
func (c *Command) Holding(f *os.File) *Command {
	c.held = f
	return c
}

// Run runs git with these arguments and returns its output.
func (r Runner) Run(ctx context.Context, args ...string) ([]byte, error) {
	return r.Command(args...).Run(ctx)
}

// Run starts the process, waits for its end and returns its standard output, unless Stdout has read that. The error
// is *Error if git failed.
func (c *Command) Run(ctx context.Context) ([]byte, error) {
	args := make([]string, 0, 2*len(c.runner.config)+len(c.args))
	for _, setting := range c.runner.config {
		args = append(args, "-c", setting)
	}
	program, err := toolpath.Path("git")
	cmd := exec.CommandContext(ctx, program, args...)
	if err != nil {
		cmd.Err = err
	}
	cmd.Stdin = c.Stdin
	var stderr tail
	cmd.Stderr = &stderr
	if c.held != nil {
		cmd.ExtraFiles = []*os.File{c.held}
	}
	isKnown := c.lead(cmd)
	detach(cmd, c.runner.user)
	// git removes its lock and temporary files on SIGTERM, not on SIGKILL.
	cmd.Cancel = func() error { return signal(cmd, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second

	var out bytes.Buffer
	readErr, err := c.wait(cmd, &out)
	switch {
	case errors.Is(readErr, ErrEnough):
		return nil, nil
	case readErr != nil:
		return nil, readErr
	case err == nil:
		return out.Bytes(), nil
	}
	failed := &Error{Args: c.args, ExitCode: -1, Stderr: Redact(isKnown(stderr.String())), Err: ctx.Err()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		failed.ExitCode = exit.ExitCode()
	}
	if failed.Err == nil && failed.ExitCode < 0 {
		failed.Err = err
	}
	if ctx.Err() != nil {
		_ = signal(cmd, syscall.SIGKILL) // what a cancelled git left running (an ssh, a helper)
	}
	return out.Bytes(), failed
}

// lead sets git's arguments, environment and directory. known replaces descriptors in git's messages by the paths
// that people know.
func (c *Command) lead(cmd *exec.Cmd) (isKnown func(text string) string) {
	r := c.runner
	lent, byFolder := dirfd.Lend(cmd)
	cmd.Args = append(cmd.Args, list.Map(c.args, lent)...)
	cmd.Env = r.environ()
	for _, kv := range r.env {
		name, value, _ := strings.Cut(kv, "=")
		cmd.Env = append(cmd.Env, name+"="+lent(value))
	}
	cmd.Dir = dirfd.At(r.dir)
	if r.in == nil {
		return byFolder
	}
	cmd.Dir = r.in.Here()
	return func(text string) string { return strings.ReplaceAll(byFolder(text), r.in.Within(), r.in.Path) }
}

// wait runs the process to its end. readErr is what Stdout returned.
func (c *Command) wait(cmd *exec.Cmd, out *bytes.Buffer) (readErr, err error) {
	var pipe io.Reader
	if c.Stdout == nil {
		cmd.Stdout = out
	} else if pipe, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	err = cmd.Start()
	runtime.KeepAlive(c.runner.in) // git reaches the folder by its descriptor
	if c.started != nil {
		c.started()
	}
	if err != nil {
		return nil, err
	}
	if c.Stdout != nil {
		if readErr = c.Stdout(pipe); readErr != nil {
			_ = signal(cmd, syscall.SIGTERM)
		}
	}
	return readErr, cmd.Wait()
}

// environ returns pawl's own environment without variables that affect git. Its PATH has no folder that depends on
// git's working directory.
func (r Runner) environ() []string {
	env := make([]string, 0, 48)
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "GIT_") && !(r.user && userVariable(name)) || name == "LANGUAGE" {
			continue
		}
		if name == "PATH" {
			kv = "PATH=" + absolute(os.Getenv(name))
		}
		env = append(env, kv)
	}
	env = append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=/dev/null/none")
	if ssh, err := toolpath.Path("ssh"); r.user && err == nil && os.Getenv("GIT_SSH") == "" { // the user's own setting has priority
		env = append(env, "GIT_SSH="+ssh)
	}
	if !r.user {
		env = append(env, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1")
	}
	return env
}

// absolute returns the folders of a PATH that do not depend on a process's working directory.
func absolute(path string) string {
	return strings.Join(slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return !filepath.IsAbs(dir) }), string(filepath.ListSeparator))
}

// userVariable reports whether a variable says how to reach a remote, or where the user's configuration is. Other
// variables say which repository and index to use.
func userVariable(name string) bool {
	switch name {
	case "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_PROXY_COMMAND",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM":
		return true
	}
	return strings.HasPrefix(name, "GIT_SSL_") || strings.HasPrefix(name, "GIT_HTTP_")
}

// tail keeps the end of what is written to it, because a hostile tree can make git print errors without end.
type tail struct{ buf []byte }

const tailMax = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*tailMax {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-tailMax:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.buf[max(0, len(t.buf)-tailMax):]) }
