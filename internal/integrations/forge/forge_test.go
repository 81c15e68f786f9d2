package forge_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/home"
	"pawl/internal/integrations/forge"
	"pawl/internal/steward/charter"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// host answers as GitHub does, with an answer for each path, and 404 for other paths.
type host struct {
	*testing.T
	*httptest.Server
	home    home.Home
	answers map[string]string
	status  map[string]int
	header  http.Header
	asked   []string
}

func serve(t *testing.T) *host {
	h := &host{T: t, home: home.Home{Dir: t.TempDir()}, status: map[string]int{}, header: http.Header{}}
	h.answers = map[string]string{
		"/api/repos/acme/shop/issues":                  `[]`,
		"/api/repos/acme/shop/commits/main/status":     `{"sha": "abc", "state": "pending", "statuses": []}`,
		"/api/repos/acme/shop/commits/main/check-runs": `{"total_count": 0, "check_runs": []}`,
	}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked = append(h.asked, r.URL.Path+" "+r.Header.Get("Authorization"))
		for name, values := range h.header {
			w.Header()[name] = values
		}
		answer, ok := h.answers[r.URL.Path]
		if status := h.status[r.URL.Path]; status != 0 {
			w.WriteHeader(status)
		} else if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(h.Close)
	require.NoError(t, os.WriteFile(filepath.Join(h.home.Dir, "token"), []byte("t0ken\n"), 0o600))
	return h
}

func (h *host) scan() (forge.Status, error) {
	return forge.Scan(h.Context(), h.home, charter.Remote{API: h.URL + "/api/repos/acme/shop", TokenFile: "token"}, "main", now)
}

func TestS11_TheRemotesOpenWorkAndCIStatusAreRead(t *testing.T) {
	h := serve(t)
	s, err := h.scan()
	require.NoError(t, err)
	require.Equal(t, forge.Status{CI: forge.None, Base: "main", Commit: "abc"}, s)
	for _, asked := range h.asked {
		require.Contains(t, asked, "Bearer t0ken")
	}

	h.answers["/api/repos/acme/shop/issues"] = `[{"number": 3}, {"number": 2}, {"number": 1, "pull_request": {"url": "https://x"}}]`
	s, err = h.scan()
	require.NoError(t, err)
	require.Equal(t, forge.Status{Issues: 2, Pulls: 1, CI: forge.None, Base: "main", Commit: "abc"}, s)
}

func TestS11_TheCIStatusOfABase(t *testing.T) {
	h := serve(t)
	for _, row := range []struct {
		statuses, runs, ci string
		failing            []string
	}{
		{`{"state": "success", "context": "ci"}`, ``, forge.Success, nil},
		{``, `{"status": "completed", "conclusion": "success"}`, forge.Success, nil},
		{``, `{"status": "completed", "conclusion": "skipped"}`, forge.Success, nil},
		{`{"state": "success"}`, `{"status": "in_progress"}`, forge.Pending, nil},
		{`{"state": "success"}`, `{"status": "completed", "conclusion": "cancelled"}`, forge.Cancelled, nil},
		{``, `{"status": "completed", "conclusion": "stale"}, {"status": "completed", "conclusion": "success"}`, forge.Cancelled, nil},
		{``, `{"status": "completed", "conclusion": "cancelled"}, {"status": "queued"}`, forge.Pending, nil},
		{`{"state": "pending"}`, `{"status": "completed", "conclusion": "success"}`, forge.Pending, nil},
		{`{"state": "error", "context": "ci/old"}`, `{"status": "queued"}, {"name": "test", "status": "completed", "conclusion": "timed_out"}`, forge.Failure, []string{"ci/old", "test"}},
	} {
		h.answers["/api/repos/acme/shop/commits/main/status"] = `{"sha": "abc", "statuses": [` + row.statuses + `]}`
		h.answers["/api/repos/acme/shop/commits/main/check-runs"] = `{"check_runs": [` + row.runs + `]}`
		s, err := h.scan()
		require.NoError(t, err)
		require.Equal(t, row.ci, s.CI, "%+v", row)
		require.Equal(t, row.failing, s.Failing)
	}
}

func TestS11_AFailedCheckOnALaterPageCounts(t *testing.T) {
	for _, list := range []struct{ path, first, last string }{
		{"check-runs", `{"check_runs": [{"status": "completed", "conclusion": "success"}]}`, `{"check_runs": [{"name": "late", "status": "completed", "conclusion": "failure"}]}`},
		{"status", `{"sha": "abc", "statuses": [{"state": "success"}]}`, `{"sha": "abc", "statuses": [{"state": "failure", "context": "late"}]}`},
	} {
		path := "/api/repos/acme/shop/commits/main/" + list.path
		h := serve(t)
		h.answers[path] = list.first
		inner := h.Server.Config.Handler
		h.Server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path != path:
				inner.ServeHTTP(w, r)
			case r.URL.Query().Get("page") == "2":
				fmt.Fprint(w, list.last)
			default:
				w.Header().Set("Link", `<`+h.URL+path+`?page=2>; rel="next"`)
				fmt.Fprint(w, list.first)
			}
		})
		s, err := h.scan()
		require.NoError(t, err)
		require.Equal(t, forge.Failure, s.CI, list.path)
		require.Equal(t, []string{"late"}, s.Failing)
	}
}

func TestS11_ChecksThatWereNotReadAreNoSuccess(t *testing.T) {
	h := serve(t)
	h.header.Set("Link", `<`+h.URL+`/api/x?page=2>; rel="next"`)
	h.answers["/api/repos/acme/shop/commits/main/check-runs"] = `{"check_runs": [{"status": "completed", "conclusion": "success"}]}`
	s, err := h.scan()
	require.NoError(t, err)
	require.Equal(t, forge.Pending, s.CI)
}

