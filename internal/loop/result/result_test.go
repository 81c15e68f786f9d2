package result_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/result"
)

func TestWordsOfProgramsThatAreRefusedWork(t *testing.T) {
	for said, want := range map[string]result.Class{
		"API Error: 401 authentication_error":                                         result.AuthMissing,
		"Invalid API key · Please run /login":                                         result.AuthMissing,
		"unexpected status 401 Unauthorized: bad key":                                 result.AuthMissing,
		"Please set an Auth method in your /home/u/.gemini/settings.json":             result.AuthMissing,
		"Missing environment variable: `OPENAI_API_KEY`.":                             result.AuthMissing,
		"exceeded retry limit, last status: 429 Too Many Requests":                    result.RateLimited,
		"You exceeded your current quota. Please retry in 34.2s":                      result.RateLimited,
		"[API Error: You have exhausted your daily quota on this model.]":             result.RateLimited,
		"You’ve hit your usage limit. Upgrade or try again at 1:24 AM.":               result.RateLimited,
		"API Error: 529 overloaded_error":                                             result.ProviderDown,
		"500 status code (no body)":                                                   result.ProviderDown,
		"stream disconnected before completion: error sending request for url (http)": result.ProviderDown,
		"Model stream ended without a finish reason.":                                 result.ProviderDown,
		"API Error: 400 prompt is too long":                                           "",
		"error_max_turns: Reached maximum number of turns (4)":                        "",
		"the test failed after 500 ms":                                                "",
		"unexpected status 404 Not Found: no such model":                              "",
	} {
		require.Equal(t, want, result.ByWords(said), said)
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
		require.Empty(t, result.ByWords(said), said)
		require.Nil(t, result.In(said), said)
	}
}

func TestFormsOfTheProgramsOwnMessages(t *testing.T) {
	for said, want := range map[string]result.Class{
		"You've hit your limit · resets 3pm (America/Los_Angeles)":                                          result.RateLimited,
		"You've hit your org's monthly usage limit":                                                         result.RateLimited,
		"Credit balance is too low":                                                                         result.RateLimited,
		"API Error: 400 Your credit balance is too low to access the Anthropic API.":                        result.RateLimited,
		"Claude usage limit reached. Your limit will reset at 3pm (America/Santiago).":                      result.RateLimited,
		"Weekly limit reached ∙ resets Oct 6, 1pm":                                                          result.RateLimited,
		"5-hour limit reached ∙ resets 4pm":                                                                 result.RateLimited,
		"API Error: Rate limit reached":                                                                     result.RateLimited,
		"API Error (429 {\"type\":\"error\"})":                                                              result.RateLimited,
		"stream disconnected before completion: Rate limit reached for gpt-5 in organization o. Try later.": result.RateLimited,
		"[API Error: You have exhausted your capacity on this model. Your quota will reset after 3h.]":      result.RateLimited,
		"[API Error: got status: RESOURCE_EXHAUSTED. {\"error\":{}}]":                                       result.RateLimited,
		"429 You exceeded your current quota, please check your plan":                                       result.RateLimited,
		`{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`:                        result.RateLimited,
		"Please run /login · API Error: 401 {}":                                                             result.AuthMissing,
		"401 Incorrect API key provided: sk-1":                                                              result.AuthMissing,
		"Error: No API key found for anthropic.":                                                            result.AuthMissing,
		"[API Error: API key not valid. Please pass a valid API key.]":                                      result.AuthMissing,
		"Reconnecting... waiting for network (Connection failed: error sending request)":                    result.ProviderDown,
		"Reconnecting... 5/5 (unexpected status 503 Service Unavailable: x)":                                result.ProviderDown,
		"unexpected status 503 Service Unavailable, url: https://x, request id: 1":                          result.ProviderDown,
		"[API Error: exception TypeError: fetch failed sending request]":                                    result.ProviderDown,
		"[API Error: The model is overloaded. Please try again later.]":                                     result.ProviderDown,
		"API Error: Connection error.":                                                                      result.ProviderDown,
		"API Error: Unable to connect to API (ECONNREFUSED)":                                                result.ProviderDown,
		"connect ECONNREFUSED 1.2.3.4:443":                                                                  result.ProviderDown,
	} {
		require.Equal(t, want, result.ByWords(said), said)
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
		require.Nil(t, result.InOutput(line), line)
	}
	for line, want := range map[string]result.Class{
		"API Error: Connection error.":                                        result.ProviderDown,
		"API Error: Unable to connect to API (ECONNREFUSED)":                  result.ProviderDown,
		"[API Error: exception TypeError: fetch failed sending request]":      result.ProviderDown,
		"API Error: connect ECONNREFUSED 127.0.0.1:3456":                      result.ProviderDown,
		"API Error: 529 Overloaded":                                           result.ProviderDown,
		"API Error: connect ECONNREFUSED 1.2.3.4:443":                         result.ProviderDown,
		"ERROR: stream disconnected before completion: error sending request": result.ProviderDown,
		"ERROR: exceeded retry limit, last status: 429 Too Many Requests":     result.RateLimited,
		"Claude AI usage limit reached|1893456000":                            result.RateLimited,
		"ERROR: You've hit your usage limit. Try again later.":                result.RateLimited,
		"Invalid API key · Please run /login":                                 result.AuthMissing,
		"Not logged in · Please run /login":                                   result.AuthMissing,
		`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`:  result.ProviderDown,
		"Failed to authenticate. API Error: 401 {\"type\":\"error\"}":         result.AuthMissing,
	} {
		said := result.InOutput(line)
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
		got := result.Refusal{Class: result.RateLimited, Said: said}.When(now)
		require.True(t, want.Equal(got), "%s: %s", said, got)
	}
	midnight := time.Date(2026, 11, 23, 0, 2, 0, 0, zone)
	require.Equal(t, time.Date(2026, 11, 23, 0, 0, 0, 0, zone).UTC(), result.Refusal{Class: result.RateLimited, Said: "try again at 11:59 PM"}.When(midnight))
	require.Zero(t, result.Refusal{Class: result.ProviderDown, Said: "stream disconnected, try again in 2s"}.When(now), "nobody promises that")
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
		"resets at 3pm today":                          on(28, 15, 1),
		"resets 3pm today (Europe/Paris)":              on(28, 14, 1),
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
		got := result.Refusal{Class: result.RateLimited, Said: "You've hit your limit · " + said}.When(now)
		require.True(t, want.Equal(got), "%s: %s", said, got)
	}
	summer := time.Date(2027, 3, 13, 20, 0, 0, 0, time.UTC) // the clocks of Los Angeles change in the coming night
	got := result.Refusal{Class: result.RateLimited, Said: "resets 10am (America/Los_Angeles)"}.When(summer)
	require.Equal(t, time.Date(2027, 3, 14, 17, 1, 0, 0, time.UTC), got)
}

