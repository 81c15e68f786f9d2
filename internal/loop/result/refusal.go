package result

import (
	"strconv"
	"strings"
	"time"

	"pawl/internal/lib/lazyregexp"
)

// Refusal is a provider's refusal to work, as the program reports it.
type Refusal struct {
	Class  Class
	Status int    // the status of HTTP, 0 if the program does not name it
	Said   string // the program's words
	// Until is when the provider works again, zero if the program names no time. After is the wait that the program
	// names, from the moment when it says so.
	Until time.Time
	After time.Duration
}

// ByStatus returns the class of an HTTP status, "" if the status is no refusal to work.
func ByStatus(status int) Class {
	switch {
	case status == 429:
		return RateLimited
	case status == 401 || status == 403:
		return AuthMissing
	case status == 408 || status >= 500 && status < 600:
		return ProviderDown
	}
	return ""
}

// codes are the kinds of error that programs and providers name in a field of their own.
var codes = map[string]Class{
	"usage_limit_reached": RateLimited, "usage_limit_exceeded": RateLimited, "usageLimitExceeded": RateLimited,
	"rate_limit": RateLimited, "rate_limit_error": RateLimited, "rate_limit_exceeded": RateLimited,
	"insufficient_quota": RateLimited, "RESOURCE_EXHAUSTED": RateLimited,
	"TerminalQuotaError": RateLimited, "RetryableQuotaError": RateLimited,

	"authentication_failed": AuthMissing, "authentication_error": AuthMissing, "unauthorized": AuthMissing,
	"invalid_api_key": AuthMissing, "UNAUTHENTICATED": AuthMissing, "ProviderAuthError": AuthMissing,
	"FatalAuthenticationError": AuthMissing, "UnauthorizedError": AuthMissing,

	"overloaded_error": ProviderDown, "server_overloaded": ProviderDown, "serverOverloaded": ProviderDown,
	"http_connection_failed": ProviderDown, "httpConnectionFailed": ProviderDown,
	"response_stream_disconnected": ProviderDown, "responseStreamDisconnected": ProviderDown,
	"response_stream_connection_failed": ProviderDown, "responseStreamConnectionFailed": ProviderDown,
	"internal_server_error": ProviderDown, "internalServerError": ProviderDown, "UNAVAILABLE": ProviderDown,
}

// ByCode returns the class of the kind of error that a program names, "" if it is no refusal to work.
func ByCode(code string) Class { return codes[code] }

// after is what follows a form of words: nothing, or no further word of the same sentence.
const after = `(?:\s*$|\s*[^\w\s"'])`

// meant begins what a limit of a provider is for: a model, an account, requests. One for CPU time or for a table is none.
const meant = ` (?:for|on) (?:(?:this|the|your|all|any|free|default|quota) )*` +
	`(?:models?|plan|account|organi[sz]ation|project|workspace|api|key|users?|requests?|metric|input|output|tokens?|` +
	`gpt|claude|gemini|qwen|opus|sonnet|haiku|codex|[\w./:-]*\d)`

