package rules_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

// kept returns the names of these variables that agent and commands get.
func kept(t *testing.T, env ...string) []string {
	t.Helper()
	in, out := rules.Inherited(env)
	require.Len(t, env, len(in)+len(out))
	var names []string
	for _, kv := range in {
		name, _, _ := strings.Cut(kv, "=")
		names = append(names, name)
	}
	return names
}

func TestE6_WhatABuildNeedsIsInherited(t *testing.T) {
	env := []string{
		"PATH=/usr/bin:/bin", "HOME=/home/me", "LANG=de_DE.UTF-8", "LC_ALL=C", "TERM=xterm-256color", "TZ=Europe/Berlin", "USER=me", "LOGNAME=me",
		"SHELL=/bin/zsh", "TMPDIR=/tmp", "CI=1", "NO_COLOR=1",
		"GOPATH=/home/me/go", "GOFLAGS=-mod=vendor", "GOPROXY=https://proxy.golang.org,direct", "GOTOOLCHAIN=local", "CGO_ENABLED=0", "GOPRIVATE=example.com/*",
		"JAVA_HOME=/usr/lib/jvm/21", "MAVEN_OPTS=-Xmx2g", "GRADLE_USER_HOME=/g", "ANDROID_HOME=/opt/android",
		"NODE_OPTIONS=--max-old-space-size=4096", "NODE_PATH=/n", "npm_config_registry=https://registry.npmjs.org/", "NVM_DIR=/home/me/.nvm",
		"PYTHONPATH=src", "PYTHONDONTWRITEBYTECODE=1", "VIRTUAL_ENV=/v", "PIP_INDEX_URL=https://pypi.org/simple", "UV_CACHE_DIR=/u",
		"CARGO_HOME=/c", "RUSTFLAGS=-Dwarnings", "GRADLE_OPTS=-Dorg.gradle.author=me -Dkeyboard=x", "RUSTUP_TOOLCHAIN=stable", "CC=clang", "CFLAGS=-O2", "CMAKE_PREFIX_PATH=/p", "PKG_CONFIG_PATH=/q",
		"HTTPS_PROXY=http://proxy.example:3128", "no_proxy=localhost", "SSL_CERT_FILE=/etc/ssl/cert.pem", "XDG_CACHE_HOME=/x", "DOTNET_ROOT=/d", "RBENV_ROOT=/r",
	}
	require.Len(t, kept(t, env...), len(env), "%v", kept(t, env...))
}

// Usual variables for credentials.
func TestE6_WhatIsNotOnTheListStaysOut(t *testing.T) {
	for _, kv := range []string{
		"DATABASE_URL=postgres://localhost/app", "DATABASE_URL=postgres://app:pw@db/app", "DB_PASS=hunter2", "DB_PWD=hunter2", "MYSQL_PWD=x", "PGPASSFILE=/p",
		"GITHUB_PAT=ghp_x", "GH_PAT=x", "GITLAB_PAT=x", "AZURE_DEVOPS_EXT_PAT=x", "SENTRY_DSN=https://abc@sentry.io/1", "SENTRY_URL=x", "REDIS_URL=redis://:pw@cache:6379",
		"MONGODB_URI=mongodb://u:p@h/db", "AMQP_URL=amqp://u:p@h", "SLACK_WEBHOOK=https://hooks.slack.com/services/T/B/x", "AWS_PROFILE=prod",
		"AWS_ACCESS_KEY_ID=x", "KUBECONFIG=/home/me/.kube/config", "DOCKER_HOST=tcp://10.0.0.1", "SSH_AUTH_SOCK=/run/agent", "GPG_AGENT_INFO=x",
		"GOOGLE_APPLICATION_CREDENTIALS=/k.json", "STRIPE=sk_live_x", "TWILIO_SID=x", "HEROKU_USER=me", "BASIC=x", "COMPANY_LICENSE=x", "MAILGUN=x",
		"GIT_DIR=/x", "GIT_SSH_COMMAND=ssh", "PAWL_HOME=/p", "TEMPORAL_ADDRESS=localhost:7233", "DBUS_SESSION_BUS_ADDRESS=unix:/x", "XDG_RUNTIME_DIR=/run/user/1",
		"LD_PRELOAD=/x.so", "BASH_ENV=/x", "ENV=/x", "PROMPT_COMMAND=x", "PS1=x", "NOBODY_HAS_THOUGHT_OF=x", "GITHUB_ACTOR=me", "AZURE_CLIENT=x", "GOOGLE_CLOUD_PROJECT=x", "GODADDY=x",
	} {
		require.Empty(t, kept(t, kv), kv)
	}
}

