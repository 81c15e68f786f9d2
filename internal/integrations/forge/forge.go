// Package forge reads what a project's host on the network knows about the project (S11): the open issues and pull
// requests, and the CI status of the base. It uses GitHub's REST API, and only reads. Others wrote the text that it
// reads. It cleans and limits that text, which stays untrusted. Start at Scan.
package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v75/github"

	"pawl/internal/home"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/delivery"
)

// The limits of a scan.
const (
	scanTime = 20 * time.Second
	maxPages = 3
	perPage  = 100
	maxBytes = 16 << 20 // of one answer
	maxFails = 20       // names of failed checks
)

// The words for the CI status of a commit.
const (
	Success = "success"
	Failure = "failure"
	Pending = "pending"
	None    = "none" // no check has run
	// Cancelled: nothing has failed, but somebody has ended a check before it could say anything.
	Cancelled = "cancelled"
)

// Status is the result of a scan.
type Status struct {
	Issues, Pulls int      // how many are open
	More          bool     // there are more than were read
	CI            string   // Success, Failure, Pending, None or Cancelled
	Failing       []string // checks
	Base          string   // the branch or commit whose CI status this is
	Commit        string   // the commit of Base, according to the host
}

// RateLimited says until when the host refuses further requests.
type RateLimited struct{ Until time.Time }

func (r *RateLimited) Error() string {
	return "the remote's rate limit is used up until " + r.Until.UTC().Format(time.RFC3339)
}

// Scan reads the open work of the project that r.API names (https://api.github.com/repos/OWNER/NAME), and the CI status
// of base, a branch or commit. The error is *RateLimited if the host says when to come again.
func Scan(ctx context.Context, h home.Home, r charter.Remote, base string, now time.Time) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, scanTime)
	defer cancel()
	c, owner, name, err := connect(h, r)
	if err != nil {
		return Status{}, err
	}
	s := Status{Base: base}
	if err := s.readOpen(ctx, c, owner, name); err != nil {
		return Status{}, fmt.Errorf("reading the remote's open work: %w", limited(err, now))
	}
	if err := s.readCI(ctx, c, owner, name); err != nil {
		return Status{}, fmt.Errorf("reading the remote's CI status: %w", limited(err, now))
	}
	return s, nil
}

// Check returns what keeps an address from being used, whatever answers there.
func Check(r charter.Remote) error {
	api, err := url.Parse(r.API)
	if err != nil {
		return fmt.Errorf("remote.api: %w", err)
	}
	if _, owner, name := project(api); owner == "" || name == "" || strings.Contains(name, "/") {
		return errors.New("remote.api does not end in /repos/OWNER/NAME")
	}
	if r.TokenFile != "" && api.Scheme != "https" && !loopback(api.Hostname()) {
		return errors.New("remote.api is not https: the token would be sent in clear text")
	}
	return nil
}

// project splits the address of a project's API.
func project(api *url.URL) (root, owner, name string) {
	root, path, _ := strings.Cut(strings.TrimRight(api.Path, "/"), "/repos/")
	owner, name, _ = strings.Cut(path, "/")
	return root, owner, name
}

// connect returns a client that sends the token only to the API's own host.
func connect(h home.Home, r charter.Remote) (c *github.Client, owner, name string, err error) {
	if err := Check(r); err != nil {
		return nil, "", "", err
	}
	api, err := url.Parse(r.API)
	if err != nil {
		return nil, "", "", fmt.Errorf("remote.api: %w", err)
	}
	root, owner, name := project(api)
	c = github.NewClient(&http.Client{Transport: bounded{http.DefaultTransport}, CheckRedirect: func(to *http.Request, _ []*http.Request) error {
		if to.URL.Host != api.Host || to.URL.Scheme != api.Scheme {
			return fmt.Errorf("the remote redirects to %s, where pawl does not send the token", to.URL.Host)
		}
		return nil
	}})
	if r.TokenFile != "" {
		token, err := h.Secret(r.TokenFile)
		if err != nil {
			return nil, "", "", err
		}
		c = c.WithAuthToken(string(token.Value))
	}
	c.BaseURL = &url.URL{Scheme: api.Scheme, Host: api.Host, Path: root + "/"}
	return c, owner, name, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// bounded limits each answer to maxBytes.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if res != nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxBytes), res.Body}
	}
	return res, err
}

// readOpen counts issues. GitHub's list of issues includes pull requests.
func (s *Status) readOpen(ctx context.Context, c *github.Client, owner, name string) error {
	o := &github.IssueListByRepoOptions{State: "open", ListOptions: github.ListOptions{PerPage: perPage}}
	for page := range maxPages {
		issues, res, err := c.Issues.ListByRepo(ctx, owner, name, o)
		if err != nil {
			return err
		}
		for _, i := range issues {
			if i.IsPullRequest() {
				s.Pulls++
			} else {
				s.Issues++
			}
		}
		if res.NextPage == 0 {
			return nil
		}
		s.More = page == maxPages-1
		o.ListOptions.Page = res.NextPage
	}
	return nil
}

