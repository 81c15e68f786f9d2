package open_test

import (
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/preflight"
	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
	"pawl/test/harness/tier"
)

// later opens a loop for a later step of a task. It continues from the branch pawl/x, where the first step x has kept
// a change, and has these values in its session.
func later(t *testing.T, session map[string]string) (l *actest.Loop, o api.Opened, err error) {
	t.Helper()
	l = actest.Begin(t, spec.Deny)
	l.Iterate()
	gittest.Write(t, l.Opened.Desk+"/work/a", "better\n")
	l.CommitDesk("")
	_, err = l.Close(t.Context(), api.Close{Base: l.Opened.Base, Head: l.Head, Entry: l.Entry(loop.Event{Type: loop.AutonomyCompleted, Status: loop.Completed})})
	require.NoError(t, err)
	s := l.Spec
	s.Name, s.Repo.Base, s.Session = "y", "pawl/x", map[string]string{"steward": "crew"}
	maps.Copy(s.Session, session)
	for key, value := range s.Session {
		s.Session[key] = strings.ReplaceAll(value, "BASE", l.Opened.Base)
	}
	o, err = l.Open(t.Context(), api.Open{Loop: "y", FirstRun: "second", Spec: s})
	return l, o, err
}

func TestALaterStepGoesOnFromTheOneBeforeAndIsToldFromWhereTheTaskBegan(t *testing.T) {
	t.Parallel()
	l, o, err := later(t, map[string]string{"base": "BASE", "onto": "main"})
	require.NoError(t, err)
	require.Equal(t, l.Head, o.Base, "it works on what the first step has kept")
	require.Equal(t, l.Opened.Base, o.Begun)
	require.Equal(t, "main", o.Onto)

	_, same, err := later(t, map[string]string{"onto": "main"})
	require.NoError(t, err)
	require.Empty(t, same.Begun)
	_, alone, err := later(t, nil)
	require.NoError(t, err)
	require.Equal(t, "pawl/x", alone.Onto)
	require.NotEqual(t, same.Contract, alone.Contract, "the branch that the work is applied to is part of the contract")
}

func TestA1_TheModeIsAPreconditionNamedWithTheOthersBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	l := actest.Begin(t, spec.Deny)
	s := l.Spec
	s.Name, s.Mode = "y", spec.ModePlan
	gittest.Write(t, s.Repo.Path+"/not-committed", "yet\n")
	_, err := l.Open(t.Context(), api.Open{Loop: "y", FirstRun: "second", Spec: s})
	require.True(t, wire.Is(err, fault.PreconditionFailed), "%v", err)
	require.ErrorContains(t, err, "not clean")
	require.ErrorContains(t, err, "the mode is plan, but a loop starts only in mode mission")
}

