// Package display makes what the Temporal UI and the CLI show of a workflow besides its state: search attributes, and
// Markdown in its current details. It knows no kind of workflow. Start reading at Attributes.
package display

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/client/launch"
	"pawl/internal/lib/text/markdown"
	"pawl/internal/loop/rules"
	"pawl/workflows/journal"
)

// Attributes are the values of the search attributes, and when they were last updated.
type Attributes struct {
	said map[string]any
	at   time.Time
}

// publishApart is the least time between two updates of a workflow at work; only the latest step is published.
const publishApart = time.Second

// PublishSoon updates the search attributes: at once if the wait begins or ends, else once every publishApart.
func (a *Attributes) PublishSoon(ctx workflow.Context, now map[string]any) {
	waits := now[launch.Status] != a.said[launch.Status] || now[launch.Gate] != a.said[launch.Gate]
	if waits || workflow.Now(ctx).Sub(a.at) >= publishApart {
		a.Publish(ctx, now)
	}
}

// Publish updates the search attributes that changed, with the next workflow task's completion.
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

// update returns an update of a search attribute; a nil value removes it.
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

// Answer registers the handler of a query, with its description for the Temporal UI.
func Answer(ctx workflow.Context, query, description string, handler any) error {
	return workflow.SetQueryHandlerWithOptions(ctx, query, handler, workflow.QueryHandlerOptions{Description: description})
}

// AnswerFrom registers the handler of a query whose argument is a number, 0 if it is left out.
func AnswerFrom[V any](ctx workflow.Context, query, description string, handler func(offset int) V) error {
	return Answer(ctx, query, description, func(argument json.RawMessage) (V, error) {
		offset, err := launch.Number(argument)
		if err != nil {
			var zero V
			return zero, err
		}
		return handler(offset), nil
	})
}

// AnswerEvents registers the handler of the query for the last events of a journal.
func AnswerEvents[S journal.State[S]](ctx workflow.Context, j *journal.Journal[S]) error {
	return AnswerFrom(ctx, "events", "The last events; the argument, a number, asks for those after it", func(afterSeq int) launch.EventsView {
		return launch.EventsView{Events: j.Since(int64(afterSeq)), Seq: j.State().Last(), Ledger: j.Ledger()}
	})
}

// Ways returns a table of the ways to answer a gate, from the UI and from a shell.
func Ways(ways []rules.Way) string {
	var w strings.Builder
	w.WriteString("| answer | signal or update, JSON input | shell |\n|---|---|---|\n")
	for _, way := range ways {
		payload, err := json.MarshalIndent(way.Payload, "", "")
		if err != nil {
			payload = []byte("{}") // it contains only plain values
		}
		payload = bytes.ReplaceAll(payload, []byte("\n"), []byte(" ")) // blanks let the UI break it, which else cuts the table off
		fmt.Fprintf(&w, "| %s | `%s` with %s | %s |\n", markdown.Text(way.What), way.Message, markdown.CodeCell(string(payload)), markdown.CodeCell(way.Command))
	}
	return w.String()
}

// EndedUnopened writes into the memo how a loop or a steward ended that never opened. Without attributes, Temporal's list
// would only say that its workflow completed.
func EndedUnopened(ctx workflow.Context, status string) {
	if err := workflow.UpsertMemo(ctx, map[string]any{launch.MemoStatus: status}); err != nil {
		workflow.GetLogger(ctx).Warn("the memo was not completed", "error", err)
	}
}
