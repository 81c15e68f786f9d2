// Package display is what the Temporal UI and the CLI show of a workflow beside its state: search
// attributes, and Markdown in its current details. It knows no kind of workflow. Start at Attributes.
package display

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/govern"
	"pawl/internal/launch"
	"pawl/internal/markdown"
)

// Attributes are what the search attributes say, and when they were brought up to date.
type Attributes struct {
	said map[string]any
	at   time.Time
}

// publishApart is how far apart workflows tell that they go on: those that are faster tell of the last
// step.
const publishApart = time.Second

// PublishSoon brings the search attributes up to date as a workflow goes on: at once where it has come to
// wait or waits no more, now and then for the rest.
func (a *Attributes) PublishSoon(ctx workflow.Context, now map[string]any) {
	waits := now[launch.Status] != a.said[launch.Status] || now[launch.Gate] != a.said[launch.Gate]
	if waits || workflow.Now(ctx).Sub(a.at) >= publishApart {
		a.Publish(ctx, now)
	}
}

// Publish brings the search attributes up to date where something changed. They ride on the
// next workflow task's completion and cost no round trip of their own.
func (a *Attributes) Publish(ctx workflow.Context, now map[string]any) {
	a.at = workflow.Now(ctx)
	if maps.Equal(now, a.said) {
		return
	}
	var updates []temporal.SearchAttributeUpdate
	for _, attribute := range launch.Attributes {
		_, said := a.said[attribute.Name]
		if now[attribute.Name] != nil || said {
			updates = append(updates, update(attribute, now[attribute.Name]))
		}
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes were not set", "error", err)
		return
	}
	a.said = now
}

// update sets a search attribute to a value, nil for none.
func update(a launch.Attribute, value any) temporal.SearchAttributeUpdate {
	switch v := value.(type) {
	case int64:
		return temporal.NewSearchAttributeKeyInt64(a.Name).ValueSet(v)
	case float64:
		return temporal.NewSearchAttributeKeyFloat64(a.Name).ValueSet(v)
	case string:
		return temporal.NewSearchAttributeKeyKeyword(a.Name).ValueSet(v)
	}
	return temporal.NewSearchAttributeKeyKeyword(a.Name).ValueUnset()
}

// Ways is a table of how a gate can be answered, from the UI and from a shell.
func Ways(ways []govern.Way) string {
	var w strings.Builder
	w.WriteString("| answer | signal or update, JSON input | shell |\n|---|---|---|\n")
	for _, way := range ways {
		payload, err := json.Marshal(way.Payload)
		if err != nil {
			payload = []byte("{}") // only plain values are in it
		}
		fmt.Fprintf(&w, "| %s | `%s` with %s | %s |\n", markdown.Text(way.What), way.Message, markdown.CodeCell(string(payload)), markdown.CodeCell(way.Command))
	}
	return w.String()
}