func TestS11_AScanIsBounded(t *testing.T) {
	h := serve(t)
	h.header.Set("Link", `<`+h.URL+`/api/repos/acme/shop/issues?page=2>; rel="next"`)
	h.answers["/api/repos/acme/shop/issues"] = `[{"number": 1}]`
	s, err := h.scan()
	require.NoError(t, err)
	require.Equal(t, 3, s.Issues)
	require.True(t, s.More)
	h.answers["/api/repos/acme/shop/issues"] = `[{"number": 1, "title": "` + strings.Repeat("x", 17<<20) + `"}]`
	_, err = h.scan()
	require.Error(t, err, "an answer that does not end is cut off")
}

func TestS11_ARateLimitSaysUntilWhen(t *testing.T) {
	for name, limit := range map[string]struct {
		status int
		header http.Header
		body   string
	}{
		"primary":   {http.StatusForbidden, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {fmt.Sprint(now.Add(time.Hour).Unix())}}, `{}`},
		"secondary": {http.StatusForbidden, http.Header{"Retry-After": {"3600"}}, `{"documentation_url": "https://docs.github.com/secondary-rate-limits"}`},
		"of others": {http.StatusTooManyRequests, http.Header{"Retry-After": {"3600"}}, `{}`},
	} {
		for _, path := range []string{"issues", "commits/main/status", "commits/main/check-runs"} {
			h := serve(t)
			at := "/api/repos/acme/shop/" + path
			h.status[at], h.answers[at] = limit.status, limit.body
			h.header = limit.header
			_, err := h.scan()
			var until *forge.RateLimited
			require.ErrorAs(t, err, &until, "%s of %s", name, path)
			require.True(t, now.Add(time.Hour).Equal(until.Until), "%s: %s", name, until.Until)
		}
	}
}

func TestTheTokenGoesToNobodyElse(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	t.Cleanup(other.Close)
	h := serve(t)
	h.status["/api/repos/acme/shop/issues"] = http.StatusMovedPermanently
	h.header.Set("Location", other.URL)
	_, err := h.scan()
	require.ErrorContains(t, err, "where pawl does not send the token")

	for api, says := range map[string]string{
		"http://api.example/repos/acme/shop": "in clear text",
		h.URL + "/api":                       "/repos/OWNER/NAME",
		h.URL + "/repos/acme":                "/repos/OWNER/NAME",
		h.URL + "/repos/acme/shop/issues":    "/repos/OWNER/NAME",
	} {
		_, err := forge.Scan(t.Context(), h.home, charter.Remote{API: api, TokenFile: "token"}, "main", now)
		require.ErrorContains(t, err, says)
	}
	_, err = forge.Scan(t.Context(), h.home, charter.Remote{API: h.URL + "/repos/a/b", TokenFile: "none"}, "main", now)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestARemoteThatFailsIsAnError(t *testing.T) {
	h := serve(t)
	h.status["/api/repos/acme/shop/commits/main/status"] = http.StatusInternalServerError
	_, err := h.scan()
	require.ErrorContains(t, err, "CI status")
	var until *forge.RateLimited
	require.False(t, errors.As(err, &until))
	h.Close()
	_, err = h.scan()
	require.ErrorContains(t, err, "open work")
}

func TestS11_AnAnswerOfTheRemoteThatCannotBeUsedIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer string
		want   string
	}{
		"no such project": {404, `{"message": "Not Found"}`, "it answers 404 Not Found: there is no such project, or the token may not read it (see remote.api and remote.tokenFile)"},
		"token refused":   {401, `{"message": "Bad credentials"}`, "it answers 401 Bad credentials (see remote.tokenFile)"},
		"not allowed":     {403, `{"message": "Resource not accessible"}`, "it answers 403 Resource not accessible (see remote.tokenFile)"},
		"no message":      {500, ``, "it answers 500 Internal Server Error"},
		"hostile message": {500, `{"message": "a\u001b[2J\nb\u202ec"}`, "it answers 500 a[2J bc"},
		"an object":       {200, `{}`, "its answer is not what GitHub's API gives (see remote.api)"},
		"a page":          {200, `<html>`, "its answer is not what GitHub's API gives (see remote.api)"},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t)
			h.status["/api/repos/acme/shop/issues"], h.answers["/api/repos/acme/shop/issues"] = c.status, c.answer
			_, err := h.scan()
			require.EqualError(t, err, "reading the remote's open work: "+c.want)
		})
	}
}

func TestAnAddressThatCannotBeAProjectsIsRefusedBeforeItIsUsed(t *testing.T) {
	for _, c := range []struct{ api, token, want string }{
		{"https://api.github.com/repos/acme/shop", "", ""},
		{"https://git.acme.example/api/v3/repos/acme/shop/", "token", ""},
		{"http://127.0.0.1:8080/repos/acme/shop", "token", ""},
		{"http://git.acme.example/repos/acme/shop", "", ""},
		{"http://git.acme.example/repos/acme/shop", "token", "is not https"},
		{"https://github.com/acme/shop", "", "does not end in /repos/OWNER/NAME"},
		{"https://api.github.com/repos/acme", "", "does not end in /repos/OWNER/NAME"},
		{"https://api.github.com/repos/acme/shop/issues", "", "does not end in /repos/OWNER/NAME"},
		{"https://api.github.com/repos//shop", "", "does not end in /repos/OWNER/NAME"},
		{"https://api.github.com", "", "does not end in /repos/OWNER/NAME"},
	} {
		err := forge.Check(charter.Remote{API: c.api, TokenFile: c.token})
		if c.want == "" {
			require.NoError(t, err, c.api)
		} else {
			require.ErrorContains(t, err, c.want, c.api)
		}
	}
}
