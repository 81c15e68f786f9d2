package launch_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"pawl/internal/client/launch"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward"
)

func TestAGoalOfAnyKindIsASummaryThatTheServiceTakes(t *testing.T) {
	for _, goal := range []string{strings.Repeat("long ", 3000), strings.Repeat("<&>\"\\", 3000), strings.Repeat("ü\n|", 3000), strings.Repeat("\x01", 5000)} {
		sp := spec.Defaults()
		sp.Goal, sp.Scope = goal, []string{goal}
		sp.Verify.Command, sp.Guard.Command = goal, goal
		s := launch.Of("x", "pawl/x", sp)
		for text, limit := range map[string]int{s.Summary: 400, s.Details: 20000} {
			encoded, err := json.Marshal(text)
			require.NoError(t, err)
			require.LessOrEqual(t, len(encoded), limit)
		}
	}
}

func TestTheDetailsSayWhatTheSessionOfAStewardSays(t *testing.T) {
	sp := spec.Spec{Session: map[string]string{"user": "crew", "steward": "crew", "task": "t1", "plan": strings.Repeat("cafe", 16), "approvedBy": "ann"}}
	require.Contains(t, launch.Of("x", "pawl/x", sp).Details, "| for | the task t1 of steward crew, plan cafecafecafecafe, approved by ann (as its session says, nobody has checked it) |")
}

func TestTheDetailsNameTheAgentAsTheSpecDoes(t *testing.T) {
	for want, a := range map[string]spec.Agent{
		"echo 'a b' \\| sh": {Use: "command", Command: spec.Argv{Shell: "echo 'a b' | sh"}},
		"sh 'my agent.sh'":  {Use: "command", Command: spec.Argv{List: []string{"sh", "my agent.sh"}}},
		"claude":            {Use: "claude"},
		"acp: goose acp":    {Use: "acp", Command: spec.Argv{List: []string{"goose", "acp"}}},
	} {
		require.Contains(t, launch.Of("x", "pawl/x", spec.Spec{Agent: a}).Details, "| agent | "+want+" |")
	}
}

func TestAStewardThatHasEndedIsNotListedAmongThoseThatWait(t *testing.T) {
	s := steward.State{Steward: "crew", Status: loop.Waiting, Gates: []loop.Gate{{ID: "tier-1", Kind: steward.GateTier}}}
	require.Equal(t, "tier", launch.PublishedOfSteward(s)[launch.Gate])
	s.Status = loop.Halted
	require.NotContains(t, launch.PublishedOfSteward(s), launch.Gate)
}

func TestTheIDIsTheOneAskedForElseTheNameElseTheFolderWithASuffix(t *testing.T) {
	for _, c := range []struct{ name, path, url, asked, want, refused string }{
		{name: "nightly", path: "/src/shop", want: "nightly"},
		{name: "nightly", path: "/src/shop", asked: "nightly-7", want: "nightly-7"},
		{name: "nightly", path: "/src/shop", asked: "other", refused: "does not begin with the spec's name"},
		{path: "/src/shop", asked: "a b ", refused: "ends with a space"},
		{path: "/src/shop", want: "shop-1a2b"},
		{url: "https://example.com/shop.git", want: "shop-1a2b"},
		{path: "/src/-.lädchen", want: "l-dchen-1a2b"},
		{path: "/", want: "loop-1a2b"},
	} {
		sp := spec.Spec{Name: c.name, Repo: spec.Repo{Path: c.path, URL: c.url}}
		id, err := launch.ID(sp, c.asked, "1a2b")
		if c.refused != "" {
			require.ErrorContains(t, err, c.refused)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, id)
		require.NoError(t, spec.ValidID(id))
	}
}

func TestEverySearchAttributeHasATypeOfTemporalsAndStandsInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/guides/temporal.md")
	require.NoError(t, err)
	best := metric.MustDecimal("1.5")
	full := launch.Published(loop.State{Kind: "improve", Gate: &loop.Gate{Kind: loop.GateDiff}, Best: &best})
	require.Len(t, full, len(launch.Attributes))
	for _, a := range launch.Attributes {
		_, err := enumspb.IndexedValueTypeFromString(a.Type)
		require.NoError(t, err)
		require.Contains(t, strings.ReplaceAll(string(page), "\\\n ", ""), "--name "+a.Name+" --type "+a.Type)
		require.IsType(t, map[string]any{"Keyword": "", "Int": int64(0), "Double": 0.0}[a.Type], full[a.Name])
	}
	require.NotContains(t, launch.Published(loop.State{}), launch.Gate)
}

func TestAnArgumentOfAQueryIsReadWithoutGoTypes(t *testing.T) {
	n, err := launch.Number(nil)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = launch.Number([]byte("10"))
	require.NoError(t, err)
	require.Equal(t, 10, n)
	for _, wrong := range []string{`"x"`, `{}`, `1.5`, `1e30`, `99999999999999999999`} {
		_, err := launch.Number([]byte(wrong))
		require.EqualError(t, err, "the argument must be a whole number such as 10, not "+wrong)
	}
	text, err := launch.Text([]byte(`"retry"`))
	require.NoError(t, err)
	require.Equal(t, "retry", text)
	_, err = launch.Text([]byte("5"))
	require.EqualError(t, err, `the argument must be a text such as "retry", not 5`)
}
