package steward

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/task"
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
