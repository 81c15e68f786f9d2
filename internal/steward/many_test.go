package steward

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/task"
)

// A steward asks what comes next after each event, and asks anew for each of them when a worker replays it. With
// a thousand tasks that took so long that Temporal ended the workflow task.
func TestS2_WhatComesNextIsCheapWithAThousandTasks(t *testing.T) {
	o := open(t, limits())
	for i := range 1000 {
		o.emit(loop.Event{Type: loop.TaskSubmitted, Submitted: &task.Task{ID: fmt.Sprintf("t%d", i), Body: "x", Plan: []task.Step{{ID: "x", Kind: "improve"}}}})
	}
	allocated := testing.AllocsPerRun(5, func() { Next(o.s, o.c, nil) })
	require.Less(t, allocated, 2000.0, "it looks at each task a few times, and not at each beside each other one")
}
