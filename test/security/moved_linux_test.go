package security_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// TestE6_TheJudgeIsInTheHomeThatItWas has another program rename $PAWL_HOME while a step runs, and put a forged copy in
// its place, in whose judge the measure says something else. No command runs in the copy and nothing is written there.
// The loop continues when the folder is back.
func TestE6_TheJudgeIsInTheHomeThatItWas(t *testing.T) {
	for i, way := range waysHere() {
		t.Run(way, func(t *testing.T) {
			needsWay(t, way)
			if i > 0 {
				world.Slow(t, "the first way finds folders as the others do")
			}
			t.Parallel()
			w := world.Alone(t, world.Raises)
			// The supervisor already runs when the home is moved: setup and measure belong to one step.
			w.Set(doc{
				"setup":    doc{"command": `touch "` + w.Dir + `/set$(basename "$PWD" | cut -c1)"; until [ -e "` + w.Dir + `/go" ]; do sleep 0.02; done`},
				"verify":   doc{"command": "sh measure.sh; touch '" + w.Dir + "/measured'"},
				"newFiles": "allow",
			})
			if way == byNobody {
				w.Set(doc{"sandbox": doc{"use": "off"}})
			}
			up := serves(t, w, way)
			run := w.Start("run", "--yes", w.SpecFile())
			w.Until("the judge is set up", func() bool { return w.Exists("setj") })

			away := w.Home + ".away"
			require.NoError(t, os.Rename(w.Home, away))
			// An ordinary user may not read the folders that overlays keep for themselves.
			out, err := exec.Command("sh", "-c", `cp -a "$0" "$1" 2>/dev/null; chmod -R u+rwX "$1"`, away, w.Home).CombinedOutput()
			require.NoError(t, err, string(out))
			judge := filepath.Join("loops", w.Loop, "judge", "measure.sh")
			require.NoError(t, os.WriteFile(filepath.Join(w.Home, judge), []byte("echo 999; touch '"+w.Dir+"/forged'\n"), 0o755))
			before := listing(t, w.Home)
			w.Write("go", "")
			w.Until("the worker notices, or measures", func() bool {
				log := world.ReadFile(filepath.Join(away, "logs", "pawl.log")) + world.ReadFile(up.Err)
				return w.Exists("measured") || strings.Contains(log, "is no longer the folder")
			})
			require.False(t, w.Exists("forged"), "a command ran in the forged judge")
			require.Equal(t, before, listing(t, w.Home), "something was written to the forged copy")
			require.NoError(t, os.RemoveAll(w.Home))
			require.NoError(t, os.Rename(away, w.Home))
			s := run.Wait()
			require.Equal(t, 0, s.Code, s.Err)
			require.False(t, w.Exists("forged"), "a command ran in the forged judge")
			require.Equal(t, []string{"10", "11"}, []string{w.Results(w.Loop)[0][1], w.Results(w.Loop)[1][1]})
		})
	}
}

// listing returns the content of a folder, with sizes and times.
func listing(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("find", dir, "-not", "-type", "d", "-printf", "%P %s %T@\n").Output()
	require.NoError(t, err)
	return string(out)
}
