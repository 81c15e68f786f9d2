package steward

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/task"
)

func decodeTask(doc []byte) (t task.Task, err error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return t, fault.New(fault.InvalidMessage, "the task is not one: %v", err)
	}
	return t, nil
}

var notID = regexp.MustCompile(`[^a-z0-9]+`)

func idOf(t task.Task) string {
	return cmp.Or(strings.Trim(notID.ReplaceAllString(strings.ToLower(t.Title), "-"), "-"), "task")
}
