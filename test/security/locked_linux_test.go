package security_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// Folders that agents and commands lock stop neither the loop nor its end. Nothing is locked for root, so an ordinary
// user runs this. Go's module cache is locked like that.
func TestE6_LockedFoldersHoldNothingUp(t *testing.T) {
	world.Slow(t, "internal/lib/fsutil/remove has such folders")
	needsSandbox(t)
	t.Parallel()
	const lock = `lock() { [ -e "$1/locked" ] || { mkdir -p "$1/locked/in" && echo 1 >"$1/locked/in/f" && chmod 555 "$1/locked/in" && chmod 0 "$1/locked"; }; }; `
	w := world.Alone(t, "set -e; "+lock+`lock "$(dirname "$PAWL_RESULT")"; lock ~/.cache/go-build; lock ~/.cache/gopls; rm -f loop-results.tsv; lock loop-results.tsv/x
		chmod 0 loop-results.tsv; `+world.Raises)
	w.Write("user/.cache/go-build/mod/a@v1/f", "")
	w.Env = append(w.Env, "GOCACHE="+w.Dir+"/user/.cache/go-build")
	w.Ordinary()
	w.Set(doc{
		"verify":  doc{"command": lock + `set -e; lock ~/.cache/go-build; cd ~/.cache/go-build; mkdir -p m@v1; chmod 755 m@v1; echo 1 >>m@v1/f; chmod 555 m@v1; cat "$OLDPWD/work/n"`},
		"sandbox": doc{"use": "required"}, "limits": doc{"iterations": 3},
	})
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	require.NotContains(t, s.Err, "tried again")
	require.Equal(t, "13", w.Kept("work/n"))
	require.NoDirExists(t, filepath.Join(w.Home, "loops", w.Loop, "layers"))
	s = w.Pawl("clean", "--yes", w.Loop)
	require.Equal(t, 0, s.Code, s.Err)
	require.NoDirExists(t, filepath.Join(w.Home, "loops", w.Loop, "steps"))
}
