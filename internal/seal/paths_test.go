package seal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/seal"
)

func TestTheProgramThatACommandStartsFirstIsFoundByItsPath(t *testing.T) {
	for command, want := range map[string]string{
		"./run-tests.sh":                         "run-tests.sh",
		".venv/bin/python -m pytest":             ".venv/bin/python",
		"env A=1 timeout 60 ./t.sh -v":           "t.sh",
		"cd sub && ../bin/mocha":                 "bin/mocha",
		"set -e; cd a/b; ./c":                    "a/b/c",
		"A=1 ./t.sh | tail -1":                   "t.sh",
		"npm ci && ./node_modules/.bin/jest":     "", // the first one makes it
		"/usr/bin/env python":                    "",
		"~/bin/t":                                "",
		"cd $DIR && ./t":                         "",
		"../outside.sh":                          "",
		"test -x ./t.sh && ./t.sh || echo there": "",
		"sh t.sh":                                "",
	} {
		needed, ok := seal.FirstPath(command)
		require.Equal(t, want != "", ok, command)
		if ok {
			require.Equal(t, want, needed.Path, command)
		}
	}
}

func TestTheProgramThatACommandStartsFirstIsFoundByItsAbsolutePath(t *testing.T) {
	for command, want := range map[string]string{
		"/opt/agent/bin/agent -p":          "/opt/agent/bin/agent",
		"env A=1 timeout 60 /opt/t -v":     "/opt/t",
		"cd sub && /opt/t":                 "/opt/t",
		"mkdir -p /opt && /opt/t":          "", // the first one may make it
		"test -x /opt/t && /opt/t || true": "",
		"~other/bin/t":                     "",
		"./t.sh":                           "",
		"t":                                "",
		"$HOME/bin/t":                      "",
	} {
		name, ok := seal.FirstOutside(command)
		require.Equal(t, want != "", ok, command)
		if ok {
			require.Equal(t, want, name, command)
		}
	}
}

func TestTheModulesOfPythonThatACommandRunsAreFound(t *testing.T) {
	for command, want := range map[string][]seal.Module{
		"python -m pytest -q":                       {{"python", "pytest"}},
		"cd src && python3 -X dev -m mypy.daemon .": nil, // -X takes a value
		"env A=1 .venv/bin/python3.12 -B -m tox":    {{".venv/bin/python3.12", "tox"}},
		"python3 -c 'import x'":                     nil,
		"python -m $RUNNER":                         nil,
		"python -m ruff . && python -m pytest":      {{"python", "ruff"}, {"python", "pytest"}},
	} {
		require.Equal(t, want, seal.Modules(command), command)
	}
}
