package charter_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

const minimal = `{"kind": "steward", "name": "shop"}`

func TestS10_ACharterThatSaysNothingHasTheLimitsOfTheSource(t *testing.T) {
	c, err := charter.Parse([]byte(minimal))
	require.NoError(t, err)
	require.Equal(t, charter.Limits{
		Actions: 100, NoProgress: 10, SameResult: 3, SameError: 5, Executing: spec.Duration(time.Hour), Retries: 3, Waiting: spec.Duration(24 * time.Hour), Parallel: 1, Queue: 1000,
	}, c.Limits)
	require.Equal(t, 30*time.Minute, c.ValidateEvery.D())
	require.Equal(t, "mission", c.Mode)
	_, asked := c.Planner()
	require.False(t, asked, "nobody makes plans, so every task has to bring one")
}

// whole has a value for every key.
const whole = `{
	"name": "shop", "kind": "steward", "repo": {"path": "/src/shop", "base": "main", "host": "h"},
	"governance": ["GOVERNANCE/**"], "production": ["deploy/**", "release"], "allow": ["go test"],
	"tiers": [{"tier": "T1", "paths": ["db/**"], "words": ["migration"], "files": 20, "costUSD": 5.50}],
	"defaults": {"agent": {"use": "claude"}, "approvals": {"tools": ["*"]}, "limits": {"costUSD": 2.50, "activeTime": "1h"}, "breakpoints": ["verify"]},
	"agent": {"use": "claude", "model": "m", "roles": {"planner": {"model": "better"}}},
	"limits": {"actions": 7, "noProgress": 2, "sameResult": 2, "sameError": 2, "executing": "30m", "retries": 0, "waiting": "8h", "costUSD": 20, "parallel": 2, "queue": 3},
	"validateEvery": "1m",
	"schedules": [
		{"name": "nightly", "cron": "0 2 * * mon-fri", "timeZone": "Europe/Berlin", "overlap": "skip", "catchUp": "1h", "task": {"title": "Nightly", "body": "Update the dependencies", "priority": 2}},
		{"name": "often", "every": "90m", "task": {"body": "Look for flaky tests"}}
	],
	"triggers": [{"name": "ci", "from": "github", "secretFile": "ci.secret", "task": {"title": "Mend the build", "tier": "T3", "spec": {"kind": "deliver"}}}],
	"remote": {"api": "https://api.example.com/repos/o/n", "tokenFile": "token"}, "notify": ["desktop"], "mode": "mission"
}`

func TestACharterIsReadBackAsItWasWritten(t *testing.T) {
	c, err := charter.Parse([]byte(whole))
	require.NoError(t, err)
	require.NoError(t, c.ValidateInput())
	text, err := json.Marshal(c)
	require.NoError(t, err)
	again, err := charter.Parse(text)
	require.NoError(t, err)
	require.Equal(t, c, again)
	require.JSONEq(t, `{"agent": {"use": "claude"}, "approvals": {"tools": ["*"]}, "limits": {"costUSD": 2.50, "activeTime": "1h"}, "breakpoints": ["verify"]}`, string(c.Defaults))
	require.Contains(t, string(c.Defaults), "2.50", "numbers keep their decimals")
	planner, asked := c.Planner()
	require.True(t, asked)
	require.Equal(t, "better", planner.Model)

	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(whole), &doc))
	for _, key := range charter.Keys() {
		top, _, _ := strings.Cut(key, ".")
		require.Contains(t, doc, top, "the test leaves a key out")
	}
}

