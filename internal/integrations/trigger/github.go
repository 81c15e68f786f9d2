package trigger

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"mime"
	"strings"

	"github.com/google/go-github/v75/github"

	"pawl/internal/lib/list"
	"pawl/internal/steward/delivery"
)

// readGitHub takes work from three events: a failed workflow run, a failed check suite, and an issue that was opened or
// labelled. Run and suite of one commit have the same key, so they make one task. All events of one issue have the same
// key, too.
func readGitHub(r request) (e delivery.Event, why string, err error) {
	kind := r.header.Get(github.EventTypeHeader)
	switch kind {
	case "workflow_run", "check_suite", "issues":
	default:
		return e, "pawl takes workflow_run, check_suite and issues from GitHub", nil
	}
	// The signature was verified over the whole body. If the body is a form, this takes the JSON out of it.
	media, _, _ := mime.ParseMediaType(r.header.Get("Content-Type"))
	payload, err := github.ValidatePayloadFromBody(media, bytes.NewReader(r.body), "", nil)
	if err != nil {
		return e, "", err
	}
	if len(payload) == 0 { // what a form lacks would be said to be JSON that ends too early
		return e, "", errors.New("it is a form without the field payload: send the event as application/json")
	}
	event, err := github.ParseWebHook(kind, payload)
	if err != nil {
		return e, "", err
	}
	switch event := event.(type) {
	case *github.WorkflowRunEvent:
		e, why = failedRun(event)
	case *github.CheckSuiteEvent:
		e, why = failedSuite(event)
	case *github.IssuesEvent:
		e, why = newIssue(event)
	default: // `null` is JSON, but no event
		err = errBody
	}
	e.Delivery = r.header.Get(github.DeliveryIDHeader)
	e.Delivery = cmp.Or(e.Delivery, digest(r.body))
	return e, why, err
}

func failedRun(event *github.WorkflowRunEvent) (e delivery.Event, why string) {
	run := event.GetWorkflowRun()
	if why = unfailed(event.GetAction(), run.GetConclusion(), run.GetHeadBranch()); why != "" {
		return e, why
	}
	return delivery.Event{
		Key:   suiteKey(event.GetRepo(), run.GetCheckSuiteID()),
		Title: fmt.Sprintf("CI failed: %s on %s", run.GetName(), run.GetHeadBranch()),
		Body: fmt.Sprintf("Workflow: %s\nRun: %d, attempt %d\nConclusion: %s\nCommit: %s\nMessage: %s", run.GetName(), run.GetRunNumber(),
			run.GetRunAttempt(), run.GetConclusion(), run.GetHeadSHA(), run.GetHeadCommit().GetMessage()),
		Name: run.GetName(), Action: run.GetConclusion(), Repo: event.GetRepo().GetFullName(), Branch: run.GetHeadBranch(), Commit: run.GetHeadSHA(), URL: run.GetHTMLURL(),
	}, ""
}

func failedSuite(event *github.CheckSuiteEvent) (e delivery.Event, why string) {
	suite := event.GetCheckSuite()
	if why = unfailed(event.GetAction(), suite.GetConclusion(), suite.GetHeadBranch()); why != "" {
		return e, why
	}
	app := suite.GetApp().GetName()
	return delivery.Event{
		Key:   suiteKey(event.GetRepo(), suite.GetID()),
		Title: fmt.Sprintf("Checks failed: %s on %s", app, suite.GetHeadBranch()),
		Body: fmt.Sprintf("Checks of: %s\nConclusion: %s\nCommit: %s\nMessage: %s", app, suite.GetConclusion(), suite.GetHeadSHA(),
			suite.GetHeadCommit().GetMessage()),
		Name: app, Action: suite.GetConclusion(), Repo: event.GetRepo().GetFullName(), Branch: suite.GetHeadBranch(), Commit: suite.GetHeadSHA(),
		URL: event.GetRepo().GetHTMLURL() + "/commit/" + suite.GetHeadSHA() + "/checks",
	}, ""
}

// unfailed says why checks ask for no work, "" if they do. Branches of pawl's own never do: a loop whose checks fail
// would otherwise make a task that makes a loop.
func unfailed(action, conclusion, branch string) string {
	switch {
	case action != "completed":
		return "the checks have not ended"
	case conclusion != "failure" && conclusion != "timed_out" && conclusion != "startup_failure":
		return "the checks have not failed"
	case strings.HasPrefix(branch, "pawl/"):
		return "the branch is one of pawl's own loops"
	}
	return ""
}

func suiteKey(repo *github.Repository, suite int64) string {
	return fmt.Sprintf("%s/check_suite/%d", repo.GetFullName(), suite)
}

func newIssue(event *github.IssuesEvent) (e delivery.Event, why string) {
	issue := event.GetIssue()
	switch {
	case event.GetAction() != "opened" && event.GetAction() != "labeled":
		return e, "the issue was neither opened nor labelled"
	case issue == nil || issue.GetState() == "closed":
		return e, "the issue is closed"
	}
	e = delivery.Event{
		Key:   fmt.Sprintf("%s/issues/%d", event.GetRepo().GetFullName(), issue.GetNumber()),
		Title: issue.GetTitle(), Body: issue.GetBody(), Name: fmt.Sprintf("#%d", issue.GetNumber()), Action: event.GetAction(),
		Repo: event.GetRepo().GetFullName(), URL: issue.GetHTMLURL(),
	}
	e.Labels = list.Map(issue.Labels, func(l *github.Label) string { return l.GetName() })
	return e, ""
}
