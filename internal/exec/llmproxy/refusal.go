package llmproxy

import (
	"encoding/json"
	"net/http"
	"strings"

	"pawl/internal/lib/must"
)

// api says whose errors the program understands, from the path of its request.
type api int

const (
	openAI api = iota
	anthropic
	gemini
)

func apiOf(r *http.Request) api {
	switch {
	case strings.Contains(r.URL.Path, "/messages"):
		return anthropic
	case strings.Contains(r.URL.Path, "enerateContent"), strings.Contains(r.URL.Path, ":countTokens"):
		return gemini
	}
	return openAI
}

// refuse answers that a budget is used up, with the provider's error for an account without money. Of all errors for
// a limit, this is the one after which the program does not try again. Measured with Claude Code 2.1.329, Codex
// 0.169.0 and the Gemini CLI 0.61.0; after another kind of 429 they try again for minutes.
func refuse(w http.ResponseWriter, r *http.Request, budget string) {
	said := "The budget that pawl keeps for this agent is used up (" + budget + ")."
	switch apiOf(r) {
	case anthropic:
		answer(w, http.StatusPaymentRequired, map[string]any{"type": "error", "error": map[string]any{"type": "billing_error", "message": said}})
	case gemini:
		answer(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"code": http.StatusBadRequest, "message": said, "status": "FAILED_PRECONDITION"}})
	default:
		answer(w, http.StatusTooManyRequests, map[string]any{"error": map[string]any{"type": "insufficient_quota", "code": "insufficient_quota", "message": said, "param": nil}})
	}
}

// tell answers with an error of the meter itself.
func tell(w http.ResponseWriter, r *http.Request, status int, said string) {
	if apiOf(r) == anthropic {
		answer(w, status, map[string]any{"type": "error", "error": map[string]any{"type": "api_error", "message": said}})
		return
	}
	answer(w, status, map[string]any{"error": map[string]any{"code": status, "status": http.StatusText(status), "message": said}})
}

func answer(w http.ResponseWriter, status int, body any) {
	b := must.Have(json.Marshal(body)) // maps of text and numbers
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
