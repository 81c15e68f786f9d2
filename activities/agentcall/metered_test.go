package agentcall_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/usage"
	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/phase"
	"pawl/test/harness/actest"
)

// asks is a program that stands for Codex. It finds its model by its arguments, as Codex does, and makes as many
// requests as ASKS says. Its stream has the format of Codex.
const asks = `
provider=; for word; do case $word in model_providers.*) provider=$word;; esac; done
base=${provider#*base_url=\"}; base=${base%%\"*}; at=${base#http://}; at=${at%%/*}
key=${provider#*env_key=\"}; key=${key%%\"*}
echo '{"type":"thread.started","thread_id":"t"}'
for n in $(seq ${ASKS:-1}); do
	exec 3<>/dev/tcp/${at%:*}/${at#*:} || exit 7
	printf 'POST /responses HTTP/1.0\r\nAuthorization: Bearer %s\r\nContent-Length: 2\r\n\r\n{}' "${!key}" >&3
	answer=$(cat <&3); exec 3>&-
	case $answer in *' 200 '*) ;; *) echo "${answer%%$'\r'*}" >&2; tail -f /dev/null;; esac
done
if [ -n "$KILLS" ] && mkdir "$KILLS" 2>/dev/null; then kill -9 ${VICTIM:-$PPID}; tail -f /dev/null; fi
echo '{"type":"turn.completed","usage":{"input_tokens":'${TELLS:-1000}',"output_tokens":0}}'
`

