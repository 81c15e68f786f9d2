package outcome_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/outcome"
)

func TestWordsOfProgramsThatAreRefusedWork(t *testing.T) {
	for said, want := range map[string]outcome.Class{
		"API Error: 401 authentication_error":                                         outcome.AuthMissing,
		"Invalid API key · Please run /login":                                         outcome.AuthMissing,
		"unexpected status 401 Unauthorized: bad key":                                 outcome.AuthMissing,
		"Please set an Auth method in your /home/u/.gemini/settings.json":             outcome.AuthMissing,
		"Missing environment variable: `OPENAI_API_KEY`.":                             outcome.AuthMissing,
		"exceeded retry limit, last status: 429 Too Many Requests":                    outcome.RateLimited,
		"You exceeded your current quota. Please retry in 34.2s":                      outcome.RateLimited,
		"[API Error: You have exhausted your daily quota on this model.]":             outcome.RateLimited,
		"You’ve hit your usage limit. Upgrade or try again at 1:24 AM.":               outcome.RateLimited,
		"API Error: 529 overloaded_error":                                             outcome.ProviderDown,
		"500 status code (no body)":                                                   outcome.ProviderDown,
		"stream disconnected before completion: error sending request for url (http)": outcome.ProviderDown,
		"Model stream ended without a finish reason.":                                 outcome.ProviderDown,
		"API Error: 400 prompt is too long":                                           "",
		"error_max_turns: Reached maximum number of turns (4)":                        "",
		"the test failed after 500 ms":                                                "",
		"unexpected status 404 Not Found: no such model":                              "",
	} {
		require.Equal(t, want, outcome.ByWords(said), said)
	}
}

// TestAFailureThatSpeaksOfARefusalIsAFailure: only the program's own form of message decides.
func TestAFailureThatSpeaksOfARefusalIsAFailure(t *testing.T) {
	for _, said := range []string{
		"tests failed: dial tcp 127.0.0.1:5432: connection refused",
		"TestLimiter: got status 429 too many requests, want 200",
		"got status 429 too many requests, want 200",
		"TestRate: no rate limit header",
		"rate limit header is missing",
		"TestLogin: expected error 401, got 200",
		"error: expected error 401, got 200",
		"401, but 200 was expected",
		"TestApi failed: expected quota exceeded error",
		"the test server answers status 500 in TestUpload",
		"status 500 in TestUpload",
		"unexpected status 401 in TestLogin",
		"unexpected status 503 Service Unavailable in TestRetry",
		"500 tests failed", "429 of 500 tests pass", "500 ms is too long",
		"error_during_execution: the login page says please log in",
		"Please log in button is missing in LoginPage",
		"Usage limit exceeded for CPU time in sandbox test 3",
		"Quota exceeded for table foo in test_quota",
		"could not connect to the database on localhost",
		"fetching the fixture: ECONNREFUSED 127.0.0.1:3000",
		"connect ECONNREFUSED 127.0.0.1:5432",
		"Error: connect ECONNREFUSED 127.0.0.1:5432",
		"connect ECONNREFUSED ::1:6379",
		"Error: connect ECONNREFUSED /tmp/run/.s.PGSQL.5432.sock",
		"read ECONNRESET 127.0.0.1:8080",
		"request to http://localhost:3000/users failed, reason: connect ECONNREFUSED 127.0.0.1:3000",
		"getaddrinfo ENOTFOUND localhost",
		"the patch handles an invalid api key now",
		"no API key is read by the config test",
		"connection refused by the fake server in TestDial",
		"you have hit your limit of three tries per test",
		"API Error: 400 the tool result says rate limit reached",
		"API Error: 404 connection refused",
	} {
		require.Empty(t, outcome.ByWords(said), said)
		require.Nil(t, outcome.In(said), said)
	}
}

