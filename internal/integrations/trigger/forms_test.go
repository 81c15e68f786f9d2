package trigger_test

import (
	"bufio"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/home"
	"pawl/internal/integrations/trigger"
	"pawl/internal/steward/charter"
)

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

const failedRun = `{"action": "completed", "repository": {"full_name": "acme/shop", "html_url": "https://github.com/acme/shop"}, "workflow_run": {
	"id": 1, "name": "test", "head_branch": "main", "head_sha": "abc", "conclusion": "failure", "check_suite_id": 7, "run_attempt": 1,
	"html_url": "https://github.com/acme/shop/actions/runs/1", "head_commit": {"message": "Speed up"}}}`

const failedSuite = `{"action": "completed", "repository": {"full_name": "acme/shop", "html_url": "https://github.com/acme/shop"}, "check_suite": {
	"id": 7, "head_branch": "main", "head_sha": "abc", "conclusion": "failure", "app": {"name": "GitHub Actions"}}}`

func issue(action, more string) string {
	return `{"action": "` + action + `", "repository": {"full_name": "acme/shop"}, "issue": {"number": 12, "title": "Crash", "body": "It crashes",
		"state": "open", "html_url": "https://github.com/acme/shop/issues/12", "labels": [{"name": "bug"}]` + more + `}}`
}

func TestS5_FailedCIOnGitHubIsOneTaskForRunAndSuite(t *testing.T) {
	b := serve(t)
	first := b.github("workflow_run", "1", failedRun)
	require.Equal(t, "accepted", first.Result)
	require.Equal(t, "CI failed: test on main", b.tasks[0].Title)
	require.Contains(t, b.tasks[0].Body, "`https://github.com/acme/shop/actions/runs/1`")
	require.Contains(t, b.tasks[0].Body, "Message: Speed up")
	suite := b.github("check_suite", "2", failedSuite)
	require.Equal(t, "duplicate", suite.Result)
	require.Equal(t, first.Task, suite.Task)
	form := url.Values{"payload": {`{"action": "completed", "repository": {"full_name": "acme/shop"}, "check_suite": {"id": 8, "conclusion": "timed_out"}}`}}.Encode()
	require.Equal(t, "accepted", b.send("POST", "/v1/shop/github", form, http.Header{
		"X-Github-Event": {"check_suite"}, "X-Hub-Signature-256": {signature(form)}, "Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"},
	}).Result)
	plain := `{"action": "completed"}` // sent as a form, as curl does unless it is told otherwise
	require.Contains(t, b.send("POST", "/v1/shop/github", plain, http.Header{
		"X-Github-Event": {"check_suite"}, "X-Hub-Signature-256": {signature(plain)}, "Content-Type": {"application/x-www-form-urlencoded"},
	}).Why, "it is a form without the field payload")
}

func TestS5_AnIssueOnGitHubIsOneTask(t *testing.T) {
	b := serve(t)
	require.Equal(t, "accepted", b.github("issues", "1", issue("opened", "")).Result)
	require.Equal(t, "duplicate", b.github("issues", "2", issue("labeled", "")).Result)
	require.Equal(t, "Crash", b.tasks[0].Title)
	require.Contains(t, b.tasks[0].Body, "It crashes")
}

func TestWhatGitHubSendsBesides(t *testing.T) {
	b := serve(t)
	for _, d := range [][2]string{
		{"ping", `{"zen": "x"}`}, {"push", `{}`}, {"no such event", `{}`}, {"", `{}`},
		{"issues", issue("closed", "")}, {"issues", issue("opened", `, "state": "closed"`)}, {"issues", `{"action": "opened"}`},
		{"workflow_run", `{"action": "requested", "workflow_run": {"conclusion": "failure"}}`},
		{"workflow_run", `{"action": "completed", "workflow_run": {"conclusion": "success"}}`},
		{"check_suite", `{"action": "completed", "check_suite": {"conclusion": "failure", "head_branch": "pawl/shop-1"}}`}, {"check_suite", `{}`},
	} {
		a := b.github(d[0], "1", d[1])
		require.Equal(t, "ignored", a.Result, "%s: %+v", d, a)
		require.NotEmpty(t, a.Why)
	}
	for _, body := range []string{"null", "[]", "{", `{"issue": 7}`, ""} {
		require.Equal(t, http.StatusBadRequest, b.github("issues", "1", body).status, body)
	}
	require.Zero(t, b.asked)
}