// answers starts a provider whose answers have 100 tokens and a tool call each, and counts the requests.
func answers(t *testing.T) (url string, asked *atomic.Int64) {
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "Bearer the-real-key" || r.URL.Path != "/v1/responses" {
			t.Errorf("%s with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		fmt.Fprint(w, `{"object":"response","model":"gpt-5-codex","output":[{"type":"function_call"}],"usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":0},"output_tokens":10}}`)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", asked
}

// metered opens a loop whose agent is such a program.
func metered(t *testing.T, env, more string) (l *actest.Loop, asked *atomic.Int64) {
	url, asked := answers(t)
	return meteredAt(t, url, env, more), asked
}

// meteredAt opens such a loop whose provider is at a URL.
func meteredAt(t *testing.T, url, env, more string) (l *actest.Loop) {
	script := filepath.Join(t.TempDir(), "codex")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/bash\n"+asks), 0o755))
	l = actest.BeginWith(t, spec.Deny, func(_ string, doc map[string]any) {
		agent := fmt.Sprintf(`{"use": "codex", "command": ["bash", %q], "env": {"CODEX_API_KEY": "$REAL_KEY", "OPENAI_BASE_URL": %q%s}}`, script, url, env)
		require.NoError(t, json.Unmarshal([]byte(`{"agent": `+agent+more+`}`), &doc))
	})
	l.Iterate()
	return l
}

func call(l *actest.Loop, n int, budget map[loop.Resource]metric.Decimal) (api.Called, error) {
	return callBy(l, api.Call{Attempt: n, Budget: budget, Doubt: true})
}

// callBy makes a call of the writer.
func callBy(l *actest.Loop, in api.Call) (api.Called, error) {
	env := actest.Environment(l.Activities)
	env.RegisterActivity(l.CallAgent)
	key := api.Key{Iteration: 1, Attempt: in.Attempt, Name: string(phase.Modify)}
	in.Step = api.Step{Ref: l.Opened.Ref, Key: key, Head: l.Head, LimitMs: 60000}
	in.Role, in.Phase, in.Ledger = spec.RoleWriter, string(phase.Modify), l.Ledger
	value, err := env.ExecuteActivity(l.CallAgent, in)
	if err != nil {
		return api.Called{}, err
	}
	var out api.Called
	require.NoError(l, value.Get(&out))
	return out, nil
}

// TestA2_TheMeterCountsAndKeepsTheKey has a program that uses the meter. Its own report is compared with the meter's
// count.
func TestA2_TheMeterCountsAndKeepsTheKey(t *testing.T) {
	t.Parallel()
	l, asked := metered(t, `, "ASKS": "10"`, "")
	require.Contains(t, strings.Join(l.Opened.Environment, "\n"), "codex speaks to its model through pawl's meter, which counts its tokens, tool calls and cost; pawl keeps CODEX_API_KEY")
	out, err := call(l, 1, map[loop.Resource]metric.Decimal{loop.Tokens: loop.Count(1000)})
	require.NoError(t, err)
	require.True(t, out.OK(), out)
	require.Empty(t, out.Warning)
	require.Equal(t, loop.Usage{AgentCalls: 1, ToolCalls: 10, InputTokens: 900, OutputTokens: 100, CostUSD: metric.MustDecimal("0.002125")}, out.Usage, "a budget that is just used up is no reason")
	require.Equal(t, int64(10), asked.Load())
	var all usage.Total
	text, err := os.ReadFile(filepath.Join(out.Log, "meter.jsonl"))
	require.NoError(t, err)
	all.Read(text)
	require.Equal(t, int64(10), all.Calls)
	require.NotContains(t, string(text), "the-real-key")
}

// TestA2_NoRequestPastTheBudgetIsSent has a program that would ask without end; only pawl ends it.
func TestA2_NoRequestPastTheBudgetIsSent(t *testing.T) {
	t.Parallel()
	l, asked := metered(t, `, "ASKS": "1000"`, "")
	for r, left := range map[loop.Resource]string{loop.Tokens: "500", loop.CostUSD: "0.001", loop.ToolCalls: "4"} {
		asked.Store(0)
		out, err := call(l, len(r), map[loop.Resource]metric.Decimal{r: metric.MustDecimal(left)})
		require.NoError(t, err)
		require.Equal(t, r, out.Exhausted)
		require.Equal(t, int64(5), asked.Load(), r)
		require.Equal(t, int64(500), out.Usage.InputTokens+out.Usage.OutputTokens, "what it used is known although it was ended")
	}
}

// TestA2_WhatWasKilledIsCounted kills the program, so that the stream lacks its usage, and then the supervisor with
// the meter in it. After that the call is made again.
func TestA2_WhatWasKilledIsCounted(t *testing.T) {
	kills := filepath.Join(t.TempDir(), "killed")
	l, _ := metered(t, fmt.Sprintf(`, "ASKS": "3", "KILLS": %q, "VICTIM": "$VICTIM"`, kills), `, "sandbox": {"use": "off"}`)
	_, err := call(l, 1, nil)
	require.ErrorContains(t, err, "the supervisor died")
	out, err := call(l, 1, nil)
	require.NoError(t, err)
	require.Equal(t, int64(600), out.Usage.InputTokens+out.Usage.OutputTokens, "of both attempts")
	require.NoError(t, os.Remove(kills))
	t.Setenv("VICTIM", "0") // its own group
	out, err = call(l, 2, nil)
	require.NoError(t, err)
	require.Equal(t, "SIGKILL", out.Signal)
	require.Equal(t, int64(300), out.Usage.InputTokens+out.Usage.OutputTokens)
}

// TestA2_StreamAndMeterAreCompared has programs that report more, and less, than they used.
func TestA2_StreamAndMeterAreCompared(t *testing.T) {
	t.Parallel()
	for tells, c := range map[string]struct {
		warning string
		tokens  int64
	}{
		"5099": {"", 100}, // within the allowed difference
		"5101": {"the agent's own stream reports 5101 tokens, but pawl's meter counted 100: not all of its requests went through the meter, so the stream's figure counts", 5101},
	} {
		l, _ := metered(t, fmt.Sprintf(`, "TELLS": %q`, tells), "")
		out, err := call(l, 1, nil)
		require.NoError(t, err)
		require.Equal(t, c.warning, out.Warning)
		require.Equal(t, c.tokens, out.Usage.InputTokens+out.Usage.OutputTokens)
	}
	l, _ := metered(t, `, "ASKS": "60", "TELLS": "99"`, "")
	out, err := call(l, 1, nil)
	require.NoError(t, err)
	require.Equal(t, "the agent's own stream reports 99 tokens, but pawl's meter counted 6000; the meter's figure counts", out.Warning)
}

// TestA2_PricesOfOnesOwn has a valid and an invalid file in $PAWL_HOME.
func TestA2_PricesOfOnesOwn(t *testing.T) {
	t.Parallel()
	l, _ := metered(t, "", "")
	file := filepath.Join(l.Home.Dir, "prices.json")
	require.NoError(t, os.WriteFile(file, []byte(`[{"model": "gpt-5-codex", "input": 1000, "output": 0}]`), 0o600))
	out, err := call(l, 1, nil)
	require.NoError(t, err)
	require.Equal(t, "0.09", out.Usage.CostUSD.String())
	require.NoError(t, os.WriteFile(file, []byte(`{"gpt-5": 1}`), 0o600))
	_, err = call(l, 2, nil)
	require.Equal(t, fault.PreconditionFailed, wire.Decode(err).Code)
	require.Contains(t, err.Error(), "prices.json can't be read")
}

// TestA2_WhoCountsWhereTheMeterCant has an agent that does not use the meter: a budget of tokens is refused before it
// begins.
func TestA2_WhoCountsWhereTheMeterCant(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ env, why string }{
		"no key":           {`, "CODEX_API_KEY": ""`, "signs in with an account of its own, and no key is in its environment"},
		"another provider": {`, "model_provider": "x"`, "is told to speak to another provider (model_provider)"},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := metered(t, "", "")
			s := l.Spec
			s.Agent.Env = map[string]string{"CODEX_API_KEY": "k"}
			if strings.Contains(c.env, `""`) {
				s.Agent.Env = nil
			} else {
				s.Agent.Args = []string{"-c", "model_provider=x"}
			}
			o, err := l.Open(t.Context(), api.Open{Loop: "y", FirstRun: "second", Spec: s})
			require.NoError(t, err)
			require.Contains(t, strings.Join(o.Environment, "\n"), "codex's usage is what its own stream reports, not what pawl's meter counts: it "+c.why)
			tokens := int64(1000)
			s.Limits.Tokens = &tokens
			_, err = l.Open(t.Context(), api.Open{Loop: "z", FirstRun: "third", Spec: s})
			require.ErrorContains(t, err, "limits.tokens can't be kept: codex does not say what it uses while it works, and "+c.why)
		})
	}
}

