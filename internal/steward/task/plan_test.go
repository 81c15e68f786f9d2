package task_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward/task"
)

const plan = `---
tier: T2
cost: 1.50
steps:
  - id: measure
    kind: improve
    spec:
      goal: Make it faster
      verify: {command: ./bench.sh, minDelta: 0.10}
  - id: build
    kind: deliver
    after: [measure]
    milestone: The parser is fast
---

# Make the parser faster

First measure, then build.

---

That was a line, not the end.
`

func TestS3_APlanIsReadFromItsFile(t *testing.T) {
	p, err := task.ParsePlan([]byte(plan))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(plan))), p.Hash)
	require.Len(t, p.Hash, 64)
	require.Equal(t, task.T2, p.Tier)
	cost := metric.MustDecimal("1.50")
	require.Equal(t, &task.Cost{Median: &cost}, p.Cost)
	require.Equal(t, []task.Step{
		{ID: "measure", Kind: "improve", Spec: json.RawMessage(`{"goal":"Make it faster","verify":{"command":"./bench.sh","minDelta":0.10}}`)},
		{ID: "build", Kind: "deliver", After: []string{"measure"}, Milestone: "The parser is fast"},
	}, p.Steps)

	same, err := task.ParsePlan([]byte("\uFEFF" + strings.ReplaceAll(plan, "\n", "\r\n")))
	require.NoError(t, err, "as an editor on Windows writes it")
	require.Equal(t, p.Steps, same.Steps)
	require.NotEqual(t, p.Hash, same.Hash, "it is another file, though")
}

func TestS3_EverythingThatIsWrongWithAPlanIsSaidAtOnce(t *testing.T) {
	steps := func(n int) string {
		text := "steps:\n"
		for i := range n {
			text += fmt.Sprintf("  - {id: s%d, kind: improve}\n", i)
		}
		return text
	}
	const one = "steps: [{id: a, kind: improve}]\n"
	for _, c := range []struct {
		name, front string
		want        []string
	}{
		{"nothing", "", []string{"PLAN.md:1: steps: is missing"}},
		{"no steps", "steps: []\n", []string{"PLAN.md:2: steps: has no steps; want: at least one, such as [{id: build, kind: improve}]"}},
		{"no value", "steps:\n", []string{"PLAN.md:2: steps: "}},
		{"unknown keys", "teir: T1\nsteps:\n  - {id: a, kind: improve}\n  - id: b\n    kind: deliver\n    specs: {}\n", []string{
			"PLAN.md:2: teir: is not a key of a plan; want: one of tier, cost, steps", "PLAN.md:7: steps[1].specs: is not a key of a plan; want: steps[1].spec (did you mean it?)"}},
		{"values", "tier: T4\ncost: -1\nsteps:\n- {id: A, kind: steward, milestone: \"a\\nb\"}\n- {id: b, kind: improve, spec: 5, after: [c]}\n", []string{
			`PLAN.md:2: tier: is "T4"; want: T0, T1, T2 or T3`, "PLAN.md:3: cost: is -1", `PLAN.md:5: steps[0].id: is "A"`, `PLAN.md:5: steps[0].kind: is "steward"; want: improve or deliver`,
			"PLAN.md:5: steps[0].milestone: contains the unprintable character U+000A", "PLAN.md:6: steps[1].spec: is 5", `PLAN.md:6: steps[1].after[0]: is "c", and no step has that ID`}},
		{"an ID twice", "steps:\n- {id: a, kind: improve}\n- {id: a, kind: improve}\n", []string{`PLAN.md:4: steps[1].id: is "a", as that of an earlier step`}},
		{"a circle", "steps:\n- {id: a, kind: improve, after: [c]}\n- {id: b, kind: improve, after: [a]}\n- {id: c, kind: improve, after: [b]}\n- {id: d, kind: improve}\n", []string{"steps: the steps wait for each other: a, b, c"}},
		{"a step after itself", "steps: [{id: a, kind: improve, after: [a]}]\n", []string{"wait for each other: a;"}},
		{"several ends", "steps:\n- {id: a, kind: improve}\n- {id: b, kind: improve, after: [a]}\n- {id: c, kind: improve, after: [a]}\n", []string{"steps: end in 2 places: b, c; want: one last step that comes after them, since a task ends with one proposal"}},
		{"too many steps", steps(51), []string{"steps: has 51 steps; want: at most 50"}},
		{"a long ID", "steps: [{id: " + strings.Repeat("a", 41) + ", kind: improve}]\n", []string{"steps[0].id: is"}},
		{"a long fragment", "steps: [{id: a, kind: improve, spec: {goal: " + strings.Repeat("a", 16<<10) + "}}]\n", []string{"steps[0].spec: is 16395 bytes long; want: at most 16384"}},
		{"a key twice", one + "tier: T1\ntier: T0\n", []string{"PLAN.md:4: tier: is given twice"}},
		{"anchors", "tier: &t T1\nsteps: [{id: a, kind: improve, milestone: *t}]\n", []string{"PLAN.md:2: tier: uses an anchor or an alias", "PLAN.md:3: steps[0].milestone: uses an anchor or an alias"}},
		{"a tag", one + "cost: !!binary aGVsbG8=\n", []string{"PLAN.md:3: cost: has the tag !!binary"}},
		{"a number that is none of ours", one + "cost: 0x10\n", []string{`PLAN.md:3: cost: is "0x10"`}},
		{"too deep", one + "tier: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n", []string{"tier[0][0][0][0][0][0][0][0][0][0][0][0…: is nested more than 32 deep", "tier: is a list"}},
		{"no object", "- a\n", []string{"PLAN.md:2: is not an object"}},
		{"no YAML", "a: b: c\n", []string{"PLAN.md:2: not valid YAML"}},
		{"two documents", one + "...\n" + one, []string{"PLAN.md:3: not valid YAML"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := task.ParsePlan([]byte("---\n" + c.front + "---\ntext\n"))
			var problems spec.Problems
			require.ErrorAs(t, err, &problems)
			require.Len(t, problems, len(c.want), err.Error())
			for i, want := range c.want {
				require.Contains(t, strings.ReplaceAll(problems[i].String(), "PLAN.md: ", "PLAN.md:0: "), want)
			}
		})
	}
	for name, file := range map[string]string{
		"does not begin with front matter": "# A plan\n", "front matter between two lines of ---": "---\ntier: T1\n", "is not valid UTF-8": "---\n\xff\n---\n",
		"at most 262144": plan + strings.Repeat(" ", task.MaxPlan),
	} {
		_, err := task.ParsePlan([]byte(file))
		require.ErrorContains(t, err, name)
	}
	_, err := task.ParsePlan([]byte("---\n" + steps(50) + "---\n"))
	require.NoError(t, err)
	_, err = task.ParsePlan([]byte(plan + strings.Repeat(" ", task.MaxPlan-len(plan))))
	require.NoError(t, err)
}

