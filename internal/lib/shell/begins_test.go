package shell_test

import (
	"testing"

	"pawl/internal/lib/shell"

	"github.com/stretchr/testify/assert"
)

func TestA1_CommandsAreApprovedByTheWordsThatTheyBeginWith(t *testing.T) {
	for command, want := range map[string]bool{
		"go test ./...":                true,
		"go 'test' \"-run\" X":         true,
		"go test":                      true,
		"ls && go test ./... | ls -l":  true,
		"go test; ls":                  true,
		"go":                           false,
		"go testing":                   false,
		"gotest":                       false,
		"go test && rm -rf .":          false,
		"go test $(rm x)":              false,
		"go test `rm x`":               false,
		"go test \"$(rm x)\"":          false,
		"go test <(rm x)":              false,
		"go test 2>&1 >/dev/null":      true,
		"go test >main.go":             false,
		"for i in 1; do go test; done": false,
		"go test &":                    true,
		"(go test)":                    true,
		"if ls; then go test; fi":      true,
		"GOFLAGS=-toolexec=x go test":  false,
		"go test 'unclosed":            false,
		"":                             false,
	} {
		assert.Equal(t, want, shell.Begins(command, []string{"go test", "ls"}), command)
	}
	assert.False(t, shell.Begins("ls", nil))
}