// TestA2_ABudgetOfDollarsNeedsAPrice has a program that never reports its cost, with models of known and unknown
// price.
func TestA2_ABudgetOfDollarsNeedsAPrice(t *testing.T) {
	t.Parallel()
	l, _ := metered(t, "", "")
	one := metric.MustDecimal("1")
	s := l.Spec
	s.Limits.CostUSD = &one
	open := func(run, model string) error {
		s.Agent.Model = model
		_, err := l.Open(t.Context(), api.Open{Loop: run, FirstRun: run, Spec: s})
		return err
	}
	require.NoError(t, open("known", "gpt-5-codex"))
	require.ErrorContains(t, open("none", ""), "limits.costUSD can't be kept: codex does not say what it costs, and without agent.model pawl knows no price")
	err := open("unknown", "mine")
	require.ErrorContains(t, err, "limits.costUSD can't be kept: pawl knows no price of the model mine, and codex does not say what it costs")
	require.Contains(t, wire.Decode(err).Do, `Add {"model": "mine", "input": …, "output": …, "cacheRead": …} to `+filepath.Join(l.Home.Dir, "prices.json"))
	require.NoError(t, os.WriteFile(filepath.Join(l.Home.Dir, "prices.json"), []byte(`[{"model": "mine", "input": 1, "output": 1}]`), 0o600))
	require.NoError(t, open("told", "mine"))
}

// TestALimitThatTheProviderTellsTheMeterEndsTheCall has programs that wait for their provider within the call, and
// never report it.
func TestALimitThatTheProviderTellsTheMeterEndsTheCall(t *testing.T) {
	t.Parallel()
	for class, status := range map[result.Class]int{result.RateLimited: 429, result.AuthMissing: 401} {
		t.Run(string(class), func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "1800")
				w.WriteHeader(status)
				fmt.Fprint(w, `{"error": {"type": "scripted", "message": "not now"}}`)
			}))
			t.Cleanup(s.Close)
			l := meteredAt(t, s.URL+"/v1", "", "")
			began := time.Now()
			out, err := call(l, 1, nil)
			require.NoError(t, err)
			require.Equal(t, class, out.Class, out)
			require.Equal(t, fmt.Sprintf("%d scripted: not now", status), out.Refused.Said)
			require.Equal(t, status, out.Refused.Status)
			if class == result.RateLimited {
				require.WithinRange(t, out.Refused.Until, began.Add(30*time.Minute-time.Second), time.Now().Add(30*time.Minute+time.Second))
			} else {
				require.Zero(t, out.Refused.Until)
			}
			require.Zero(t, out.Usage.InputTokens)
		})
	}
}

// TestACallWhoseLastAnswerWasCutOffIsMadeAgain has a program that treats a cut-off answer as complete, as the Gemini
// CLI does, and ends normally.
func TestACallWhoseLastAnswerWasCutOffIsMadeAgain(t *testing.T) {
	t.Parallel()
	for end, class := range map[string]result.Class{"": result.ProviderDown, "data: {\"type\":\"response.completed\"}\n\n": result.Done} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"type\":\"response.created\",\"response\":{\"model\":\"gpt-5-codex\"}}\n\n"+end)
		}))
		t.Cleanup(s.Close)
		out, err := call(meteredAt(t, s.URL+"/v1", "", ""), 1, nil)
		require.NoError(t, err)
		require.Equal(t, class, out.Class, out)
		if class == result.ProviderDown {
			require.Equal(t, "the last answer of its model was cut off", out.Refused.Said)
		}
	}
}