func TestS3_StepsWithoutAfterFollowOneAnother(t *testing.T) {
	p, err := task.ParsePlan([]byte("---\nsteps: [{id: a, kind: improve}, {id: b, kind: improve}, {id: c, kind: improve}]\n---\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, p.Steps[1].After)
	require.Equal(t, []string{"b"}, p.Steps[2].After)
	require.Equal(t, p.Steps, task.InOrder(p.Steps))
	p, err = task.ParsePlan([]byte("---\nsteps: [{id: a, kind: improve}, {id: b, kind: improve}, {id: c, kind: improve, after: [a, b]}]\n---\n"))
	require.NoError(t, err)
	require.Empty(t, p.Steps[1].After, "with after in the plan, it alone says what waits for what")
}

func TestS3_StepsComeInAnOrderInWhichTheyCanBeDone(t *testing.T) {
	steps := []task.Step{{ID: "d", After: []string{"b", "c"}}, {ID: "c", After: []string{"a"}}, {ID: "b", After: []string{"a"}}, {ID: "a"}}
	ordered, circle := task.Order(steps)
	require.Nil(t, circle)
	var ids string
	for _, s := range ordered {
		ids += s.ID
	}
	require.Equal(t, "acbd", ids, "close to the plan's order")
	require.Equal(t, []string{"d"}, task.Last(steps))
}

// Random plans.
func TestAnOrderDoesEachStepOnceAndAfterWhatItComesAfter(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	circles := 0
	for range 2000 {
		steps := make([]task.Step, 1+r.IntN(8))
		for i := range steps {
			steps[i].ID = fmt.Sprint(i)
			for range r.IntN(3) {
				steps[i].After = append(steps[i].After, fmt.Sprint(r.IntN(len(steps))))
			}
		}
		order, circle := task.Order(steps)
		done := []string{}
		for _, s := range order {
			require.NotContains(t, done, s.ID)
			for _, id := range s.After {
				require.Contains(t, done, id)
			}
			done = append(done, s.ID)
		}
		require.Len(t, steps, len(order)+len(circle))
		for _, id := range circle { // each waits for another one of them
			i := slices.IndexFunc(steps, func(s task.Step) bool { return s.ID == id })
			require.True(t, slices.ContainsFunc(steps[i].After, func(after string) bool { return slices.Contains(circle, after) }))
		}
		circles += len(circle)
	}
	require.NotZero(t, circles)
}

func TestS7_ATaskThatBringsItsStepsGetsItsPlanFile(t *testing.T) {
	given := task.Task{ID: "faster", Title: "Make it faster", Tier: task.T1, Body: "\n  As fast as we can.\n\n", Plan: []task.Step{
		{ID: "a", Kind: "improve", Spec: json.RawMessage(`{"verify":{"minDelta":0.10,"command":"a\nb\n"},"goal":"no","name":"1.0","limits":{"onExhausted":null}}`)},
		{ID: "b", Kind: "deliver", Milestone: "It's done: yes"},
	}}
	file, err := task.RenderPlan(given)
	require.NoError(t, err)
	require.Equal(t, `---
tier: T1
steps:
  - id: a
    kind: improve
    spec:
      goal: no
      limits:
        onExhausted: null
      name: "1.0"
      verify:
        command: |
          a
          b
        minDelta: 0.10
  - id: b
    kind: deliver
    after:
      - a
    milestone: 'It''s done: yes'
---

# Make it faster

As fast as we can.
`, string(file))
	again, err := task.RenderPlan(given)
	require.NoError(t, err)
	require.Equal(t, file, again)

	one, err := task.RenderPlan(task.Task{Title: "t", Spec: json.RawMessage(`{"kind":"deliver","goal":"g"}`)})
	require.NoError(t, err)
	p, err := task.ParsePlan(one)
	require.NoError(t, err)
	require.Equal(t, []task.Step{{ID: "work", Kind: "deliver", Spec: json.RawMessage(`{"goal":"g","kind":"deliver"}`)}}, p.Steps)
	require.Equal(t, "# t\n", textOf(one))
	require.Nil(t, task.Task{Body: "x"}.Steps())
}

// textOf returns the Markdown of a plan that pawl has rendered.
func textOf(file []byte) string {
	_, text, _ := strings.Cut(string(file[len("---\n"):]), "\n---\n\n")
	return text
}

func TestAPlanHasItsTitleOnce(t *testing.T) {
	for body, want := range map[string]string{
		"# Make it smaller\n\nOur guests.": "# Make it smaller\n\nOur guests.\n",
		"# Make it smaller":                "# Make it smaller\n",
		"## Make it smaller\n\nx":          "# Make it smaller\n\n## Make it smaller\n\nx\n",
		"# Why\n\nx":                       "# Make it smaller\n\n# Why\n\nx\n",
	} {
		file, err := task.RenderPlan(task.Task{Title: "Make it smaller", Body: body, Plan: []task.Step{{ID: "a", Kind: "improve"}}})
		require.NoError(t, err)
		_, err = task.ParsePlan(file)
		require.NoError(t, err)
		require.Equal(t, want, textOf(file))
	}
}

// FuzzPlan renders plans with arbitrary fragments and reads them back: a person approves exactly what was submitted.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{`{"goal":" a\n---\nb"}`, `{"a":{"":[1,-0.10,true,null,"null","0x1","1_0","<<","\u2028\u0000\t"]}}`, `{"<<":{"a":1},"? b":"|","x\ny":"\n z"}`, `{"d":"2026-01-01","o":"0644","y":"yes","e":1E5}`} {
		f.Add(seed, "title", "body")
	}
	f.Fuzz(func(t *testing.T, fragment, title, body string) {
		doc, err := json.Marshal(map[string]any{"title": title, "plan": []any{map[string]any{"id": "a", "kind": "improve", "spec": json.RawMessage(fragment)}}, "body": body})
		if err != nil {
			return
		}
		given, err := task.DecodeTask(doc, nil)
		if err != nil {
			return
		}
		if _, err := task.Admit(given, func(string) bool { return true }); err != nil { // numbers and depths that no spec has
			require.Regexp(t, "a decimal number|is nested more than|at most", err.Error())
			return
		}
		file, err := task.RenderPlan(given)
		require.NoError(t, err)
		p, err := task.ParsePlan(file)
		require.NoError(t, err, string(file))
		require.Equal(t, given.Plan, p.Steps)
	})
}