// forms are the beginnings of the messages with which programs report that their provider refused work. A message that
// only speaks of limits, sign-ins or networks further on is about something else, such as a test that failed.
var forms = []struct {
	class Class
	form  lazyregexp.Regexp
}{
	{RateLimited, lazyregexp.New(`(?i)^(?:` + strings.Join([]string{
		`you(?:['’]ve| have) (?:hit|reached) your (?:[\w'’-]+ ){0,4}?limit(?:` + after + `| for | on )`,
		`you(?:['’]ve| have)? (?:exceeded|exhausted) your (?:\w+ )*(?:quota|capacity)\b`,
		`you['’]re out of (?:\w+ )?usage\b`, `(?:400 )?(?:your )?credit balance is too low(?:` + after + `| to access )`,
		`(?:(?:claude|ai|codex|chatgpt|opus|sonnet|your) )*(?:usage|rate|session|weekly|daily|monthly|5-hour|opus|sonnet)[ _-]limit (?:was |has been )?(?:reached|exceeded|hit)(?:` + after + `|` + meant + `)`,
		`(?:usage|rate|session|weekly|5-hour)[ _-]limit\s*[:·∙|]\s*"?(?:resets?|retry)`,
		`(?:your )?quota (?:was |is |has been )?(?:exceeded|exhausted)(?:` + after + `|` + meant + `)`,
		`resource has been exhausted`, `resource_exhausted` + after, `too many requests` + after, `rate limiting detected`,
		`server is temporarily limiting requests`,
	}, "|") + `)`)},
	{AuthMissing, lazyregexp.New(`(?i)^(?:` + strings.Join([]string{
		`unauthori[sz]ed` + after, `authentication[_ ](?:failed|error|required)` + after, `authentication_error\b`,
		`(?:invalid|incorrect|missing|no) (?:[\w-]+ )?(?:api[ _-]?key|auth method|credentials)(?: provided| found(?: for .*)?)?` + after,
		`invalid x-api-key` + after, `missing bearer\b`,
		`(?:please )?(?:set|provide) an? (?:\S+ )?(?:api[ _-]?key|auth method)\b`,
		`api[ _-]?key (?:is )?(?:not (?:valid|found|set)|invalid|missing)` + after,
		`(?:you are )?not (?:logged|signed) in` + after, `please (?:log|sign) in(?:` + after + `| again| first| to | with | using | via | at )`, `(?:please )?run /login\b`,
		`oauth (?:access )?token (?:has )?(?:been )?(?:expired|revoked)`, `your (?:access token|authentication session) could not be refreshed`,
		"missing environment variable: `", `when using gemini api, you must (?:specify|set)`,
	}, "|") + `)`)},
	{ProviderDown, lazyregexp.New(`(?i)^(?:` + strings.Join([]string{
		`(?:the (?:model|server) is |model is )?(?:currently )?overloaded(?:_error)?` + after, `overloaded_error\b`, `repeated 529 overloaded`,
		`(?:internal server error|bad gateway|service unavailable|gateway timeout)` + after,
		`(?:we['’]re )?currently experiencing high demand`, `this model is currently experiencing high demand`, `selected model is at capacity`,
		`(?:model )?stream (?:disconnected before|ended without|closed before)`,
		`connection (?:error|failed|refused|reset|closed)` + after, `error sending request(?:` + after + `| for url)`,
		`(?:exception )?(?:typeerror: )?fetch failed\b`, `request timed out` + after, `network error` + after, `socket hang up` + after,
		`(?:connect|read|write|getaddrinfo|request to \S+ failed, reason:) (?:\w+ )?(?:ECONN(?:REFUSED|RESET)|ENOTFOUND|EAI_AGAIN|ETIMEDOUT)\b`,
		`(?:unable to|cannot|could not|failed to) connect(?:` + after + `| to (?:the )?api\b)`, `reconnecting\.\.\.`, `waiting for network`,
	}, "|") + `)`)},
}

var (
	// wrapper matches what programs write before the words of their provider.
	wrapper = lazyregexp.New(`(?i)^(?:error_during_execution: |failed to authenticate[.:] ?|please run /login · |\[?api error ?[:(]? ?|(?:fatal )?error: ?|stream disconnected before completion: |exceeded retry limit, last status: |reconnecting\.\.\.\s*[\d/]*\s*\()`)
	// ofAPI matches the wrapper that only a provider's answer has.
	ofAPI = lazyregexp.New(`(?i)^\[?api error ?[:(]? ?$`)
	// clients matches the wrappers that only clients of providers print. "Error: " is none of them.
	clients = lazyregexp.New(`(?i)^(?:failed to authenticate|please run /login|\[?api error|stream disconnected|exceeded retry limit|reconnecting)`)
	// general matches the forms that any program prints of any server, such as a test of its own.
	general = lazyregexp.New(`(?i)^(?:[45][0-9]{2}\b|http\b|status: |got status: [45]|unexpected status|too many requests|unauthori[sz]ed|authentication|` +
		`internal server error|bad gateway|service unavailable|gateway timeout|connection |error sending request|(?:exception )?(?:typeerror: )?fetch failed|` +
		`request |network error|socket hang up|connect |read |write |getaddrinfo |(?:unable to|cannot|could not|failed to) connect)`)
	// ofHere matches a connection to this machine, where servers of tests are. A provider there is known by the wrapper of its API.
	ofHere = lazyregexp.New(`(?i)^(?:connect|read|write|getaddrinfo|request to) .*(?:\b(?:127(?:\.\d+){3}|0\.0\.0\.0|localhost)\b|::1\b|\.sock\b)`)
	// leading matches an HTTP status at the beginning, with the reason.
	leading = lazyregexp.New(`(?i)^(?:unexpected status:? |http (?:error )?|status: |got status: )?([45][0-9]{2})(.*)`)
	// inJSON matches a status or a kind of error in an answer of a provider.
	inJSON  = lazyregexp.New(`"(?:status|code)"\s*:\s*"?([45][0-9]{2})\b`)
	kindIn  = lazyregexp.New(`"(?:status|code|type)"\s*:\s*"(\w+)"`)
	details = lazyregexp.New(`(?i)^, ?(?:request id|url|cf-ray)\b`)
	gotKind = lazyregexp.New(`^got status: (\w+)\. \{`)
)