func TestWhatBecameOfTheDeskCompletesTheClass(t *testing.T) {
	require.Equal(t, result.Done, result.Done.After(true, true))
	require.Equal(t, result.Nothing, result.Done.After(false, false))
	require.Equal(t, result.Denied, result.Done.After(false, true))
	require.Equal(t, result.Failed, result.Failed.After(false, true))
}

func TestNeitherAnExitCodeNorWordsDecideAlone(t *testing.T) {
	for name, c := range map[string]struct {
		facts result.Facts
		want  result.Class
	}{
		"exit 0 without an end":            {result.Facts{Stream: true, Begun: true}, result.Crashed},
		"exit 41, asking for a sign-in":    {result.Facts{Stream: true, Exit: 41, Stderr: "Please set an Auth method"}, result.AuthMissing},
		"exit 41 and no word":              {result.Facts{Stream: true, Exit: 41}, result.Crashed},
		"the words, once it has worked":    {result.Facts{Stream: true, Begun: true, Exit: 1, Stderr: "Please set an Auth method"}, result.Crashed},
		"it is not there":                  {result.Facts{NotStarted: true, Exit: -1}, result.Crashed},
		"a command that fails":             {result.Facts{Exit: 1, Stderr: "401 Unauthorized"}, result.Failed},
		"a command that was ended":         {result.Facts{Signal: true}, result.Crashed},
		"a command that was refused work":  {result.Facts{Exit: 1, Refusal: result.RateLimited}, result.RateLimited},
		"a command that worked in the end": {result.Facts{Refusal: result.RateLimited}, result.Done},
		"it gives up":                      {result.Facts{Stream: true, Begun: true, Ended: true, GaveUp: true}, result.Failed},
	} {
		require.Equal(t, c.want, result.Of(c.facts), name)
	}
}
