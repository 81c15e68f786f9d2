package userrepo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"pawl/internal/git/userrepo"
)

func TestAnOriginHasNoCredentials(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"https://example.com/a/b.git":                      "https://example.com/a/b.git",
		"https://ann:secret@example.com/a/b.git?token=x#y": "https://example.com/a/b.git",
		"https://token@example.com:8443/a":                 "https://example.com:8443/a",
		"ssh://git:secret@example.com/a/b":                 "ssh://git@example.com/a/b",
		"git@example.com:a/b.git":                          "git@example.com:a/b.git",
		"example.com:a/b.git":                              "example.com:a/b.git",
		"git://example.com/a b":                            "git://example.com/a%20b",
		"/home/ann/a":                                      "", "../a": "", "file:///home/ann/a": "", "ext::sh -c x": "", "https://": "",
		"git@example.com:a\nb": "", "https://example.com/\n[core]": "", "": "",
	} {
		assert.Equal(t, want, userrepo.Origin(remote), remote)
	}
}