// A credential stays out even if its name is on the list.
func TestE6_CredentialsStayOutUnderAllowedNames(t *testing.T) {
	for _, kv := range []string{
		"npm_config__auth=x", "npm_config__authToken=x", "npm_config_//registry.npmjs.org/:_authToken=x", "npm_config__password=x", "NPM_TOKEN=x", "NODE_AUTH_TOKEN=x",
		"CARGO_REGISTRY_TOKEN=x", "CARGO_REGISTRIES_OURS_TOKEN=x", "GOAUTH=netrc", "MAVEN_PASS=x", "GRADLE_ENCRYPTION_KEY=x", "UV_PUBLISH_PASSWORD=x",
		"POETRY_HTTP_BASIC_OURS_PASSWORD=x", "POETRY_HTTP_BASIC_OURS_USERNAME=me", "COMPOSER_AUTH={}", "PIP_CLIENT_CERT=/c", "HOMEBREW_GITHUB_API_TOKEN=x", "CYPRESS_RECORD_KEY=x",
		"PIP_INDEX_URL=https://me:hunter2@pypi.example/simple", "PIP_EXTRA_INDEX_URL=https://token@pypi.example/simple", "GOPROXY=https://me:pw@proxy.example,direct",
		"JAVA_TOOL_OPTIONS=-Dhttp.proxyPassword=hunter2", "MAVEN_OPTS=-Xmx2g -Drepo.password=hunter2", "GRADLE_OPTS=-PsigningSecret=x", "NODE_OPTIONS=--token=x", "CFLAGS=-O2 -DAPI_KEY=x",
		"HTTPS_PROXY=http://me:pw@proxy.example:3128", "UV_INDEX=ours=https://u:p@x/simple",
		"NIX_CONFIG=experimental-features = flakes\naccess-tokens = github.com=x", `NODE_CONFIG={"db": {"password": "x"}}`, "NODE_OPTIONS=--require x --token hunter2",
		"NODE_EXTRA=ghp_" + strings.Repeat("a1B2", 9), "GOFLAGS=-ldflags=-X=main.k=AKIA" + "QZ7XMPL4RTUVW2H5", "CI=-----BEGIN OPENSSH PRIVATE KEY-----",
		"CI=[default]\naws_secret_" + "access_key = 9utJvbhJoBbbCL1BNqt6ReKs2vgGMIDPi67V9IIj", "NODE_FASTLY=" + "v73oi98mf2kjnro470x1cp1vdqordeks",
	} {
		require.Empty(t, kept(t, kv), kv)
	}
}

func TestE6_TheContractSaysWhichMentionedVariablesStayOut(t *testing.T) {
	env := []string{"PATH=/bin", "DATABASE_URL=postgres://app:pw@db/app", "API_BASE=https://x", "LLM=local", "ABC=1"}
	s := spec.Spec{Agent: spec.Agent{
		Command: spec.Argv{Shell: "agent --at $API_BASE --db ${DATABASE_URL}"}, Env: map[string]string{"API_BASE": "$API_BASE"},
		Roles: map[string]spec.Override{"reviewer": {Command: spec.Argv{List: []string{"printenv", "LLM"}}}},
	}}
	s.Verify.Command = `psql "$DATABASE_URL" -f count.sql # XABC ABC_ ABCé ABC2`
	s.Guard.Command = `echo "$DATABASE_URL…"` // no letter follows
	says := rules.Environment(s, env)
	require.Equal(t, []string{
		"agent.command mentions DATABASE_URL, which stays out: name it in agent.env",
		"agent.roles.reviewer.command mentions LLM, which stays out: name it in agent.env",
		"guard.command mentions DATABASE_URL, which stays out: set it in the command, or let the command read it from a file",
		"verify.command mentions DATABASE_URL, which stays out: set it in the command, or let the command read it from a file",
	}, says[1:])
	require.NotContains(t, strings.Join(says, "\n"), "pw@db", "names are said, values never")
	require.Len(t, rules.Environment(spec.Spec{}, os.Environ()), 1)
}

