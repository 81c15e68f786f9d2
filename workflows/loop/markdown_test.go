package loop_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"pawl/internal/client/launch"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/internal/steward"
	loopworkflow "pawl/workflows/loop"
	stewardworkflow "pawl/workflows/steward"
)

// structure returns the elements of a Markdown page, without its words.
func structure(t *testing.T, page string) map[string]int {
	t.Helper()
	kinds := map[string]int{}
	require.NoError(t, ast.Walk(goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader([]byte(page))), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if kind := n.Kind(); entering && kind != ast.KindText && kind != ast.KindCodeSpan {
			kinds[kind.String()]++
		}
		return ast.WalkContinue, nil
	}))
	return kinds
}

// The page in the Temporal UI has the same headings, tables and rows whatever the name of an agent, a file or a task
// is, and no link or HTML from them.
func TestWordsOfAgentsInTheDetailsAreNoMarkdown(t *testing.T) {
	pages := func(words string) map[string]string {
		gate := loop.Gate{ID: "newFiles-7", Kind: loop.GateNewFiles, Summary: "approve 1 new file: " + words, Hash: theHash, Answers: rules.Answers(loop.GateNewFiles), OpenedAt: time.Unix(0, 0)}
		s := loop.State{
			Loop: "demo-1", Kind: "improve", Status: loop.Waiting, Gate: &gate, Branch: "pawl/" + words, Desk: "/" + words, Reason: words,
			Iterations: []loop.Iteration{{N: 1, Description: words, Reason: "policy:scope"}, {N: 2, Description: words, Kept: true}},
		}
		var ended loop.State = s
		ended.Gate, ended.Status, ended.ExitStatus = nil, loop.Halted, "interrupted"
		keeper := steward.State{Steward: "crew", Gates: []loop.Gate{{ID: words, Kind: steward.GateTier, Summary: words, Task: words, Hash: theHash, Answers: []string{"approve"}}}, Tasks: []steward.Task{{ID: words, Title: words}}, TasksCount: 1}
		sp := spec.Spec{Kind: "improve", Goal: words + "\n\n" + words, Scope: []string{words}}
		sp.Session = map[string]string{"user": words}
		start := launch.Of("demo-1", "pawl/demo-1", sp)
		return map[string]string{
			"waiting": loopworkflow.Details(s, ""), "ended": loopworkflow.Details(ended, ""), "steward": stewardworkflow.Details(keeper), "start": start.Details, "summary": start.Summary,
		}
	}
	plain := pages("words")
	for _, words := range []string{
		"[click](http://evil.example) ![x](http://evil.example/x.png)", "<script>alert(1)</script><b>", "| a | b |\n|---|---|\n| c | d |", "\n\n# Approved\n\n> quote\n\n- item",
		"`code` ``` ~~~", "**bold** _em_ ~~gone~~", "http://evil.example www.evil.example a@evil.example", "ends with a backslash \\", "a\\|b", "&lt;b&gt; &#60;", "\n---\n===", "\u202e\u200b\x1b[2J",
	} {
		for name, page := range pages(words) {
			got, want := structure(t, page), structure(t, plain[name])
			require.True(t, maps.Equal(got, want), "%s of %q: %v, not %v\n%s", name, words, got, want, page)
		}
	}
}