// ByWords returns the class of a program's failure from the form of its message, "" if it is no refusal to work. The
// innermost message that has a known form decides.
func ByWords(failure string) Class {
	failure = strings.TrimSpace(failure)
	if w := wrapper().FindString(failure); w != "" {
		inner := failure[len(w):]
		if m := leading().FindStringSubmatch(inner); m != nil && ofAPI().MatchString(w) && ByStatus(number(m[1])) != "" {
			return ByStatus(number(m[1]))
		}
		if ofAPI().MatchString(w) && ofHere().MatchString(inner) {
			return ProviderDown
		}
		if class := ByWords(inner); class != "" {
			return class
		}
	}
	if class := byAnswer(failure); class != "" {
		return class
	}
	if ofHere().MatchString(failure) {
		return ""
	}
	for _, f := range forms {
		if f.form().MatchString(failure) {
			return f.class
		}
	}
	return ""
}

// InOutput is In for a line that a program without a stream of its own printed. The line may be from one of its tools,
// so only forms count that clients of providers alone print.
func InOutput(line string) *Refusal {
	said := strings.TrimSpace(line)
	if w := wrapper().FindString(said); w != "" && !clients().MatchString(w) {
		said = said[len(w):]
	}
	if general().MatchString(said) {
		return nil
	}
	return In(line)
}

// byAnswer returns the class of a message that begins with an HTTP status and its reason, or that is an answer of a
// provider in JSON.
func byAnswer(failure string) Class {
	if m := gotKind().FindStringSubmatch(failure); m != nil {
		return ByCode(m[1])
	}
	if m := leading().FindStringSubmatch(failure); m != nil {
		status, reason := number(m[1]), strings.TrimSpace(m[2])
		if isReason(status, reason) {
			return ByStatus(status)
		}
	}
	if !strings.HasPrefix(failure, "{") {
		return ""
	}
	if m := inJSON().FindStringSubmatch(failure); m != nil && ByStatus(number(m[1])) != "" {
		return ByStatus(number(m[1]))
	}
	for _, m := range kindIn().FindAllStringSubmatch(failure, -1) {
		if class := ByCode(m[1]); class != "" {
			return class
		}
	}
	return ""
}

// phrases are the reasons that come with the statuses of HTTP that are refusals.
var phrases = map[int]string{
	401: "Unauthorized", 403: "Forbidden", 408: "Request Timeout", 429: "Too Many Requests",
	500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout", 529: "Overloaded",
}

// isReason reports whether a provider's answer with this status continues in this way.
func isReason(status int, reason string) bool {
	reason = strings.TrimSpace(strings.TrimPrefix(reason, "status code"))
	phrase := phrases[status]
	if phrase != "" && len(reason) >= len(phrase) && strings.EqualFold(reason[:len(phrase)], phrase) {
		reason = strings.TrimSpace(reason[len(phrase):])
		if details().MatchString(reason) {
			return true
		}
	}
	if reason == "" || strings.ContainsAny(reason[:1], ":.;({[") {
		return true
	}
	return ByWords(reason) == ByStatus(status)
}

// In returns the refusal that the words of a failure report, nil if there is none.
func In(failure string) *Refusal {
	class := ByWords(failure)
	if class == "" {
		return nil
	}
	r := &Refusal{Class: class, Said: failure}
	if m := resets().FindStringSubmatch(failure); m != nil {
		if seconds, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			r.Until = time.Unix(seconds, 0).UTC()
		}
	}
	return r
}

// resets matches the forms in which programs say when a limit ends, in Unix seconds: a field of JSON, or after a bar.
var resets = lazyregexp.New(`(?:"?resets?_?[aA]t"?\s*[:=]\s*|\|)([0-9]{10})\b`)

// The form for people that names a duration.
var (
	howLong = lazyregexp.New(`(?i)(?:(?:try again|retry|resets?) (?:in|after)|retry[-_ ]?(?:delay|after)\W{1,4}) ?((?:(?:[0-9]+[dhm](?:[0-9.]+[hms])+|[0-9.]+ ?(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d))\b[, ]*(?:and )?)+)`)
	part    = lazyregexp.New(`(?i)([0-9.]+) ?(ms|milli|s|m|h|d)`)
)

// When returns the time until which the provider refuses, zero if it is unknown. now is when the program said so, in
// the zone of the program's times of day.
func (r Refusal) When(now time.Time) time.Time {
	switch {
	case !r.Until.IsZero():
		return r.Until
	case r.After > 0:
		return now.Add(r.After).UTC()
	case r.Class != RateLimited:
		return time.Time{}
	}
	if m := howLong().FindStringSubmatch(r.Said); m != nil {
		var d time.Duration
		for _, p := range part().FindAllStringSubmatch(m[1], -1) {
			n, err := strconv.ParseFloat(p[1], 64)
			if err != nil || n > 1e6 {
				return time.Time{}
			}
			unit := map[string]time.Duration{"ms": time.Millisecond, "milli": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[strings.ToLower(p[2])]
			d += time.Duration(n * float64(unit))
		}
		return now.Add(d).UTC()
	}
	return atTime(r.Said, now)
}