// TestEverythingThatIsWrongIsSaid makes one error at a time in a charter that is valid otherwise.
func TestEverythingThatIsWrongIsSaid(t *testing.T) {
	task := `"task": {"body": "x"}`
	for name, c := range map[string]struct{ set, key, what string }{
		"no name":                              {`"name": null`, "name", "is missing"},
		"a name that is an option":             {`"name": "-x"`, "name", "hyphen"},
		"another kind":                         {`"kind": "deliver"`, "kind", `is "deliver"`},
		"a key that is unknown":                {`"shedules": []`, "shedules", "not a key"},
		"a key of a loop":                      {`"verify": {}`, "verify", "not a key"},
		"a url with a password":                {`"repo": {"url": "https://u:p@example.com/x.git"}`, "repo.url", "password"},
		"a glob that leaves the repo":          {`"governance": ["../x"]`, "governance[0]", "leaves the repository"},
		"a tier that there is not":             {`"tiers": [{"tier": "T4", "words": ["x"]}]`, "tiers[0].tier", `is "T4"`},
		"a rule that nothing matches":          {`"tiers": [{"tier": "T1"}]`, "tiers[0]", "names nothing"},
		"a rule with no files":                 {`"tiers": [{"tier": "T1", "files": 0}]`, "tiers[0].files", "is 0"},
		"an unknown key in a list":             {`"tiers": [{"tier": "T1", "words": ["x"], "path": ["x"]}]`, "tiers[0].path", "not a key"},
		"a list that is an object":             {`"tiers": {"tier": "T1"}`, "tiers", "is an object"},
		"production that is an odd glob":       {`"production": ["x", "a[b"]`, "production[1]", "not a valid glob"},
		"a blank command":                      {`"allow": ["go test", " "]`, "allow[1]", "is missing"},
		"defaults that are a list":             {`"defaults": []`, "defaults", "is a list"},
		"defaults with an unknown key":         {`"defaults": {"limits": {"iteration": 5}}`, "defaults.limits.iteration", "not a key"},
		"defaults with a wrong value":          {`"defaults": {"limits": {"iterations": 0}}`, "defaults.limits.iterations", "is 0"},
		"defaults with a wrong type":           {`"defaults": {"scope": "src"}`, "defaults.scope", `is "src"`},
		"defaults that name a repository":      {`"defaults": {"repo": {"path": "/x"}}`, "defaults.repo", "can't be set here"},
		"defaults with a kind":                 {`"defaults": {"kind": "deliver"}`, "defaults.kind", "can't be set here"},
		"an agent that is none":                {`"agent": {"use": "emacs"}`, "agent.use", `is "emacs"`},
		"a planner without a command":          {`"agent": {"roles": {"planner": {"model": "x"}}}`, "agent.roles.planner.command", "is missing"},
		"another role":                         {`"agent": {"roles": {"writer": {"use": "claude"}}}`, "agent.roles.writer", "not a role of a steward"},
		"ideas":                                {`"agent": {"use": "claude", "ideas": true}`, "agent.ideas", "has no effect"},
		"no actions":                           {`"limits": {"actions": 0}`, "limits.actions", "is 0"},
		"fewer than no retries":                {`"limits": {"retries": -1}`, "limits.retries", "is -1"},
		"no time":                              {`"limits": {"executing": "0s"}`, "limits.executing", "is 0s"},
		"no money":                             {`"limits": {"costUSD": 0}`, "limits.costUSD", "is 0"},
		"a limit of a loop":                    {`"limits": {"iterations": 3}`, "limits.iterations", "not a key"},
		"neither cron nor every":               {`"schedules": [{"name": "a", ` + task + `}]`, "schedules[0]", "neither"},
		"both cron and every":                  {`"schedules": [{"name": "a", "cron": "@daily", "every": "1h", ` + task + `}]`, "schedules[0]", "both"},
		"a cron of four fields":                {`"schedules": [{"name": "a", "cron": "0 2 * *", ` + task + `}]`, "schedules[0].cron", "0 2 * *"},
		"a cron with a zone":                   {`"schedules": [{"name": "a", "cron": "TZ=UTC 0 2 * * *", ` + task + `}]`, "schedules[0].cron", "TZ=UTC"},
		"a cron that is an interval":           {`"schedules": [{"name": "a", "cron": "@every 1h", ` + task + `}]`, "schedules[0].cron", "@every"},
		"a cron that Temporal can't read":      {`"schedules": [{"name": "a", "cron": "0 2 ? * *", ` + task + `}]`, "schedules[0].cron", "?"},
		"a cron that never comes":              {`"schedules": [{"name": "a", "cron": "0 2 31 2 *", ` + task + `}]`, "schedules[0].cron", "never comes"},
		"a cron without a day for both fields": {`"schedules": [{"name": "a", "cron": "0 2 30 2 1", ` + task + `}]`, "schedules[0].cron", "never comes"},
		"an interval below Temporal's":         {`"schedules": [{"name": "a", "every": "1ms", ` + task + `}]`, "schedules[0].every", "is 1ms"},
		"validations all the time":             {`"validateEvery": "1ns"`, "validateEvery", "is 1ns"},
		"no time between validations":          {`"validateEvery": "0s"`, "validateEvery", "is 0s"},
		"an unknown zone":                      {`"schedules": [{"name": "a", "cron": "@daily", "timeZone": "Mars/Olympus", ` + task + `}]`, "schedules[0].timeZone", "Mars"},
		"whichever zone the host is in":        {`"schedules": [{"name": "a", "cron": "@daily", "timeZone": "Local", ` + task + `}]`, "schedules[0].timeZone", "Local"},
		"an unknown overlap":                   {`"schedules": [{"name": "a", "cron": "@daily", "overlap": "cancel", ` + task + `}]`, "schedules[0].overlap", "cancel"},
		"a catch-up that is none":              {`"schedules": [{"name": "a", "cron": "@daily", "catchUp": "1s", ` + task + `}]`, "schedules[0].catchUp", "is 1s"},
		"two schedules of one name":            {`"schedules": [{"name": "a", "cron": "@daily", ` + task + `}, {"name": "a", "every": "1h", ` + task + `}]`, "schedules[1].name", "which is taken"},
		"a schedule without a task":            {`"schedules": [{"name": "a", "cron": "@daily"}]`, "schedules[0].task.body", "is missing"},
		"a schedule of always one task":        {`"schedules": [{"name": "a", "cron": "@daily", "task": {"id": "x", "body": "x"}}]`, "schedules[0].task.id", `is "x"`},
		"a task with an unknown key":           {`"schedules": [{"name": "a", "cron": "@daily", "task": {"body": "x", "tiers": "T1"}}]`, "schedules[0].task.tiers", "not a key"},
		"a task with a spec of its own":        {`"schedules": [{"name": "a", "cron": "@daily", "task": {"spec": {"goul": "x"}}}]`, "schedules[0].task.spec.goul", "not a key"},
		"a step with a spec of its own":        {`"schedules": [{"name": "a", "cron": "@daily", "task": {"plan": [{"id": "a", "kind": "deliver", "spec": {"kind": "improve"}}]}}]`, "schedules[0].task.plan[0].spec.kind", "can't be set"},
		"a schedule without steps":             {`"schedules": [{"name": "a", "cron": "@daily", "task": {"title": "x", "plan": []}}]`, "schedules[0].task.plan", "has no steps"},
		"a trigger without steps":              {`"triggers": [{"name": "a", "from": "json", "secretFile": "x", "task": {"plan": []}}]`, "triggers[0].task.plan", "has no steps"},
		"a trigger from elsewhere":             {`"triggers": [{"name": "a", "from": "gitlab", "secretFile": "x", ` + task + `}]`, "triggers[0].from", "gitlab"},
		"a trigger that anybody can pull":      {`"triggers": [{"name": "a", "from": "json", ` + task + `}]`, "triggers[0].secretFile", "is missing"},
		"a trigger without a name":             {`"triggers": [{"from": "json", "secretFile": "x", ` + task + `}]`, "triggers[0].name", "is missing"},
		"a name that is no part of a path":     {`"triggers": [{"name": "a/b", "from": "json", "secretFile": "x", ` + task + `}]`, "triggers[0].name", "a/b"},
		"a remote that is none":                {`"remote": {"api": "example.com"}`, "remote.api", "example.com"},
		"a token for nobody":                   {`"remote": {"tokenFile": "x"}`, "remote.api", "is missing"},
		"somebody who can't be told":           {`"notify": [""]`, "notify[0]", "is empty"},
		"a mode that there is not":             {`"mode": "yolo"`, "mode", "yolo"},
	} {
		t.Run(name, func(t *testing.T) {
			var doc, set map[string]any
			require.NoError(t, json.Unmarshal([]byte(minimal), &doc))
			require.NoError(t, json.Unmarshal([]byte("{"+c.set+"}"), &set))
			maps.Copy(doc, set)
			text, err := json.Marshal(doc)
			require.NoError(t, err)
			_, err = charter.Parse(text)
			var problems spec.Problems
			require.ErrorAs(t, err, &problems)
			require.Len(t, problems, 1, "%v", problems)
			require.Equal(t, c.key, problems[0].Key)
			require.Contains(t, problems[0].What, c.what)
			require.NotEmpty(t, problems[0].Want)
			require.NoError(t, json.Unmarshal(text, &doc))
			_, err = charter.FromMap(doc)
			require.Equal(t, problems.Err(), err, "as in a file")
		})
	}
}