// A loop that can't work here is refused before anything is measured, as validate refuses it.
func TestP0_WhatThisHostLacksIsToldBeforeAnythingIsMeasured(t *testing.T) {
	t.Parallel()
	command := func(list ...string) spec.Agent { return spec.Agent{Use: "command", Command: spec.Argv{List: list}} }
	for name, c := range map[string]struct {
		change func(*spec.Spec)
		lacks  string
	}{
		"an agent by its name": {func(s *spec.Spec) { s.Agent = command("no-such-program", "sh") }, "the agent's program no-such-program is not on the PATH"},
		"an agent's shell command": {func(s *spec.Spec) {
			s.Agent = spec.Agent{Use: "command", Command: spec.Argv{Shell: "no-such-program --fast"}}
		}, "no-such-program is not on the PATH"},
		"an agent by its path": {func(s *spec.Spec) { s.Agent = command("./agent.sh") }, "the agent's command needs ./agent.sh, which is not in the repository's commit"},
		"not executable":       {func(s *spec.Spec) { s.Agent = command("./work/a") }, "the agent's command needs ./work/a, which is not executable"},
		"an agent elsewhere": {func(s *spec.Spec) {
			s.Agent = spec.Agent{Use: "command", Command: spec.Argv{Shell: "/nonexistent/agent -p"}}
		}, "the agent's command needs /nonexistent/agent, which is no program on this machine"},
		"an agent elsewhere that setup can't make": {func(s *spec.Spec) {
			s.Setup.Command, s.Agent = "true", spec.Agent{Use: "command", Command: spec.Argv{Shell: "/nonexistent/agent -p"}}
		}, "the agent's command needs /nonexistent/agent, which is no program on this machine"},
		"an agent's list elsewhere":   {func(s *spec.Spec) { s.Agent = command("/nonexistent/agent", "-p") }, "/nonexistent/agent, which is no program on this machine"},
		"a command elsewhere":         {func(s *spec.Spec) { s.Guard.Command = "/nonexistent/tests -q" }, "guard.command needs /nonexistent/tests, which is no program on this machine"},
		"a command by its path":       {func(s *spec.Spec) { s.Guard.Command = "./run-tests.sh -q" }, "guard.command needs ./run-tests.sh, which is not in the repository's commit"},
		"a virtual environment":       {func(s *spec.Spec) { s.Guard.Command = ".venv/bin/python -m pytest" }, "guard.command needs .venv/bin/python, which is not in"},
		"a command by its name":       {func(s *spec.Spec) { s.Guard.Command = "pytestt -q" }, "guard.command needs pytestt, which is not on the PATH"},
		"a module of Python":          {func(s *spec.Spec) { s.Guard.Command = "python3 -m no_such_module" }, "guard.command needs the Python module no_such_module"},
		"made by setup":               {func(s *spec.Spec) { s.Setup.Command, s.Guard.Command = "make it", "./made.sh" }, ""},
		"made by setup in the home":   {func(s *spec.Spec) { s.Setup.Command, s.Guard.Command = "make it", "~/.no-such/made -q" }, ""},
		"made by an earlier command":  {func(s *spec.Spec) { s.Guard.Command = "cp work/a t.sh && ./t.sh" }, ""},
		"a module that is there":      {func(s *spec.Spec) { s.Guard.Command = "python3 -m unittest" }, ""},
		"a script of an interpreter":  {func(s *spec.Spec) { s.Agent = command("sh", "no-such.sh") }, "the agent's command needs no-such.sh, which is not in the repository's commit"},
		"nothing that can be checked": {func(s *spec.Spec) { s.Agent = command("sh", "-s", "no-such.sh") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "module") {
				if _, err := exec.LookPath("python3"); err != nil {
					t.Skip("there is no Python")
				}
			}
			l := actest.Begin(t, spec.Deny)
			s := l.Spec
			s.Name = "y"
			c.change(&s)
			_, err := l.Open(t.Context(), api.Open{Loop: "y", FirstRun: "second", Spec: s})
			if c.lacks == "" {
				require.NoError(t, err)
				return
			}
			require.True(t, wire.Is(err, fault.PreconditionFailed), "%v", err)
			require.ErrorContains(t, err, c.lacks)

			f, err := preflight.DryRun(t.Context(), l.Home, "validated", s, func(step string) {
				require.NotContains(t, []string{"verify", "guard", "test"}, step, "nothing is measured")
			})
			require.NoError(t, err)
			require.Len(t, f.Problems, 1)
			require.Contains(t, f.Problems[0].What, c.lacks, "validate says the same")
		})
	}
}

// What only the base commit tells is named with what the user's files tell.
func TestA1_AScopeThatIsWrongIsNamedWithWhatElseIsMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*spec.Spec)
		also   string
	}{
		"no file":       {func(s *spec.Spec) { s.Scope = []string{"nothing/**"} }, "the scope matches no file of"},
		"only sealed":   {func(s *spec.Spec) { s.Protect = []string{"**"} }, "every file that the scope matches is sealed"},
		"nothing wrong": {func(*spec.Spec) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := actest.Begin(t, spec.Deny)
			s := l.Spec
			s.Name, s.Mode = "y", spec.ModePlan
			c.change(&s)
			_, err := l.Open(t.Context(), api.Open{Loop: "y", FirstRun: "second", Spec: s})
			require.True(t, wire.Is(err, fault.PreconditionFailed), "%v", err)
			require.ErrorContains(t, err, "the mode is plan, but a loop starts only in mode mission")
			if c.also != "" {
				require.ErrorContains(t, err, c.also)
			} else {
				require.NotContains(t, err.Error(), "scope")
			}
			_, err = hostrecord.Read(l.Home, "y")
			require.ErrorIs(t, err, os.ErrNotExist, "a loop that does not start has no record")
		})
	}
}

func TestATaskThatBeganElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		session map[string]string
		what    string
	}{
		"not before the base":  {map[string]string{"base": strings.Repeat("1", 40)}, "session.base"},
		"not the whole hash":   {map[string]string{"base": "main"}, "session.base"},
		"an option of git's":   {map[string]string{"base": "--all"}, "session.base"},
		"no such branch":       {map[string]string{"onto": "nowhere"}, "session.onto"},
		"no name of a branch":  {map[string]string{"onto": "a..b"}, "session.onto"},
		"an option, as branch": {map[string]string{"onto": "--all"}, "session.onto"},
	} {
		t.Run(name, func(t *testing.T) {
			if !tier.Nightly && name != "not before the base" && name != "no such branch" {
				t.Skip("runs with -tags nightly: one base and one branch")
			}
			_, _, err := later(t, c.session)
			require.True(t, wire.Is(err, fault.PreconditionFailed), "%v", err)
			require.ErrorContains(t, err, c.what)
		})
	}
}
