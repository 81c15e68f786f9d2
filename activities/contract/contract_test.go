package contract_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/contract"
	"pawl/internal/fault"
	"pawl/internal/judge/evaluator"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// drawn returns the contract of a loop on a repository that also has these files.
func drawn(t *testing.T, files map[string]string, change func(*spec.Spec)) (contract.Drawn, *fault.Error) {
	t.Helper()
	l := actest.BeginWith(t, spec.Deny, func(user string, _ map[string]any) {
		for name, content := range files {
			gittest.Write(t, filepath.Join(user, name), content)
		}
		gittest.Git(t, user, "add", "-A")
		gittest.Git(t, user, "commit", "-qm", "more", "--allow-empty")
	})
	s := l.Spec
	if change != nil {
		change(&s)
	}
	ws, err := l.Workspace(t.Context(), l.Opened.Ref)
	require.NoError(t, err)
	d, err := contract.Draw(t.Context(), ws, s, l.Opened.Base)
	require.NoError(t, err)
	return d, d.Closed(ws, s)
}

func TestAContractSaysWhatIsInScopeAndWhatIsSealed(t *testing.T) {
	d, closed := drawn(t, map[string]string{"work/check.sh": "true\n", "lib/c": "c\n"}, func(s *spec.Spec) { s.Guard.Command = "sh work/check.sh" })
	require.Nil(t, closed)
	require.Equal(t, 3, d.InScope)
	require.Equal(t, []string{"work/check.sh"}, d.Clash)
	require.Contains(t, d.Terms().Sealed[0].Path, "work/check.sh")
	for _, s := range d.Terms().Sealed {
		require.Contains(t, s.By, "sh in guard.command", s.Path)
	}
	require.Empty(t, d.Warnings)
	other, _ := drawn(t, map[string]string{"work/check.sh": "false\n", "lib/c": "c\n"}, func(s *spec.Spec) { s.Guard.Command = "sh work/check.sh" })
	require.NotEqual(t, d.Terms().Contract, other.Terms().Contract, "the hash covers the content of what is sealed")
}

func TestOnlyADeliveryMayBeginWithNewFilesAlone(t *testing.T) {
	for _, c := range []struct {
		kind, newFiles string
		begins         bool
	}{{"deliver", spec.Allow, true}, {"deliver", spec.Ask, false}, {"deliver", spec.Deny, false}, {"improve", spec.Allow, false}} {
		d, closed := drawn(t, nil, func(s *spec.Spec) { s.Kind, s.Scope, s.NewFiles = c.kind, []string{"pkg/**"}, c.newFiles })
		require.Zero(t, d.InScope)
		require.Equal(t, c.begins, closed == nil, c)
	}
}

func TestALoopThatCanChangeNothingIsRefused(t *testing.T) {
	_, closed := drawn(t, nil, func(s *spec.Spec) { s.Scope = []string{"src/**"} })
	require.ErrorContains(t, closed, "the scope matches no file")
	_, closed = drawn(t, nil, func(s *spec.Spec) { s.Scope, s.NewFiles, s.Protect = []string{"work/a"}, spec.Deny, []string{"work/*"} })
	require.ErrorContains(t, closed, "every file that the scope matches is sealed: work/a")
	_, closed = drawn(t, nil, func(s *spec.Spec) {
		s.Scope, s.NewFiles, s.Protect = []string{"work/a"}, spec.Allow, []string{"work/*"}
	})
	require.Nil(t, closed, "it may add files")
}

func TestAContractWarnsOfWhatPeopleDoNotSee(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		change func(*spec.Spec)
		warns  string
	}{
		"files in Git LFS":            {map[string]string{".gitattributes": "*.bin filter=lfs -text\n"}, nil, "keeps files in Git LFS"},
		"another filter":              {map[string]string{"work/.gitattributes": "# filter=none\n*.txt filter=shout\n"}, nil, "the filter shout (work/.gitattributes)"},
		"a script that can't be read": {map[string]string{"check.sh": "'unclosed\n"}, func(s *spec.Spec) { s.Guard.Command = "sh check.sh" }, "can't tell what these run in turn"},
		"a name that only make knows": {map[string]string{"Makefile": "test:\n\t./test/$@\n"}, func(s *spec.Spec) { s.Guard.Command = "make test" }, "names it: Makefile: ./test/…"},
		"a holdout in the repository": {map[string]string{"secret.sh": "echo 1\n"}, func(s *spec.Spec) { s.Verify.Holdout.Command = "sh secret.sh" }, "hold or name the holdout: secret.sh"},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := drawn(t, c.files, c.change)
			require.Len(t, d.Warnings, 1)
			require.Contains(t, d.Warnings[0], c.warns)
		})
	}
}

func TestALongScriptIsNotFollowed(t *testing.T) {
	d, _ := drawn(t, map[string]string{"work/long": strings.Repeat("x", evaluator.MaxScript+2), "work/short": "sh other.sh\n"}, nil)
	require.True(t, d.Read("work/long") == strings.Repeat("\x00", evaluator.MaxScript+1))
	require.Equal(t, "sh other.sh\n", d.Read("work/short"))
	require.Empty(t, d.Read("work/none"))
}