// readCI reads commit statuses and check runs, because projects use either or both. A failure counts more than a check
// that still runs, and that more than one that was cancelled.
func (s *Status) readCI(ctx context.Context, c *github.Client, owner, name string) error {
	statuses, more, err := s.statuses(ctx, c, owner, name)
	if err != nil {
		return err
	}
	runs, cut, err := s.checks(ctx, c, owner, name)
	if err != nil {
		return err
	}
	pending, cancelled := more || cut, false // what was not read may still fail
	for _, st := range statuses {
		switch st.GetState() {
		case "failure", "error":
			s.Failing = append(s.Failing, delivery.Line(st.GetContext()))
		case "pending":
			pending = true
		}
	}
	for _, run := range runs {
		switch {
		case run.GetStatus() != "completed":
			pending = true
		case slices.Contains([]string{"failure", "timed_out", "startup_failure", "action_required"}, run.GetConclusion()):
			s.Failing = append(s.Failing, delivery.Line(run.GetName()))
		case !slices.Contains([]string{"success", "neutral", "skipped"}, run.GetConclusion()):
			cancelled = true
		}
	}
	slices.Sort(s.Failing)
	s.Failing = slices.Compact(s.Failing)
	switch {
	case len(s.Failing) > 0:
		s.CI = Failure
	case pending:
		s.CI = Pending
	case cancelled:
		s.CI = Cancelled
	case len(statuses)+len(runs) > 0:
		s.CI = Success
	default:
		s.CI = None
	}
	s.Failing = s.Failing[:min(len(s.Failing), maxFails)]
	return nil
}

// statuses returns the latest status of each context. cut is true if there are more than were read.
func (s *Status) statuses(ctx context.Context, c *github.Client, owner, name string) (all []*github.RepoStatus, cut bool, err error) {
	page := github.ListOptions{PerPage: perPage}
	for range maxPages {
		combined, res, err := c.Repositories.GetCombinedStatus(ctx, owner, name, s.Base, &page)
		if err != nil {
			return nil, false, err
		}
		s.Commit = delivery.Line(combined.GetSHA())
		all = append(all, combined.Statuses...)
		if page.Page = res.NextPage; page.Page == 0 {
			return all, false, nil
		}
	}
	return all, true, nil
}

// checks returns the check runs. cut is true if there are more than were read.
func (s *Status) checks(ctx context.Context, c *github.Client, owner, name string) (all []*github.CheckRun, cut bool, err error) {
	o := github.ListCheckRunsOptions{Filter: new("latest"), ListOptions: github.ListOptions{PerPage: perPage}}
	for range maxPages {
		checks, res, err := c.Checks.ListCheckRunsForRef(ctx, owner, name, s.Base, &o)
		if err != nil {
			return nil, false, err
		}
		all = append(all, checks.CheckRuns...)
		if o.ListOptions.Page = res.NextPage; res.NextPage == 0 {
			return all, false, nil
		}
	}
	return all, true, nil
}

// limited returns *RateLimited for each way in which GitHub says that there were too many requests.
func limited(err error, now time.Time) error {
	var primary *github.RateLimitError
	var secondary *github.AbuseRateLimitError
	var other *github.ErrorResponse
	switch {
	case errors.As(err, &primary):
		return &RateLimited{primary.Rate.Reset.UTC()}
	case errors.As(err, &secondary) && secondary.RetryAfter != nil:
		return &RateLimited{now.Add(*secondary.RetryAfter)}
	case errors.As(err, &other) && other.Response != nil && other.Response.StatusCode == http.StatusTooManyRequests:
		if wait, bad := time.ParseDuration(other.Response.Header.Get("Retry-After") + "s"); bad == nil {
			return &RateLimited{now.Add(wait)}
		}
	}
	return explained(err)
}

// explained returns what an answer that can't be used means, in words. The host wrote its message.
func explained(err error) error {
	var refused *github.ErrorResponse
	if errors.As(err, &refused) && refused.Response != nil {
		code := refused.Response.StatusCode
		text := fmt.Sprintf("it answers %d %s", code, delivery.Line(cmp.Or(refused.Message, http.StatusText(code))))
		switch code {
		case http.StatusUnauthorized, http.StatusForbidden:
			text += " (see remote.tokenFile)"
		case http.StatusNotFound:
			text += ": there is no such project, or the token may not read it (see remote.api and remote.tokenFile)"
		}
		return errors.New(text)
	}
	var shape *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	if errors.As(err, &shape) || errors.As(err, &syntax) {
		return errors.New("its answer is not what GitHub's API gives (see remote.api)")
	}
	return err
}