func TestFormsOfTheProgramsOwnMessages(t *testing.T) {
	for said, want := range map[string]outcome.Class{
		"You've hit your limit · resets 3pm (America/Los_Angeles)":                                          outcome.RateLimited,
		"You've hit your org's monthly usage limit":                                                         outcome.RateLimited,
		"Claude usage limit reached. Your limit will reset at 3pm (America/Santiago).":                      outcome.RateLimited,
		"Weekly limit reached ∙ resets Oct 6, 1pm":                                                          outcome.RateLimited,
		"5-hour limit reached ∙ resets 4pm":                                                                 outcome.RateLimited,
		"API Error: Rate limit reached":                                                                     outcome.RateLimited,
		"API Error (429 {\"type\":\"error\"})":                                                              outcome.RateLimited,
		"stream disconnected before completion: Rate limit reached for gpt-5 in organization o. Try later.": outcome.RateLimited,
		"[API Error: You have exhausted your capacity on this model. Your quota will reset after 3h.]":      outcome.RateLimited,
		"[API Error: got status: RESOURCE_EXHAUSTED. {\"error\":{}}]":                                       outcome.RateLimited,
		"429 You exceeded your current quota, please check your plan":                                       outcome.RateLimited,
		`{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`:                        outcome.RateLimited,
		"Please run /login · API Error: 401 {}":                                                             outcome.AuthMissing,
		"401 Incorrect API key provided: sk-1":                                                              outcome.AuthMissing,
		"Error: No API key found for anthropic.":                                                            outcome.AuthMissing,
		"[API Error: API key not valid. Please pass a valid API key.]":                                      outcome.AuthMissing,
		"Reconnecting... waiting for network (Connection failed: error sending request)":                    outcome.ProviderDown,
		"Reconnecting... 5/5 (unexpected status 503 Service Unavailable: x)":                                outcome.ProviderDown,
		"unexpected status 503 Service Unavailable, url: https://x, request id: 1":                          outcome.ProviderDown,
		"[API Error: exception TypeError: fetch failed sending request]":                                    outcome.ProviderDown,
		"[API Error: The model is overloaded. Please try again later.]":                                     outcome.ProviderDown,
		"API Error: Connection error.":                                                                      outcome.ProviderDown,
		"API Error: Unable to connect to API (ECONNREFUSED)":                                                outcome.ProviderDown,
		"connect ECONNREFUSED 1.2.3.4:443":                                                                  outcome.ProviderDown,
	} {
		require.Equal(t, want, outcome.ByWords(said), said)
	}
}

// TestAToolsErrorInTheOutputIsNoRefusal has lines of programs without a stream, whose tools print beside them.
func TestAToolsErrorInTheOutputIsNoRefusal(t *testing.T) {
	for _, line := range []string{
		"connect ECONNREFUSED 127.0.0.1:5432", "Error: connect ECONNREFUSED 10.0.0.5:5432", "error: getaddrinfo ENOTFOUND db",
		"connection refused", "Error: socket hang up", "TypeError: fetch failed", "401 Unauthorized", "Error: 503 Service Unavailable",
		"HTTP 429", "too many requests", "Unauthorized", "Error: Authentication failed", "cannot connect", "request timed out",
		"unexpected status 503 Service Unavailable: x", "502", "Internal Server Error", "Network error",
	} {
		require.Nil(t, outcome.InOutput(line), line)
	}
	for line, want := range map[string]outcome.Class{
		"API Error: Connection error.":                                        outcome.ProviderDown,
		"API Error: Unable to connect to API (ECONNREFUSED)":                  outcome.ProviderDown,
		"[API Error: exception TypeError: fetch failed sending request]":      outcome.ProviderDown,
		"API Error: connect ECONNREFUSED 127.0.0.1:3456":                      outcome.ProviderDown,
		"API Error: 529 Overloaded":                                           outcome.ProviderDown,
		"API Error: connect ECONNREFUSED 1.2.3.4:443":                         outcome.ProviderDown,
		"ERROR: stream disconnected before completion: error sending request": outcome.ProviderDown,
		"ERROR: exceeded retry limit, last status: 429 Too Many Requests":     outcome.RateLimited,
		"Claude AI usage limit reached|1893456000":                            outcome.RateLimited,
		"ERROR: You've hit your usage limit. Try again later.":                outcome.RateLimited,
		"Invalid API key · Please run /login":                                 outcome.AuthMissing,
		"Not logged in · Please run /login":                                   outcome.AuthMissing,
		`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`:  outcome.ProviderDown,
		"Failed to authenticate. API Error: 401 {\"type\":\"error\"}":         outcome.AuthMissing,
	} {
		said := outcome.InOutput(line)
		require.NotNil(t, said, line)
		require.Equal(t, want, said.Class, line)
	}
}

