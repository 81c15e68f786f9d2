package spec_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/spec"
)

func TestP0_URLsOfRepositories(t *testing.T) {
	of := func(url string) error {
		s, err := spec.Parse([]byte(minimal))
		require.NoError(t, err)
		s.Repo = spec.Repo{URL: url}
		return s.ValidateInput()
	}
	for _, good := range []string{
		"https://example.com/a/b.git", "http://127.0.0.1:8080/b", "git://git/project.git", "ssh://git@example.com:2222/~/b.git", "ssh://example.com/b",
		"file:///srv/git/b.git", "git@example.com:a/b.git", "example.com:/srv/b.git", "https://[::1]:80/b.git",
	} {
		assert.NoError(t, of(good), good)
	}
	for bad, what := range map[string]string{
		"/srv/git/b.git":          "repo.url: is a path; want: file:///srv/git/b.git",
		"b.git":                   "not the address",
		"./b:c":                   "not the address",
		"ext::sh -c true":         "not the address",
		"fd::3":                   "not the address",
		"ext://sh":                "not the address",
		"https://":                "not the address",
		"https://example.com":     "not the address",
		"https:///b.git":          "names no host",
		"ssh://-oProxyCommand=x/": "not the address",
		"ssh://-oProxyCommand/b":  "names no host",
		"-oProxyCommand=x:b":      "not the address",
		"file://host/b":           "names a host",
		"https://x/b\n":           "unprintable",
		"https://x/b?token=hush":  "not the address",
	} {
		assert.ErrorContains(t, of(bad), what, bad)
	}
	for _, secret := range []string{"https://ann:hush@example.com/b.git", "https://hush@example.com/b", "ssh://git:hush@example.com/b", "http://ann:h/ush@x/b", "https://ann:hu@sh@example.com/b"} {
		err := of(secret)
		require.Error(t, err, secret)
		assert.NotContains(t, err.Error(), "hush")
		assert.NotContains(t, err.Error(), "example.com/b.git\n")
	}
	assert.ErrorContains(t, of("https://ann:hush@example.com/b.git"), "contains a user or a password")
}

func TestP0_AURLOrAPath(t *testing.T) {
	input := func(repo map[string]string) error {
		var doc map[string]any
		require.NoError(t, json.Unmarshal([]byte(minimal), &doc))
		doc["repo"] = repo
		b, err := json.Marshal(doc)
		require.NoError(t, err)
		s, err := spec.Parse(b)
		if err != nil {
			return err
		}
		return s.ValidateInput()
	}
	assert.NoError(t, input(map[string]string{"url": "https://example.com/b.git"}))
	assert.ErrorContains(t, input(map[string]string{"url": "https://example.com/b.git", "path": "/src/x"}), "repo: has both a path and a url")
}

func TestE6_TheEndpointOfARepository(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.com/a/b.git": "example.com:443", "http://127.0.0.1:8080/b": "127.0.0.1:8080", "git://git/project.git": "git:9418",
		"ssh://git@example.com:2222/~/b.git": "example.com:2222", "ssh://git@example.com/b": "example.com:22", "git@example.com:a/b.git": "example.com:22",
		"https://[2001:db8::1]/b.git": "[2001:db8::1]:443", "https://[::1]:80/b.git": "[::1]:80", "file:///srv/git/b.git": "", "/srv/git/b.git": "", "": "",
	} {
		got := spec.Repo{URL: url}.Endpoint()
		assert.Equal(t, want, got, url)
		if got != "" {
			_, err := spec.ParseHost(got)
			assert.NoError(t, err, url)
		}
	}
}