func TestE6_TheContractSaysWhichCredentialsStandInTheSpec(t *testing.T) {
	s := spec.Spec{Agent: spec.Agent{
		Command: spec.Argv{List: []string{"agent"}},
		Env:     map[string]string{"API_KEY": "$API_KEY", "OTHER_KEY": "sesame", "DB": "postgres://app:pw@db/app", "MODE": "fast", "EMPTY_TOKEN": ""},
		Roles:   map[string]spec.Override{"reviewer": {Env: map[string]string{"REVIEW_PASSWORD": "x"}}},
	}}
	says := rules.Environment(s, nil)
	const kept = ", and pawl pushes the spec with the ledger: "
	require.Equal(t, []string{
		"agent.env.DB looks like a credential" + kept + "name a variable of the worker instead, as $DB",
		"agent.env.OTHER_KEY looks like a credential" + kept + "name a variable of the worker instead, as $OTHER_KEY",
		"agent.roles.reviewer.env.REVIEW_PASSWORD looks like a credential" + kept + "name a variable of the worker instead, as $REVIEW_PASSWORD",
	}, says[1:])
	require.Nil(t, rules.Contained(s), "they may be none")
}

func TestE6_ASpecThatContainsACredentialIsRefused(t *testing.T) {
	token := "ghp_" + strings.Repeat("a1B2", 9)
	for want, of := range map[string]func(s *spec.Spec){
		"": func(s *spec.Spec) {
			s.Agent.Env = map[string]string{"API_TOKEN": "$API_TOKEN_4f9c1de0a7b34c5e8d6f", "OPENAI_API_KEY": "ollama", "DB": "postgres://test:test@localhost/test"}
		},
		"agent.env.GH contains a GitHub token":             func(s *spec.Spec) { s.Agent.Env = map[string]string{"GH": token} },
		"agent.env.MANY contains a GitHub token":           func(s *spec.Spec) { s.Agent.Env = map[string]string{"MANY": "a\n" + token} },
		"agent.env.API_KEY contains a secret in a setting": func(s *spec.Spec) { s.Agent.Env = map[string]string{"API_KEY": "4f9c1de0a7b34c5e8d6f"} },
		"agent.roles.reviewer.env.GH contains a GitHub token": func(s *spec.Spec) {
			s.Agent.Roles = map[string]spec.Override{"reviewer": {Env: map[string]string{"GH": token}}}
		},
		"agent.command contains a GitHub token": func(s *spec.Spec) { s.Agent.Args = []string{"--token", token} },
		"guard.command contains a GitHub token": func(s *spec.Spec) { s.Guard.Command = "GH=" + token + " sh guard.sh" },
		"goal contains a GitHub token":          func(s *spec.Spec) { s.Goal = "Make it fast.\nUse " + token + "." },
		"notify[1] contains a Slack webhook": func(s *spec.Spec) {
			s.Notify = []string{"desktop", "https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/" + strings.Repeat("a1B2", 6)}
		},
		"verify.holdout.command contains a GitHub token": func(s *spec.Spec) { s.Verify.Holdout.Command = "GH=" + token + " sh guard.sh" },
	} {
		var s spec.Spec
		s.Agent.Command.List = []string{"agent"}
		of(&s)
		f := rules.Contained(s)
		if want == "" {
			require.Nil(t, f)
			continue
		}
		require.Equal(t, fault.InvalidSpec, f.Code, want)
		require.Equal(t, want+", and pawl would push it with the ledger, where it stays", f.What)
		require.NotContains(t, f.What+f.Do, token)
	}
}

func TestE6_AMessageThatCarriesACredentialIsRefused(t *testing.T) {
	token := "ghp_" + strings.Repeat("a1B2", 9)
	for payload, want := range map[string]string{
		``:        "",
		`no JSON`: "",
		`{"note": "go on", "hash": "4f9c1de0a7b34c5e8d6f"}`: "",
		`"` + token + `"`:                      "it",
		`{"note": "first\nuse ` + token + `"}`: "note",
		`{"spec": {"guard": {"command": "GH=` + token + ` sh guard.sh"}}}`:  "spec.guard.command",
		`{"task": {"steps": [{}, {"goal": "use ` + token + `"}]}}`:          "task.steps[1].goal",
		`{"spec": {"agent": {"env": {"API_KEY": "4f9c1de0a7b34c5e8d6f"}}}}`: "spec.agent.env.API_KEY",
	} {
		f := rules.Carried([]byte(payload))
		if want == "" {
			require.Nil(t, f, payload)
			continue
		}
		require.NotNil(t, f, payload)
		require.Equal(t, fault.InvalidMessage, f.Code)
		require.Contains(t, f.What, want+" contains a ")
		require.NotContains(t, f.What+f.Do, token)
	}
}
