package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/exec/sandbox"
	"pawl/internal/home"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/list"
	"pawl/internal/loop/rules"
)

// Environment returns the environment of the loop's commands: the variables that builds need (rules.Inherited), as
// this worker had them when the contract was drawn up. A later worker may be started from any shell without changing
// it. The stored values are filtered by the same list, because an earlier version of pawl stored more.
func (ws *Workspace) Environment() ([]string, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.Env != nil {
		return ws.Env, nil
	}
	path := filepath.Join(ws.Machine.Home.Loop(ws.Ref), "environment.json")
	var stored []string
	err := durable.ReadJSON(path, &stored)
	torn := errors.Is(err, durable.ErrTorn)
	if torn {
		ws.IsMended("the loop's environment could not be read: from now on the loop has this worker's environment", err)
	}
	isNew := torn || errors.Is(err, fs.ErrNotExist)
	if isNew {
		stored, err = os.Environ(), nil
	}
	kept, out := rules.Inherited(stored)
	if err == nil && (isNew || len(out) > 0) {
		err = durable.WriteJSON(path, kept)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the loop's environment: %w", err)
	}
	ws.Env = append([]string{}, kept...)
	return ws.Env, nil
}

// ToolEnvironment returns the environment of an agent or a command in a tree: the inherited one, with a name of the
// tree's own for what docker compose makes. Loops that run already keep the environment that they were measured in.
func (ws *Workspace) ToolEnvironment(inherited []string, tree string) []string {
	env := slices.Clone(inherited)
	if ws.Short == "" {
		return env
	}
	project := strings.ReplaceAll(filepath.Base(tree), ".", "-")
	return append(env, "COMPOSE_PROJECT_NAME="+project)
}

// CommandEnvironment returns the environment of a command of the spec in a tree: nobody watches it, so its programs
// must not wait for changes, or for a person. A CI of the user's own counts.
func (ws *Workspace) CommandEnvironment(inherited []string, tree string) []string {
	env := ws.ToolEnvironment(inherited, tree)
	isCI := func(kv string) bool { return strings.HasPrefix(kv, "CI=") }
	if ws.Short == "" || slices.ContainsFunc(env, isCI) {
		return env
	}
	return append(env, "CI=1")
}

// NoteEnvironment records what loops get of this process's environment. The worker that has the lock calls it.
func NoteEnvironment(h home.Home) error {
	kept, _ := rules.Inherited(os.Environ())
	if err := durable.WriteJSON(h.WorkerEnvironment(), kept); err != nil {
		return home.Unusable("noting the worker's environment", err)
	}
	return nil
}

// WorkersEnvironment returns what loops get of the environment of this host's worker. ok is false if none runs: then
// the process that starts a loop is its worker.
func WorkersEnvironment(h home.Home) (env []string, ok bool) {
	runs, _ := durable.Locked(h.WorkerLock())
	if !runs || durable.ReadJSON(h.WorkerEnvironment(), &env) != nil {
		return nil, false
	}
	env, _ = rules.Inherited(env)
	return env, true
}

// Differing returns the names of the variables that differ between two environments, sorted.
func Differing(first, second []string) (names []string) {
	a, b := sandbox.Values(first), sandbox.Values(second)
	values := maps.Clone(a)
	maps.Copy(values, b)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		first, inFirst := a[name]
		second, inSecond := b[name]
		differs := first != second || inFirst != inSecond
		if differs && !slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name) {
			names = append(names, name)
		}
	}
	return names
}

// DifferingHere returns the names of the variables in which a worker's environment differs from this process's.
func DifferingHere(workers []string) []string {
	current, _ := rules.Inherited(os.Environ())
	return Differing(current, workers)
}

// OtherEnvironment says that loops, and the commands that are tried here, have the worker's values of these variables.
func OtherEnvironment(names []string) string {
	const most = 10
	return "the worker on this host was started with another " + strings.Join(names[:min(len(names), most)], ", ") +
		" than this shell has, and the loop gets the worker's. To give it this shell's, restart `pawl up` here"
}

// session lists the variables by which a command of the user's own, outside of any sandbox, finds the user's desktop.
var session = []string{"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"}

// Notifying returns the environment of a command that notifies people.
func Notifying() []string {
	kept, _ := rules.Inherited(os.Environ())
	return append(kept, Present(session)...)
}

// Granted returns agent.env with $NAME and ${NAME} from the worker's environment: the spec only names keys.
func Granted(env map[string]string) []string {
	return listed(env, os.ExpandEnv)
}

// Later returns the environment with one value for each name, the last. Programs differ in which of two they read.
func Later(env []string) []string {
	return listed(sandbox.Values(env), func(value string) string { return value })
}

// listed returns variables with their values as describe says, sorted by their names.
func listed(env map[string]string, describe func(value string) string) (lines []string) {
	return list.Map(slices.Sorted(maps.Keys(env)), func(name string) string { return name + "=" + describe(env[name]) })
}

// Present returns those variables of these names that the worker has.
func Present(names []string) (env []string) {
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