func TestWhenALimitEnds(t *testing.T) {
	zone := time.FixedZone("there", 2*3600)
	now := time.Date(2026, 11, 22, 23, 50, 30, 0, zone)
	for said, want := range map[string]time.Time{
		"try again at 11:58 PM.":                    time.Date(2026, 11, 22, 23, 59, 0, 0, zone), // the seconds are cut off
		"try again at 11:50 PM.":                    time.Date(2026, 11, 22, 23, 51, 0, 0, zone),
		"try again at 11:45 PM.":                    time.Date(2026, 11, 22, 23, 46, 0, 0, zone), // a moment ago
		"try again at 1:24 AM.":                     time.Date(2026, 11, 23, 1, 25, 0, 0, zone),
		"try again at Nov 25th, 2026 1:24 AM.":      time.Date(2026, 11, 25, 1, 25, 0, 0, zone),
		"5-hour limit · resets 2am (UTC)":           time.Date(2026, 11, 23, 2, 1, 0, 0, time.UTC),
		"Please retry in 34.5s.":                    now.Add(34*time.Second + 500*time.Millisecond),
		"try again in 1 hour 5 minutes":             now.Add(65 * time.Minute),
		"Try again in 3 days 4 hours 5 minutes.":    now.Add(76*time.Hour + 5*time.Minute),
		"rate_limit: retry-after: 90s":              now.Add(90 * time.Second),
		"try again later":                           {},
		"try again at 25:70 PM":                     {},
		"retry in 99999999999999999999999999999999": {},
	} {
		got := outcome.Refusal{Class: outcome.RateLimited, Said: said}.When(now)
		require.True(t, want.Equal(got), "%s: %s", said, got)
	}
	midnight := time.Date(2026, 11, 23, 0, 2, 0, 0, zone)
	require.Equal(t, time.Date(2026, 11, 23, 0, 0, 0, 0, zone).UTC(), outcome.Refusal{Class: outcome.RateLimited, Said: "try again at 11:59 PM"}.When(midnight))
	require.Zero(t, outcome.Refusal{Class: outcome.ProviderDown, Said: "stream disconnected, try again in 2s"}.When(now), "nobody promises that")
}

// TestALimitThatEndsInAnotherZone: the worker is in UTC, at 11:38.
func TestALimitThatEndsInAnotherZone(t *testing.T) {
	now := time.Date(2026, 11, 28, 11, 38, 0, 0, time.UTC)
	on := func(day, hour, minute int) time.Time { return time.Date(2026, 11, day, hour, minute, 0, 0, time.UTC) }
	for said, want := range map[string]time.Time{
		"resets 10:57am (America/Los_Angeles)":         on(28, 18, 58),
		"resets 1pm (America/Los_Angeles)":             on(28, 21, 1),
		"resets 1pm America/Los_Angeles":               on(28, 21, 1),
		"resets 2pm (Europe/Paris)":                    on(28, 13, 1),
		"resets at 14:00 (Europe/Paris)":               on(28, 13, 1),
		"try again at 2pm PST":                         on(28, 22, 1),
		"try again at 2pm PT.":                         on(28, 22, 1),
		"resets 2pm (Pacific time)":                    on(28, 22, 1),
		"resets 9pm JST":                               on(28, 12, 1),
		"resets 2pm CET":                               on(28, 13, 1),
		"resets 2pm UTC+2":                             on(28, 12, 1),
		"resets 2pm (UTC+05:30)":                       on(29, 8, 31),
		"resets 8am GMT-5":                             on(28, 13, 1),
		"resets 14:00 +02:00":                          on(28, 12, 1),
		"resets at 14:00:30+02:00":                     on(28, 12, 0).Add(30 * time.Second),
		"resets 3am (Asia/Kathmandu)":                  on(28, 21, 16),
		"resets Dec 1, 9am (America/New_York)":         time.Date(2026, 12, 1, 14, 1, 0, 0, time.UTC),
		"resets Jan 2 at 9am (America/New_York)":       time.Date(2027, 1, 2, 14, 1, 0, 0, time.UTC),
		"resets Jul 1, 2027, 9am (America/New_York)":   time.Date(2027, 7, 1, 13, 1, 0, 0, time.UTC),
		"resets December 1 at 9am ET":                  time.Date(2026, 12, 1, 14, 1, 0, 0, time.UTC),
		"resets Monday 9am (Europe/Paris)":             on(30, 8, 1),
		"resets tomorrow at 9am (Europe/Paris)":        on(29, 8, 1),
		"resets 9am tomorrow":                          on(29, 9, 1),
		"resets at 2026-12-01T09:00:00Z":               time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC),
		"resets 18:30":                                 on(28, 18, 31),
		"resets 2pm (local time)":                      on(28, 14, 1),
		"resets 2pm in Europe/Paris":                   on(28, 13, 1),
		"resets 2pm, Europe/Paris":                     on(28, 13, 1),
		"resets 2pm - Europe/Paris":                    on(28, 13, 1),
		"resets 2pm [Europe/Paris]":                    on(28, 13, 1),
		"resets at 2pm tomorrow (Europe/Paris)":        on(29, 13, 1),
		"resets 2pm US Eastern":                        on(28, 19, 1),
		"resets 2pm Pacific":                           on(28, 22, 1),
		"resets 2pm Mountain Standard Time":            on(28, 21, 1),
		"resets 2pm EST5EDT":                           on(28, 19, 1),
		"resets 2pm pst":                               on(28, 22, 1),
		"resets 2pm utc+2":                             on(28, 12, 1),
		"resets 2pm UTC\u22125":                        on(28, 19, 1),
		"resets 2pm UTC + 2":                           on(28, 12, 1),
		"resets at 14:00:00 GMT+0100 (CET)":            on(28, 13, 0),
		"resets 2pm UTC (in 3h)":                       on(28, 14, 1),
		"resets 2pm or try later":                      on(28, 14, 1),
		"resets 2pm, or upgrade":                       on(28, 14, 1),
		"resets 2pm · /upgrade":                        on(28, 14, 1),
		"resets 2pm\nUpgrade":                          on(28, 14, 1),
		"resets 2pm. Upgrade":                          on(28, 14, 1),
		"resets in 3h 20m":                             on(28, 14, 58),
		"reset after 3h20m30s.":                        on(28, 14, 58).Add(30 * time.Second),
		"resets in 1d2h":                               on(29, 13, 38),
		"resets in 3 months":                           {},
		"try again at 1:24 PM or buy more":             on(28, 13, 25),
		"resets 2pm (Mars/Olympus)":                    {},
		"resets 2pm XYZ":                               {},
		"resets 2pm IST":                               {},
		"resets 2pm London time":                       {},
		"resets 2pm, Tokyo time":                       {},
		"resets 2pm Central European Time":             {},
		"resets 2pm europe/paris":                      {},
		"resets 2pm CET/CEST":                          {},
		"resets 14:00 Uhr":                             {},
		"resets 1 PM EDT on Nov 29":                    {},
		"resets 2pm on Monday":                         {},
		"resets 2pm UTC+27":                            {},
		"resets 2pm (in your organization's settings)": {},
		"resets Feb 30, 9am":                           {},
		"resets 14pm":                                  {},
		"resets 24:10":                                 {},
	} {
		got := outcome.Refusal{Class: outcome.RateLimited, Said: "You've hit your limit · " + said}.When(now)
		require.True(t, want.Equal(got), "%s: %s", said, got)
	}
	summer := time.Date(2027, 3, 13, 20, 0, 0, 0, time.UTC) // the clocks of Los Angeles change in the coming night
	got := outcome.Refusal{Class: outcome.RateLimited, Said: "resets 10am (America/Los_Angeles)"}.When(summer)
	require.Equal(t, time.Date(2027, 3, 14, 17, 1, 0, 0, time.UTC), got)
}

