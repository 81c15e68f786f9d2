package world

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
)

// Once is an agent that does something else as well in its first iteration.
func Once(deed string) string {
	return Raises + `
		[ "$PAWL_ITERATION" = 1 ] || exit 0
		g() { git -c user.name=Mallory -c user.email=m@example.com "$@"; }
		{ ` + deed + `
		} >/dev/null 2>&1
		exit 0`
}

// WaitsFor is an agent that works when the test lets it. Once it has begun a change, it adds a line to $WORLD/at with
// the number that it found.
func WaitsFor(file string) string {
	return `echo 99 >work/other; echo "$PAWL_ITERATION $(cat work/n)" >>"$WORLD/at"; until [ -e "$WORLD/` + file + `" ]; do sleep 0.05; done
		echo good >work/other; ` + Raises
}

// At waits until the agent was called that many times.
func (w *World) At(calls int) {
	w.T.Helper()
	w.Until("the agent is at work for the "+strconv.Itoa(calls)+". time", func() bool {
		return strings.Count(w.Read("at"), "\n") == calls
	})
}

// Script gives the world another agent.
func (w *World) Script(agent string) { w.Write("agent.sh", "cat >/dev/null\n"+agent+"\n") }

// Raises is an agent that adds one to the number in each iteration.
const Raises = `echo $(($(cat work/n) + 1)) >work/n; echo "raise the number"`

// Deed is what an agent does in an iteration after it has raised the number: the deed's name, its script, and the
// reason why the change is not kept, "" if it is kept.
type Deed [3]string

// Name returns the iteration's description.
func (d Deed) Name() string { return d[0] }

// Does gives the world an agent that does one deed in each iteration, with the deed's name as its description.
func (w *World) Does(deeds ...Deed) *World {
	var script strings.Builder
	script.WriteString(`echo $(($(cat work/n) + 1)) >work/n
		g() { git -c user.name=Mallory -c user.email=m@example.com "$@"; }
		case $PAWL_ITERATION in
`)
	for i, d := range deeds {
		fmt.Fprintf(&script, "%d)\necho '%s'\nexec >/dev/null 2>&1\n%s\n;;\n", i+1, d.Name(), d[1])
	}
	script.WriteString("esac\nexit 0")
	w.Script(script.String())
	return w.Set(Doc{"limits": Doc{"iterations": len(deeds), "discards": len(deeds)}})
}

// Come expects the result rows of these deeds.
func (w *World) Come(deeds ...Deed) {
	w.T.Helper()
	best := 10
	want := []Row{{"0", "10", "+0.00", "yes", "baseline"}}
	for i, d := range deeds {
		r := Row{strconv.Itoa(i + 1), strconv.Itoa(best), "+0.00", "no", d[2] + ": " + d.Name()}
		if d[2] == "" {
			best++
			r = Row{r[0], strconv.Itoa(best), "+1.00", "yes", d.Name()}
		}
		want = append(want, r)
	}
	require.Equal(w.T, want, w.Results(w.Loop))
}
