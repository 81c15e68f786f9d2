package render_test

import (
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/require"

	"pawl/internal/cli/render"
)

func TestAHangingTextFitsANarrowTerminal(t *testing.T) {
	for _, width := range []int{30, 40, 60, 80} {
		text := render.Style{Width: width, Wrap: true}.Hang("   1  kept                      84.8        +0.1  +0.12 %  "+strings.Repeat("make it better ", 9), 26)
		for line := range strings.SplitSeq(text, "\n") {
			require.Less(t, runewidth.StringWidth(line), width, text)
		}
	}
}