func TestAllThatIsWrongIsSaidAtOnceInTheOrderOfTheKeys(t *testing.T) {
	_, err := charter.Parse([]byte(`{"mode": "x", "kind": "steward", "limits": {"queue": 0, "actoins": 5}, "repo": {"path": ""}}`))
	var problems spec.Problems
	require.True(t, errors.As(err, &problems))
	var keys []string
	for _, p := range problems {
		keys = append(keys, p.Key)
	}
	require.Equal(t, []string{"name", "repo.path", "limits.actoins", "limits.queue", "mode"}, keys)
	require.ErrorContains(t, err, "limits.actions (did you mean it?)")
}

func TestAWorkflowsInputNamesARepositoryThatIsTheSameEverywhere(t *testing.T) {
	c, err := charter.Parse([]byte(minimal))
	require.NoError(t, err)
	require.ErrorContains(t, c.ValidateInput(), "repo.path")
	c.Repo = spec.Repo{URL: "https://example.com/shop.git"}
	require.NoError(t, c.ValidateInput())
}

func TestS5_AHealthCheckSaysWhatItTries(t *testing.T) {
	parse := func(trigger string) error {
		_, err := charter.Parse([]byte(`{"kind":"steward","name":"shop","repo":{"path":"/src"},"triggers":[{"name":"web",` + trigger + `}]}`))
		return err
	}
	require.NoError(t, parse(`"from":"health","url":"https://shop.example/health","task":{}`))
	require.NoError(t, parse(`"from":"health","command":"make health","task":{"title":"It is ill"}`))
	require.ErrorContains(t, parse(`"from":"health","task":{}`), "one of command and url")
	require.ErrorContains(t, parse(`"from":"health","command":"a","url":"https://b","task":{}`), "one of command and url")
	require.ErrorContains(t, parse(`"from":"health","command":"a","secretFile":"x","task":{}`), "secretFile")
	require.ErrorContains(t, parse(`"from":"health","url":"ftp://b","task":{}`), "triggers[0].url")
	require.ErrorContains(t, parse(`"from":"json","secretFile":"x","url":"https://b","task":{}`), "only a health check")
}

// The project's folder may have another branch checked out than the one that the steward looks after.
func TestALoopStartsFromTheBranchThatItsStewardLooksAfter(t *testing.T) {
	c, err := charter.Parse([]byte(`{"kind": "steward", "name": "shop", "repo": {"path": "/src/shop"}, "defaults": {
		"scope": ["**"], "goal": "g", "test": {"command": "true"}, "agent": {"command": ["agent"]}, "approvals": {"tools": ["*"]}}}`))
	require.NoError(t, err)
	for want, caps := range map[string]charter.Caps{"": {}, "main": {Onto: "main"}, "pawl/shop-a-one": {Onto: "main", From: "pawl/shop-a-one"}} {
		caps.Loop = "shop-a-two"
		s, err := c.Loop(task.Step{ID: "two", Kind: "deliver"}, caps)
		require.NoError(t, err)
		require.Equal(t, want, s.Repo.Base)
	}
}
