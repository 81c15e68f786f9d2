package activities

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/durable"
)

// environment is what the loop's commands inherit: this worker's environment as it was when the
// contract was drawn, cleaned. Whichever shell a later worker is started from makes no difference.
func (ws *loopWorkspace) environment() ([]string, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.env != nil {
		return ws.env, nil
	}
	path := filepath.Join(ws.machine.Home.Loop(ws.Ref), "environment.json")
	err := durable.ReadJSON(path, &ws.env)
	torn := errors.Is(err, durable.ErrTorn)
	if torn {
		ws.machine.Logger.Warn("the loop's environment can't be read: it is this worker's from now on", "loop", ws.Loop, "error", err)
	}
	if torn || errors.Is(err, fs.ErrNotExist) {
		ws.env = cleaned(os.Environ())
		err = durable.WriteJSON(path, ws.env)
	}
	if err != nil {
		ws.env = nil
		return nil, fmt.Errorf("reading the loop's environment: %w", err)
	}
	return ws.env, nil
}

// secret are parts of names of variables whose values no command of a loop gets unasked.
var secret = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "COOKIE", "SESSION", "HEADERS"}

// cleaned returns an environment without git's and pawl's variables, Temporal's connection and
// secrets, so that what runs in a loop neither reaches another repository nor leaks.
func cleaned(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		upper := strings.ToUpper(name)
		for _, prefix := range []string{"GIT_", "PAWL_", "TEMPORAL_", "SUPERVISED_BY"} {
			if strings.HasPrefix(upper, prefix) {
				return true
			}
		}
		return slices.ContainsFunc(secret, func(part string) bool { return strings.Contains(upper, part) })
	})
}

// granted is agent.env: values as the spec gives them, $NAME and ${NAME} taken from the worker's
// environment, so that a key is named in the spec and never stands in it.
func granted(env map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+os.ExpandEnv(env[name]))
	}
	return out
}

// credentials are an agent program's own, as the worker has them. It was chosen to be given them.
func credentials(names []string) (env []string) {
	for _, name := range names {
		if value, has := os.LookupEnv(name); has {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// later returns the environment with one value for each name, the last. Programs differ in which of two
// they read.
func later(env []string) []string {
	last := map[string]int{}
	for i, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = i
	}
	var out []string
	for i, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); last[name] == i {
			out = append(out, kv)
		}
	}
	return out
}
