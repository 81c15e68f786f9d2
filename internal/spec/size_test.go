package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec"
)

func TestE6_SizesAreReadWithTheirUnit(t *testing.T) {
	for text, want := range map[string]spec.Size{"1B": 1, "512MiB": 512 << 20, "2048MiB": 2 << 30, "2GiB": 2 << 30, "999999TiB": 999999 << 40} {
		got, err := spec.ParseSize(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		again, err := spec.ParseSize(got.String())
		require.NoError(t, err)
		require.Equal(t, want, again)
	}
	for _, text := range []string{"", "512", "512 MiB", "512mb", "1.5GiB", "-1GiB", "0GiB", "1000000TiB"} {
		_, err := spec.ParseSize(text)
		require.Error(t, err, text)
	}
	for _, c := range []struct{ spec, says string }{
		{`"limits":{"memory":"1MiB"},`, "limits.memory: is 1MiB; want: 32MiB or more"},
		{`"limits":{"memory":1048576},`, "limits.memory: is 1048576; want: a size"},
		{`"limits":{"deskBytes":"5KiB"},`, "limits.deskBytes: is 5KiB; want: 1MiB or more"},
		{`"limits":{"processes":3},`, "limits.processes: is 3"},
		{`"limits":{"memory":"1GiB"},"sandbox":{"use":"off"},`, "limits.memory: has no effect, since sandbox.use is off"},
	} {
		_, err := spec.Parse([]byte("{" + c.spec + minimal[1:]))
		require.ErrorContains(t, err, c.says)
	}
}
