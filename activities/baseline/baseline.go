// Package baseline keeps what `pawl validate` measured on the unchanged code. For an hour, a loop of the same contract
// on the same host takes these results for its own steps. Start at Keep and Recall.
package baseline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"pawl/activities/command"
	"pawl/activities/workspace"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/ledger"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/fsutil/remove"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

// MaxAge is how old a baseline may not be any more.
const MaxAge = time.Hour

// Key says what has to be the same for a loop to take a baseline for its own.
type Key struct {
	Contract    ledger.Contract // with the base commit
	Environment []string        // of the commands
	Host        string
	Build       string // of pawl
	Rules       int
}

// KeyOf returns the key of a contract on this host.
func KeyOf(ws *workspace.Workspace, contract ledger.Contract) (Key, error) {
	k := Key{Contract: contract, Rules: rules.NewestVersion}
	env, err := ws.Environment()
	if err != nil {
		return k, err
	}
	k.Environment = env
	id, err := ws.Machine.Main.HostID()
	if err != nil {
		return k, err
	}
	name, err := os.Hostname()
	if err != nil {
		return k, fmt.Errorf("asking for this host's name: %w", err)
	}
	k.Host = id + " " + name
	k.Build, err = build()
	return k, err
}

// build identifies this program, also among builds of the same version.
func build() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("looking for this program: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("looking at this program: %w", err)
	}
	version := ""
	if built, ok := debug.ReadBuildInfo(); ok {
		version = built.String()
	}
	return fmt.Sprintf("%d %d %s", info.Size(), info.ModTime().UnixNano(), version), nil
}

// Name returns the name of the folder of what was measured under the key. Who starts the loop and who approves the
// contract changes nothing about the unchanged code.
func (k Key) Name() string {
	k.Contract.Spec.Session, k.Contract.Spec.Approvals.Plan = nil, ""
	ofShell := func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name)
	}
	k.Environment = slices.DeleteFunc(slices.Clone(k.Environment), ofShell)
	slices.Sort(k.Environment)
	text, _ := json.Marshal(k) // only plain values are in it
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Safe reports whether the commands of a spec can't write what is kept, since their sandbox hides it.
func Safe(ws *workspace.Workspace, s spec.Spec) (bool, error) {
	return ws.Hides(s, ws.Machine.Main.Dir)
}

// Step is a step on the unchanged code, with its folder.
type Step struct {
	Key    api.Key
	Dir    string
	Result interface{ Core() *api.Outcome }
}

// kept says when a baseline was measured. It is written last.
type kept struct {
	Time time.Time `json:"time"`
}

const keptFile = "kept.json"

// Keep moves the folders of steps to what is kept under the key. If another process is at work there, nothing is kept.
func Keep(h home.Home, k Key, now time.Time, steps []Step) (err error) {
	unlock, ok := locked(h)
	if !ok {
		return nil
	}
	defer unlock()
	prune(h, now)
	dir := filepath.Join(h.Baselines(), k.Name())
	if err := remove.All(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dirfd.At(dir), 0o700); err != nil {
		return fmt.Errorf("making the baseline's folder: %w", err)
	}
	for _, s := range steps {
		core := s.Result.Core()
		full := *core
		core.Of, core.Recalled, core.Log = k.Contract.Base, now, ""
		err := durable.CacheJSON(filepath.Join(s.Dir, command.ResultFile), s.Result)
		*core = full
		if err == nil {
			err = os.Rename(dirfd.At(s.Dir), dirfd.At(filepath.Join(dir, command.StepName(s.Key))))
		}
		if err != nil {
			return fmt.Errorf("keeping the result of %s: %w", s.Key.Name, err)
		}
	}
	return durable.WriteJSON(filepath.Join(dir, keptFile), kept{now})
}

// locked takes the lock on what is kept. ok is false if another process has it.
func locked(h home.Home) (unlock func(), ok bool) {
	lock, err := durable.TryLock(h.Baselines() + ".lock")
	if err != nil {
		return nil, false
	}
	return func() { lock.Close() }, true
}

// fresh reports whether a folder has a baseline that may still be used.
func fresh(dir string, now time.Time) bool {
	var noted kept
	if durable.ReadJSON(filepath.Join(dir, keptFile), &noted) != nil {
		return false
	}
	age := now.Sub(noted.Time)
	return age >= 0 && age < MaxAge
}

// prune removes what is too old.
func prune(h home.Home, now time.Time) {
	entries, _ := os.ReadDir(dirfd.At(h.Baselines())) // without the folder nothing is too old
	for _, e := range entries {
		if dir := filepath.Join(h.Baselines(), e.Name()); !fresh(dir, now) {
			_ = remove.All(dir) // tried again next time
		}
	}
}

// Recall gives a loop that has run nothing yet the results that are kept for its contract, as if its steps had run: the
// steps find them. It does nothing where nothing is kept.
func Recall(ctx context.Context, ws *workspace.Workspace, k Key, now time.Time) error {
	h := ws.Machine.Main
	dir := filepath.Join(h.Baselines(), k.Name())
	if _, err := os.Lstat(dirfd.At(dir)); err != nil {
		return nil // the usual case leaves no trace
	}
	unlock, ok := locked(h)
	if !ok {
		return nil
	}
	defer unlock()
	if prune(h, now); !fresh(dir, now) {
		return nil
	}
	folders, err := os.ReadDir(dirfd.At(dir))
	if err != nil {
		return fmt.Errorf("reading the baseline: %w", err)
	}
	for _, e := range folders {
		if !e.IsDir() {
			continue
		}
		if err := recall(ws, filepath.Join(dir, e.Name()), e.Name()); err != nil {
			return fmt.Errorf("recalling the step %s: %w", e.Name(), err)
		}
	}
	return ctx.Err()
}

// recall copies the folder of one step to the loop, in one move. A step that the loop has already stays.
func recall(ws *workspace.Workspace, source, name string) error {
	folder := hostrecord.Steps(ws.Machine.Home, ws.Ref)
	draft, target := filepath.Join(ws.Machine.Home.Loop(ws.Ref), "recalled"), filepath.Join(folder, name)
	if _, err := os.Lstat(dirfd.At(target)); err == nil {
		return nil
	}
	if err := remove.All(draft); err != nil {
		return err
	}
	for _, dir := range []string{folder, draft} {
		if err := os.MkdirAll(dirfd.At(dir), 0o700); err != nil {
			return err
		}
	}
	var result map[string]json.RawMessage
	if err := durable.ReadJSON(filepath.Join(source, command.ResultFile), &result); err != nil {
		return err
	}
	log, err := json.Marshal(target)
	if err != nil {
		return err
	}
	result["log"] = log
	if err := durable.CacheJSON(filepath.Join(draft, command.ResultFile), result); err != nil {
		return err
	}
	files, err := os.ReadDir(dirfd.At(source))
	if err != nil {
		return err
	}
	for _, f := range files {
		if !f.Type().IsRegular() || f.Name() == command.ResultFile || f.Name() == command.ProgressFile {
			continue
		}
		if err := copied(filepath.Join(source, f.Name()), filepath.Join(draft, f.Name())); err != nil {
			return err
		}
	}
	return os.Rename(dirfd.At(draft), dirfd.At(target))
}

func copied(source, target string) error {
	in, err := os.Open(dirfd.At(source))
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dirfd.At(target), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
