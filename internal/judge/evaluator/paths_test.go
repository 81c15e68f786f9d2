package evaluator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/judge/evaluator"
)

// TestWhatACommandNeedsByPathIsFound: programs and scripts that nothing before them in the command may have made.
func TestWhatACommandNeedsByPathIsFound(t *testing.T) {
	program := func(path string) []evaluator.Needed { return []evaluator.Needed{{Path: path}} }
	script := func(path string) []evaluator.Needed { return []evaluator.Needed{{Path: path, Script: true}} }
	for command, want := range map[string][]evaluator.Needed{
		"./run-tests.sh":                         program("run-tests.sh"),
		".venv/bin/python -m pytest":             program(".venv/bin/python"),
		"env A=1 timeout 60 ./t.sh -v":           program("t.sh"),
		"cd sub && ../bin/mocha":                 program("bin/mocha"),
		"set -e; cd a/b; ./c":                    program("a/b/c"),
		"A=1 ./t.sh | tail -1":                   program("t.sh"),
		"npm ci && ./node_modules/.bin/jest":     nil, // the first one makes it
		"cd $DIR && ./t":                         nil,
		"../outside.sh":                          nil,
		"test -x ./t.sh && ./t.sh || echo there": nil,
		"cat {promptFile} | ./t":                 program("t"),
		"echo x > t.sh; sh t.sh":                 nil,
		"echo x 2>/dev/null; sh t.sh":            script("t.sh"),
		"(./t)":                                  program("t"),

		"sh t.sh":                       script("t.sh"),
		"bash -eu ./t.sh a":             script("t.sh"),
		"cd sub && sh t.sh":             script("sub/t.sh"),
		". ./env.sh && t":               script("env.sh"),
		"source env":                    nil,
		"bash -c './t'":                 program("t"),
		"bash -lc 'cd a && sh t.sh'":    script("a/t.sh"),
		"sh -c \"$SCRIPT\"":             nil,
		"sh -s x":                       nil,
		"sh < t.sh":                     nil,
		"sh $SCRIPT":                    nil,
		"python3 -u agent.py":           script("agent.py"),
		"python3.12 agent.py":           script("agent.py"),
		"python3 -X dev agent.py":       nil, // -X takes a value
		"python3 -m agent":              nil,
		"python3 -c 'print(1)'":         nil,
		"python3 -":                     nil,
		"python3 {promptFile}":          nil,
		"python3 '{promptFile}'":        nil,
		"node agent.js":                 script("agent.js"),
		"node agent":                    nil, // node completes the name
		"node .":                        nil,
		"node -r x agent.js":            nil,
		"perl a.pl":                     script("a.pl"),
		"env X=1 python3 agent.py":      script("agent.py"),
		"./a.sh b":                      program("a.sh"),
		"./bin/python3 t.py":            {{Path: "bin/python3"}, {Path: "t.py", Script: true}},
		"/opt/agent/bin/agent -p":       program("/opt/agent/bin/agent"),
		"env A=1 timeout 60 /opt/t -v":  program("/opt/t"),
		"cd sub && /opt/t":              program("/opt/t"),
		"mkdir -p /opt && /opt/t":       nil,
		"test -x /opt/t && /opt/t || :": nil,
		"python3 /opt/t.py":             script("/opt/t.py"),
		"~/bin/t -p":                    program("~/bin/t"),
		"$HOME/bin/t":                   program("~/bin/t"),
		"\"${HOME}/bin/t\"":             program("~/bin/t"),
		"sh ~/t.sh":                     script("~/t.sh"),
		"~other/bin/t":                  nil,
		"$HOME/$X/t":                    nil,
		"'~/t'":                         nil, // the shell leaves it as it is
		"t":                             nil,

		"[ -f t ] && ./t; echo 5":   nil,
		"./t; echo 5":               nil, // its exit status does not count
		"set -eu; ./t; echo 5":      program("t"),
		"./t & wait":                nil,
		"if true; then ./t; fi":     nil,
		"cd \"$PWD/sub\" && ./t.sh": nil,
		"\"$(pwd)/t.sh\" -v":        nil,
		"$PWD/t.sh":                 nil,
	} {
		found := evaluator.NeedsOf(command).Files
		for i := range found {
			found[i].Name = ""
		}
		require.Equal(t, want, found, command)
	}
}

func TestTheModulesOfPythonThatACommandRunsAreFound(t *testing.T) {
	for command, want := range map[string][]evaluator.Module{
		"python -m pytest -q":                       {{"python", "pytest"}},
		"cd src && python3 -X dev -m mypy.daemon .": nil, // -X takes a value
		"env A=1 .venv/bin/python3.12 -B -m tox":    {{".venv/bin/python3.12", "tox"}},
		"python3 -c 'import x'":                     nil,
		"python -m $RUNNER":                         nil,
		"python -m ruff . && python -m pytest":      {{"python", "ruff"}, {"python", "pytest"}},
		"sh -c 'python -m tox'":                     {{"python", "tox"}},
		"PYTHONPATH=src python -m pytest":           {{"python", "pytest"}},
		"PYTHONPATH=$PWD/a:$PYTHONPATH python -m x": {{"python", "x"}},
		"export PYTHONPATH=.; python -m pytest":     {{"python", "pytest"}},

		// It may be elsewhere, or made by then.
		"PYTHONPATH=/opt/lib python -m x":                 nil,
		"PYTHONPATH=../lib python -m x":                   nil,
		"export PYTHONPATH=$LIB; python -m x":             nil,
		"env PYTHONPATH=/opt/lib python -m x":             nil,
		"cd /opt/lib && python -m x":                      nil,
		". .venv/bin/activate && python -m pytest":        nil,
		"[ -d v ] && . v/bin/activate; python -m pytest":  nil,
		"PATH=$PWD/v/bin:$PATH python -m pytest":          nil,
		"pip install -q pytest && python -m pytest":       nil,
		"python gen.py && python -m made":                 nil,
		"echo 1 > made.py; python -m made":                nil,
		"python -m x || python -m unittest":               nil,
		"if [ -e x ]; then . ./x; fi; python -m coverage": nil,
	} {
		require.Equal(t, want, evaluator.NeedsOf(command).Modules, command)
	}
}
