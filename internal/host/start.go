package host

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"pawl/internal/act"
	"pawl/internal/loop"
	"pawl/internal/repo"
	"pawl/internal/spec"
)

// taskTimeout is short, so that a worker that dies inside a workflow task costs seconds and not
// the ten that are Temporal's default.
const taskTimeout = 2 * time.Second

// What a service takes of a summary and of details, encoded; beyond it the start is refused.
const (
	maxSummary = 400
	maxDetails = 20000
)

// StartOptions are those under which every loop is started, whoever starts it: a loop of that ID
// that runs is not touched, one that has ended may be followed by another, and whoever looks at
// it in Temporal sees what it is for, who started it and from where (L12).
func StartOptions(id string, sp spec.Spec) client.StartWorkflowOptions {
	goal, _, _ := strings.Cut(strings.TrimSpace(sp.Goal), "\n")
	return client.StartWorkflowOptions{
		ID:                       id,
		TaskQueue:                act.TaskQueue,
		WorkflowTaskTimeout:      taskTimeout,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		// Else the SDK takes a loop of that name that runs already for the one that it started.
		WorkflowExecutionErrorWhenAlreadyStarted: true,

		StaticSummary: fitting(maxSummary, 200, func(most int) string { return loop.Clip(goal, most) }),
		StaticDetails: fitting(maxDetails, 400, func(most int) string { return details(id, sp, most) }),
		// The branch as far as it is known: where an earlier loop has it, the loop's own gets a suffix.
		Memo: map[string]any{
			"goal": loop.Clip(goal, 500), "branch": "pawl/" + repo.RefName(id), "startedBy": sp.Session["user"],
		},
	}
}

// fitting clips ever harder until the text is short enough as the service counts it.
func fitting(limit, most int, text func(most int) string) string {
	for ; ; most /= 2 {
		if encoded, err := json.Marshal(text(most)); err == nil && len(encoded) <= limit || most < 2 {
			return text(most)
		}
	}
}

// details is what was asked for, as Markdown: it does not change while the loop runs, and is to
// be read also when no worker is up. What the loop does is in its current details.
func details(id string, sp spec.Spec, most int) string {
	var w strings.Builder
	fmt.Fprintf(&w, "%s\n\n| | |\n|---|---|\n", loop.Clip(strings.TrimSpace(sp.Goal), 4*most))
	row := func(name, value string) {
		if value != "" {
			value = strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ").Replace(value)
			fmt.Fprintf(&w, "| %s | %s |\n", name, loop.Clip(value, most))
		}
	}
	row("kind", sp.Kind)
	row("repository", sp.Repo.Place())
	row("base", sp.Repo.Base)
	row("scope", strings.Join(sp.Scope, ", "))
	row("verify", sp.Verify.Command)
	row("guard", sp.Guard.Command)
	row("agent", strings.TrimSpace(sp.Agent.Use+" "+strings.Join(sp.Agent.Command.Args(), " ")))
	row("started by", sp.Session["user"])
	row("from", strings.TrimPrefix(sp.Session["host"]+":"+sp.Session["cwd"], ":"))
	fmt.Fprintf(&w, "\nFollow it with `pawl show %s` and `pawl log -f %s`.\n", id, id)
	return w.String()
}
