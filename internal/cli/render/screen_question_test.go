package render_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli/render"
)

func TestNothingIsPrintedBehindAQuestion(t *testing.T) {
	for name, c := range map[string]struct {
		then func(*render.Screen)
		want string
	}{
		"a line":            {func(s *render.Screen) { s.Print("news") }, "Go on? [y/n] \nnews\n"},
		"two lines":         {func(s *render.Screen) { s.Print("news"); s.Print("more") }, "Go on? [y/n] \nnews\nmore\n"},
		"a line break":      {func(s *render.Screen) { s.Print("") }, "Go on? [y/n] \n"},
		"the question":      {func(s *render.Screen) { s.Ask("Go on? ") }, "Go on? [y/n] \nGo on? "},
		"after an answer":   {func(s *render.Screen) { s.Typed(); s.Print("news") }, "Go on? [y/n] news\n"},
		"a blank, answered": {func(s *render.Screen) { s.Typed(); s.Print("") }, "Go on? [y/n] \n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := render.NewScreen(&out)
			s.Ask("Go on? [y/n] ")
			require.True(t, s.Asking())
			c.then(s)
			require.Equal(t, c.want, out.String())
		})
	}
}