func TestWhatBecameOfTheDeskCompletesTheClass(t *testing.T) {
	require.Equal(t, outcome.Done, outcome.Done.After(true, true))
	require.Equal(t, outcome.Nothing, outcome.Done.After(false, false))
	require.Equal(t, outcome.Denied, outcome.Done.After(false, true))
	require.Equal(t, outcome.Failed, outcome.Failed.After(false, true))
}

func TestNeitherAnExitCodeNorWordsDecideAlone(t *testing.T) {
	for name, c := range map[string]struct {
		facts outcome.Facts
		want  outcome.Class
	}{
		"exit 0 without an end":            {outcome.Facts{Stream: true, Begun: true}, outcome.Crashed},
		"exit 41, asking for a sign-in":    {outcome.Facts{Stream: true, Exit: 41, Stderr: "Please set an Auth method"}, outcome.AuthMissing},
		"exit 41 and no word":              {outcome.Facts{Stream: true, Exit: 41}, outcome.Crashed},
		"the words, once it has worked":    {outcome.Facts{Stream: true, Begun: true, Exit: 1, Stderr: "Please set an Auth method"}, outcome.Crashed},
		"it is not there":                  {outcome.Facts{NotStarted: true, Exit: -1}, outcome.Crashed},
		"a command that fails":             {outcome.Facts{Exit: 1, Stderr: "401 Unauthorized"}, outcome.Failed},
		"a command that was ended":         {outcome.Facts{Signal: true}, outcome.Crashed},
		"a command that was refused work":  {outcome.Facts{Exit: 1, Refusal: outcome.RateLimited}, outcome.RateLimited},
		"a command that worked in the end": {outcome.Facts{Refusal: outcome.RateLimited}, outcome.Done},
		"it gives up":                      {outcome.Facts{Stream: true, Begun: true, Ended: true, GaveUp: true}, outcome.Failed},
	} {
		require.Equal(t, c.want, outcome.Of(c.facts), name)
	}
}
