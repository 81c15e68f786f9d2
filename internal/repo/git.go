package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// GitError is a git process that failed: infrastructure, never a verdict on a change.
type GitError struct {
	Args     []string // without the options that every call carries
	ExitCode int      // -1 when git could not be started or was ended by a signal
	Stderr   string   // its end, at most 4 KiB
	Err      error    // the context's error, or why git could not be started
}

func (e *GitError) Error() string {
	what := "git"
	if len(e.Args) > 0 {
		what += " " + e.Args[0]
	}
	switch {
	case errors.Is(e.Err, exec.ErrNotFound):
		return what + ": git is not on PATH; install it"
	case e.Err != nil:
		return fmt.Sprintf("%s: %v", what, e.Err)
	case e.Stderr == "":
		return fmt.Sprintf("%s: exit status %d", what, e.ExitCode)
	}
	return fmt.Sprintf("%s: exit status %d: %s", what, e.ExitCode, strings.TrimSpace(e.Stderr))
}

func (e *GitError) Unwrap() error { return e.Err }

// invariants hold for every git process that pawl starts on a store, whatever any config file
// says. They come first on the command line and so win over files, and git hands them on to
// the children that work on the same repository.
var invariants = []string{
	// Nothing in a repository names a program that runs here: no hooks, no file system
	// monitor, no helper of the ext:: transport. Filter, textconv and merge drivers are named by
	// attributes but defined by config only, and no config that a desk can reach is ever read.
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"protocol.ext.allow=never",
	"submodule.recurse=false",
	// A store is read while others write to it; it is repacked by Maintain and by nothing else.
	"gc.auto=0",
	"maintenance.auto=false",
	// What a ledger entry names survives a power cut: objects, packs and refs reach the disk
	// before the process that wrote them reports success. The index is a cache and does not.
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
	// The ctime is what an agent cannot set back: a rewrite of the same size with the old mtime
	// restored is seen through it.
	"core.trustctime=true",
	"core.checkStat=default",
	"core.untrackedCache=false",
	// index.go reads version 2 and 3, whole.
	"index.version=2",
	"core.splitIndex=false",
	"core.sparseCheckout=false",
	// fast-import leaves one pack instead of a loose object (and an fsync) per object and a
	// second process: 4 ms instead of 7. Transact folds the packs together from time to time.
	"fastimport.unpackLimit=0",
	"pack.writeReverseIndex=false",
	"advice.addEmbeddedRepo=false",
}

var invariantArgs = func() []string {
	args := make([]string, 0, 2*len(invariants))
	for _, c := range invariants {
		args = append(args, "-c", c)
	}
	return args
}()

// call is one git process.
type call struct {
	dir     string                // working directory
	env     []string              // set on top of the cleaned environment
	args    []string              // after the invariants
	plain   bool                  // without the invariants: in the user's repository, as the user would run it
	user    bool                  // with the user's configuration: credentials, proxies, url rewriting, identity
	stdin   io.Reader             // nil: empty
	lock    *os.File              // stays locked until this process has ended, even when pawl has died
	stdout  func(io.Reader) error // reads the output while git runs; an error ends git
	started func()                // called once git has its end of what it was given
}

// environ is pawl's own environment without anything that steers git.
func (c *call) environ() []string {
	env := make([]string, 0, 48)
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "GIT_") && !(c.user && userVariable(name)) || name == "LANGUAGE" {
			continue
		}
		env = append(env, kv)
	}
	env = append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=/dev/null/none")
	if !c.user {
		env = append(env, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1")
	}
	return append(env, c.env...)
}

// userVariable reports whether a variable says how to reach a remote or where the user's
// configuration is, as opposed to which repository and index to use.
func userVariable(name string) bool {
	switch name {
	case "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_PROXY_COMMAND",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM":
		return true
	}
	return strings.HasPrefix(name, "GIT_SSL_") || strings.HasPrefix(name, "GIT_HTTP_")
}

// run starts the process and waits for its end; the result is its standard output unless the
// call reads that itself.
func (c *call) run(ctx context.Context) ([]byte, error) {
	args := c.args
	if !c.plain {
		args = append(append(make([]string, 0, len(invariantArgs)+len(c.args)), invariantArgs...), c.args...)
	}
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = c.dir
	cmd.Env = c.environ()
	cmd.Stdin = c.stdin
	var stderr tail
	cmd.Stderr = &stderr
	if c.lock != nil {
		cmd.ExtraFiles = []*os.File{c.lock}
	}
	detach(cmd, c.user)
	// git removes its lock and temporary files on SIGTERM, not on SIGKILL.
	cmd.Cancel = func() error { return terminate(cmd) }
	cmd.WaitDelay = 5 * time.Second

	var out bytes.Buffer
	var readErr error
	if c.stdout == nil {
		cmd.Stdout = &out
	}
	err := func() error {
		var pipe io.Reader
		if c.stdout != nil {
			var err error
			if pipe, err = cmd.StdoutPipe(); err != nil {
				return err
			}
		}
		err := cmd.Start()
		if c.started != nil {
			c.started()
		}
		if err != nil {
			return err
		}
		if c.stdout != nil {
			if readErr = c.stdout(pipe); readErr != nil {
				_ = terminate(cmd)
			}
		}
		return cmd.Wait()
	}()
	if readErr != nil {
		return nil, readErr
	}
	if err == nil {
		return out.Bytes(), nil
	}
	ge := &GitError{Args: c.args, ExitCode: -1, Stderr: Redact(stderr.String()), Err: ctx.Err()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		ge.ExitCode = exit.ExitCode()
		if ge.Err == nil && ge.ExitCode < 0 {
			ge.Err = err
		}
	case ge.Err == nil:
		ge.Err = err
	}
	if ctx.Err() != nil {
		killGroup(cmd)
	}
	return out.Bytes(), ge
}

// exited reports whether err is a git process that ended with one of the codes.
func exited(err error, codes ...int) bool {
	var ge *GitError
	if !errors.As(err, &ge) || ge.Err != nil {
		return false
	}
	for _, c := range codes {
		if ge.ExitCode == c {
			return true
		}
	}
	return false
}

// tail keeps the end of what is written to it: a hostile tree can make git complain without end.
type tail struct{ buf []byte }

const tailMax = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*tailMax {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-tailMax:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	b := t.buf
	if len(b) > tailMax {
		b = b[len(b)-tailMax:]
	}
	return string(b)
}