func (b *bench) alerts(body string) said {
	b.Helper()
	return b.send("POST", "/v1/shop/alertmanager", body, http.Header{"Authorization": {"Bearer " + secret}})
}

func TestS5_AGroupOfAlertsIsOneTaskForAsLongAsItFires(t *testing.T) {
	b := serve(t)
	group := func(first, second string) string {
		return `{"version": "4", "groupKey": "{}:{alertname=\"Slow\"}", "status": "firing", "commonLabels": {"alertname": "Slow", "severity": "page"},
			"commonAnnotations": {"summary": "Checkout is slow"}, "externalURL": "http://am:9093", "alerts": [
			{"status": "` + first + `", "labels": {"instance": "a"}, "annotations": {"runbook": "read me"}, "startsAt": "2026-11-22T10:00:00Z"},
			{"status": "` + second + `", "labels": {"instance": "b"}, "startsAt": "2026-11-22T11:00:00Z"}]}`
	}
	require.Equal(t, "accepted", b.alerts(group("firing", "resolved")).Result)
	require.Equal(t, "duplicate", b.alerts(group("firing", "firing")).Result)
	require.Equal(t, "accepted", b.alerts(group("resolved", "firing")).Result, "the first one is over")
	require.Equal(t, "ignored", b.alerts(group("resolved", "resolved")).Result)
	require.Equal(t, "Checkout is slow", b.tasks[0].Title)
	require.Contains(t, b.tasks[0].Body, `since 2026-11-22T10:00:00Z: instance="a"`)
	require.Contains(t, b.tasks[0].Body, "runbook: read me")
	require.Equal(t, http.StatusBadRequest, b.alerts(`{"alerts": [{"status": "firing"}]}`).status)
	require.Equal(t, http.StatusBadRequest, b.alerts(`[]`).status)
}

func TestWhatIsNoObjectIsRefused(t *testing.T) {
	b := serve(t)
	for _, body := range []string{"", "null", "7", "[]", `"x"`, "{", `{"a": 1} {}`} {
		require.Equal(t, http.StatusBadRequest, b.json(body, "1").status, body)
		require.Equal(t, http.StatusBadRequest, b.standard("1", b.now, body).status, body)
	}
	require.Equal(t, "accepted", b.json(`{"title": 7, "labels": "x", "body": {"deep": [1]}}`, "1").Result)
	require.Equal(t, "A delivery without a title", b.tasks[0].Title)
	require.Contains(t, b.tasks[0].Body, `"deep": [`)
}

// FuzzDelivery sends what a sender with the secret could send. No answer may be an error of the server itself.
func FuzzDelivery(f *testing.F) {
	dir := f.TempDir()
	require.NoError(f, os.WriteFile(filepath.Join(dir, "secret"), []byte(secret), 0o600))
	s := &stewards{}
	for _, from := range []string{"github", "alertmanager", "json"} {
		s.triggers = append(s.triggers, charter.Trigger{Name: from, From: from, SecretFile: "secret"})
	}
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	endpoint := trigger.New(s, home.Home{Dir: dir}, slog.New(slog.DiscardHandler), func() time.Time { now = now.Add(time.Second); return now })
	f.Add("workflow_run", failedRun)
	f.Add("check_suite", failedSuite)
	f.Add("issues", issue("opened", ""))
	f.Add("", `{"groupKey": "x", "alerts": [{"status": "firing"}]}`)
	f.Add("", `{"title": "x", "labels": ["y"]}`)
	f.Fuzz(func(t *testing.T, event, body string) {
		for _, from := range []string{"github", "alertmanager", "json"} {
			r := httptest.NewRequest("POST", "/v1/shop/"+from, strings.NewReader(body))
			r.Header = http.Header{
				"X-Github-Event": {event}, "Content-Type": {"application/json"}, "X-Hub-Signature-256": {signature(body)},
				trigger.SignatureHeader: {signature(body)}, "Authorization": {"Bearer " + secret},
			}
			w := httptest.NewRecorder()
			endpoint.ServeHTTP(w, r)
			require.Contains(t, []int{200, 202, 400}, w.Code)
		}
	})
}
