package task_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/steward/task"
)

func nobody(string) bool { return false }

func TestS5_ATaskIsRead(t *testing.T) {
	got, err := task.DecodeTask([]byte(`{"id":"a","title":"Fix it","body":"It is broken.","priority":5,"after":["b"],"tier":"T3","source":"ann","dedupe":"k"}`), nil)
	require.NoError(t, err)
	require.Equal(t, task.Task{ID: "a", Title: "Fix it", Body: "It is broken.", Priority: 5, After: []string{"b"}, Tier: task.T3, Source: "ann", Dedupe: "k"}, got)
}

func TestS5_EverythingThatIsWrongWithATaskIsSaidAtOnce(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name, doc string
		want      []string
	}{
		{"nothing in it", `{}`, []string{"body: is missing, and so are title, spec and plan"}},
		{"blank", `{"body":" \n"}`, []string{"body: is missing"}},
		{"body and spec", `{"body":"x","spec":{"goal":"y"}}`, []string{"spec: is given beside body"}},
		{"spec and plan", `{"spec":{},"plan":[{"id":"a","kind":"improve"}]}`, []string{"spec: is given beside plan"}},
		{"keys and types", `{"body":"x","boddy":"y","priority":"high","after":"a"}`, []string{"boddy: is not a key of a task; want: body (did you mean it?)", `priority: is "high"`, "after: is"}},
		{"values", `{"body":"x","id":"Fix It","tier":"T9","priority":1001,"title":"a\u202eb","dedupe":"a\nb"}`, []string{
			`id: is "Fix It"; want: at most 60 of a to z, 0 to 9 and the hyphen, such as "fix-it"`, `tier: is "T9"; want: T0, T1, T2 or T3`, "priority: is 1001; want: from -1000 to 1000", "title: contains the unprintable character U+202E", "dedupe: contains"}},
		{"IDs that leave their folder", `{"body":"x","id":"../x"}`, []string{"id: is"}},
		{"a plan", `{"plan":[{"id":"a","kind":"x"},{"id":"b","kind":"improve","after":["c"]}]}`, []string{"plan[0].kind", "plan[1].after[0]"}},
		{"a spec of no loop", `{"spec":{"kind":"steward"}}`, []string{`spec.kind: is "steward"; want: improve or deliver`}},
		{"sizes", `{"title":"` + long(201) + `","body":"` + long(64<<10+1) + `","id":"` + long(61) + `","dedupe":"` + long(201) + `"}`, []string{"title: is 201 bytes", "body: is 65537 bytes", "id: is", "dedupe: is 201"}},
		{"a NUL", `{"body":"a\u0000b"}`, []string{"body: contains a NUL byte"}},
		{"no JSON", `{"body"`, []string{"not valid JSON", "one JSON object with the keys of a task"}},
		{"a list", `[]`, []string{"the document is a list"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := task.DecodeTask([]byte(c.doc), nil)
			var f *fault.Error
			require.ErrorAs(t, err, &f)
			require.Equal(t, fault.InvalidMessage, f.Code)
			for _, want := range c.want {
				require.Contains(t, err.Error(), want)
			}
		})
	}
	_, err := task.DecodeTask([]byte(`{"body":"`+long(task.MaxTask)+`"}`), nil)
	require.ErrorContains(t, err, "at most 524288 are allowed")
	_, err = task.DecodeTask([]byte(`{"title":"`+long(200)+`","body":"`+long(64<<10)+`","id":"`+long(60)+`","priority":-1000}`), nil)
	require.NoError(t, err)
}

func TestS5_ATaskIsAdmittedWithIDAndTitle(t *testing.T) {
	for _, c := range []struct {
		in        task.Task
		id, title string
	}{
		{task.Task{ID: "a", Title: "Fix it", Body: "x"}, "a", "Fix it"},
		{task.Task{Title: "Fix it"}, "fix-it", "Fix it"},
		{task.Task{Title: "  Fix the login (#12)! ", Body: "x"}, "fix-the-login-12", "Fix the login (#12)!"},
		{task.Task{Body: "\n## Make it *faster*\n\nAs fast as we can."}, "make-it-faster", "Make it *faster*"},
		{task.Task{Title: "日本語", Body: "x"}, "task", "日本語"},
		{task.Task{Spec: json.RawMessage(`{"goal":"g"}`)}, "task", "task"},
		{task.Task{Title: strings.Repeat("word ", 30), Body: "x"}, strings.TrimSuffix(strings.Repeat("word-", 12), "-"), strings.TrimSpace(strings.Repeat("word ", 30))},
		{task.Task{Title: strings.Repeat("a", 100), Body: "x"}, strings.Repeat("a", 60), strings.Repeat("a", 100)},
	} {
		got, err := task.Admit(c.in, nobody)
		require.NoError(t, err)
		require.Equal(t, c.id, got.ID)
		require.Equal(t, c.title, got.Title)
		again, err := task.Admit(got, nobody)
		require.NoError(t, err)
		require.Equal(t, got, again, "to admit what was admitted changes nothing")
	}
	got, err := task.Admit(task.Task{Plan: []task.Step{{ID: "a", Kind: "improve"}, {ID: "b", Kind: "deliver"}}}, nobody)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, got.Plan[1].After)
}

func TestS5_ATaskComesAfterTasksThatThereAre(t *testing.T) {
	known := func(id string) bool { return id == "there" }
	_, err := task.Admit(task.Task{ID: "a", Body: "x", After: []string{"there"}}, known)
	require.NoError(t, err)
	_, err = task.Admit(task.Task{ID: "a", Body: "x", After: []string{"there", "a", "elsewhere"}, Priority: 2000}, known)
	for _, want := range []string{"after[1]: is the task itself", `after[2]: is "elsewhere", and there is no such task`, "priority: is 2000"} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "after[0]")
}

func TestS5_APlanThatItsFileCannotHoldIsRefused(t *testing.T) {
	var steps []task.Step
	for _, id := range strings.Fields("a b c d e f g h i j k l m n o p q r") {
		steps = append(steps, task.Step{ID: id, Kind: "improve", Spec: json.RawMessage(`{"goal":"` + strings.Repeat("x", 15<<10) + `"}`)})
	}
	_, err := task.Admit(task.Task{Title: "t", Plan: steps}, nobody)
	require.ErrorContains(t, err, "at most 262144")
}

func TestATaskOfASpecIsCheckedUnderItsKey(t *testing.T) {
	problems := task.Task{Body: "x", Tier: "T9"}.Check("schedules[0].task")
	require.Len(t, problems, 1)
	require.Equal(t, "schedules[0].task.tier", problems[0].Key)
	require.Equal(t, "tier", task.Task{Body: "x", Tier: "T9"}.Check("")[0].Key)
}

func TestManyTasksOfOneTitleHaveAnIDEach(t *testing.T) {
	ids := map[string]bool{}
	const many = 100_000
	for n := range many {
		ids[task.IDOf(task.Task{Title: "Say when we are open"}, strconv.Itoa(n))] = true
	}
	require.Len(t, ids, many, "the steward takes a task of an ID that it knows for that task")
}
