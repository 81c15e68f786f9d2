package steward

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/steward/task"
)

func TestTheListsOfAStateAreNeverAbsent(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T1)
	o.settle()
	o.answer("a", loop.MessageAnswer, Message{Choice: Cancel})
	for _, s := range []State{New("s"), New("s").Shown(10), o.s.Shown(10)} {
		doc, err := json.Marshal(s)
		require.NoError(t, err)
		var m map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(doc, &m))
		for _, list := range []string{"tasks", "queue", "gates", "drift"} {
			require.NotEqual(t, "null", string(m[list]), list)
		}
	}
}

func TestTheTasksThatHaveBegunAreShownFirst(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "over", Body: "x"}, task.T1)
	require.NoError(t, o.say(loop.MessageHalt, Message{Task: id("over")}))
	require.NoError(t, o.say(MessageHold, Message{}))
	o.submit(task.Task{ID: "first", Body: "x"}, task.T1)
	o.submit(task.Task{ID: "later", Body: "x", After: []string{"first"}}, task.T1)
	o.s.Tasks[1], o.s.Tasks[2] = o.s.Tasks[2], o.s.Tasks[1] // as if the task had come before
	require.NoError(t, o.say(MessageResume, Message{}))
	o.settle()
	var shown []string
	for _, task := range o.s.Shown(2).Tasks {
		shown = append(shown, task.ID)
	}
	require.Equal(t, []string{"first", "later"}, shown)
	require.Equal(t, 3, o.s.TasksCount)
}
