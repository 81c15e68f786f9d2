// Package notify tells people that a loop waits for them or is over: by a webhook, the desktop or their own command. It
// decides nothing about when and whom to tell, and never tries twice. Start at Send.
package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"pawl/internal/lib/toolpath"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
)

// Final is an error after which trying once more is useless.
type Final struct{ Why string }

func (f *Final) Error() string { return f.Why }

// grace is how long the processes that a command has left behind may hold its output open.
const grace = time.Second

// Send sends a notice to one value of spec.notify. Commands get env and variables that say what happened; dir is the
// folder in which they run. An error does not contain the address, which may hold a secret.
func Send(ctx context.Context, to string, n api.Notice, env []string, dir string) error {
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	body = append(body, '\n') // a command may append it to a file
	switch {
	case spec.Webhook(to):
		return post(ctx, to, body)
	case to == spec.Desktop:
		return desktop(ctx, n)
	}
	return Run(ctx, []string{"/bin/sh", "-c", to}, append(env, environment(n)...), dir, body)
}

// environment returns the variables that a command gets, in addition to the JSON on its stdin.
func environment(n api.Notice) []string {
	env := []string{
		"PAWL_LOOP=" + n.Loop, "PAWL_KIND=" + n.Kind, "PAWL_EVENT=" + string(n.Event), "PAWL_STATUS=" + string(n.Status), "PAWL_REASON=" + plain(n.Reason),
	}
	if g := n.Gate; g != nil {
		env = append(env, "PAWL_GATE="+g.ID, "PAWL_GATE_KIND="+string(g.Kind), "PAWL_SUMMARY="+plain(g.Summary), "PAWL_HASH="+g.Hash)
	}
	return env
}

// plain returns a text without NUL bytes, which an environment can't hold.
func plain(text string) string { return strings.ReplaceAll(text, "\x00", "") }

func post(ctx context.Context, to string, body []byte) error {
	answer, err := Ask(ctx, http.MethodPost, to, body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode < 300:
		return nil
	case answer.StatusCode >= 500, answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode == http.StatusRequestTimeout:
		return errors.New("it answers " + answer.Status)
	}
	return &Final{"it answers " + answer.Status}
}

// Ask sends a request, with a body of JSON unless that is nil. It returns the answer, whose body is closed. An error
// does not contain the address, which may hold a secret.
func Ask(ctx context.Context, method, to string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, &Final{"it is not an address"}
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("User-Agent", "pawl")
	answer, err := http.DefaultClient.Do(r)
	if at, ok := errors.AsType[*url.Error](err); ok {
		err = at.Err
	}
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	return answer, nil
}

// Programs are the desktop's programs that this package runs.
var Programs = []string{"notify-send", "osascript"}

// desktops maps an operating system to the command that shows a notice on the desktop.
var desktops = map[string]func(title, text string) []string{
	"linux": func(title, text string) []string {
		return []string{"notify-send", "--app-name=pawl", "--", title, html.EscapeString(text)}
	},
	"darwin": func(title, text string) []string {
		return []string{"osascript", "-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run", title, text}
	},
}

func desktop(ctx context.Context, n api.Notice) error {
	argv, known := desktops[runtime.GOOS]
	if !known {
		return &Final{"pawl can't show notices on this system's desktop"}
	}
	command := argv(title(n), plain(text(n)))
	program, err := toolpath.Path(command[0])
	if err != nil {
		return &Final{"this host has no " + command[0]}
	}
	command[0] = program
	return Run(ctx, command, os.Environ(), "", nil) // the session's bus is in the environment
}

// title returns a notice in a few words.
func title(n api.Notice) string {
	switch n.Event {
	case loop.GateOpened:
		return "pawl: " + n.Loop + " waits for you"
	case loop.GateEscalated:
		return "pawl: " + n.Loop + " still waits for you"
	}
	return "pawl: " + n.Loop + " " + string(n.Status)
}

// text returns the content of a notice, in one or two lines.
func text(n api.Notice) string {
	if n.Gate == nil {
		return n.Reason
	}
	text := n.Gate.Summary
	if len(n.How) > 0 {
		text += "\n" + n.How[0].Command
	}
	return text
}

// Run runs a command in its own process group, and ends the whole group with ctx. The error says how it ended and has
// the end of its output.
func Run(ctx context.Context, argv, env []string, dir string, stdin []byte) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdin = env, dir, bytes.NewReader(stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	group := func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	cmd.Cancel, cmd.WaitDelay = group, grace
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if cmd.Process != nil {
		_ = group() // ends what the command has left behind
	}
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return nil
	case ctx.Err() != nil:
		return errors.New("it took too long")
	}
	return fmt.Errorf("%w%s", err, said.String())
}

// tail keeps the end of a command's output.
type tail struct{ text []byte }

const maxTail = 500

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - maxTail; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(t.text), "")), " ")
	if text == "" {
		return ""
	}
	return ": " + text
}
