package shell_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/shell"
)

func TestQuoteMakesOneWordOfTheShell(t *testing.T) {
	for in, want := range map[string]string{
		"demo-1": "demo-1", "": "''", "my loop": "'my loop'", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "refs/a:b.tsv": "refs/a:b.tsv", "~": "'~'",
	} {
		require.Equal(t, want, shell.Quote(in))
	}
	require.Equal(t, "pawl show 'my loop'", shell.Join("pawl", "show", "my loop"))
}
