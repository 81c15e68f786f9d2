package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// engine is a `pawl up`.
type engine struct {
	program string
	home    string // its $PAWL_HOME
	log     string
	cmd     *exec.Cmd
}

// start returns when it serves.
func (e *engine) start(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(e.log), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(e.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	e.cmd = exec.CommandContext(ctx, e.program, "up", "--json")
	e.cmd.Dir = filepath.Dir(e.log)
	e.cmd.Env = environment(e.home)
	e.cmd.Stderr = log
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := e.cmd.Start(); err != nil {
		return err
	}
	var serving struct{ Address string }
	if err := json.NewDecoder(out).Decode(&serving); err != nil {
		return fmt.Errorf("pawl up does not serve, see %s: %w", e.log, err)
	}
	return nil
}

// kill ends it as a crash does.
func (e *engine) kill() {
	if e.cmd != nil {
		_ = e.cmd.Process.Kill()
		_ = e.cmd.Wait()
	}
}

// environment is that of all programs of the corpus.
func environment(home string) []string {
	return []string{
		"PAWL_HOME=" + home, "PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(filepath.Dir(home), "user"),
		"COLUMNS=80", "NO_COLOR=1", "LANG=C.UTF-8", "TZ=UTC",
		"GIT_AUTHOR_NAME=ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=ann", "GIT_COMMITTER_EMAIL=ann@example.org",
	}
}
