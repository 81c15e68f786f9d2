package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
)

// What a judgement leaves around its tree is gone in the next one.
func TestE6_EachJudgementHasFreshSurroundings(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			layers := filepath.Join(p.pawl, "loops", "l", "layers")
			s, err := supervisor.Start(t.Name(), m.Files)
			require.NoError(t, err)
			defer s.Close()
			run := func(judgement, script string, works bool) {
				t.Helper()
				p.request.Tree, p.request.Fresh = "judge", judgement
				p.request.Layers = []string{filepath.Join(layers, "trial-"+judgement), filepath.Join(layers, "judge")}
				code, out := p.in(s, script)
				require.Equal(t, works, code == 0, "%s\n%s", script, out)
			}
			leave := `echo evil >~/.npmrc; echo evil >/tmp/x; echo evil >~/.cache/go-build/x; echo new >~/.cache/go-build/new; rm -f ~/.cache/go-build/gone; echo evil >~/.cache/gopls/x`
			find := `cat ~/.npmrc || cat ~/.cache/gopls/x || cat /tmp/x || grep evil ~/.cache/go-build/x || cat ~/.cache/go-build/new`
			require.NoError(t, os.WriteFile(filepath.Join(p.home, ".cache/go-build/gone"), nil, 0o644))
			run("1", leave, true)
			run("1", find, true) // within one judgement it stays
			run("2", find, false)
			if m.Overlay {
				run("2", `test -e ~/.cache/go-build/gone && grep x ~/.cache/go-build/x`, true)
			}
			// A kept change passes on its caches, and nothing else.
			run("3", `cd ~/.cache/go-build && mkdir m@v1 shut && echo 1 >m@v1/f && echo 1 >shut/old && chmod 555 m@v1 && chmod 0 shut`, true)
			run("3", `echo good >~/.cache/go-build/kept; mkdir -p ~/.cache/go-build/d; rm -f ~/.cache/go-build/gone; echo evil >~/.npmrc; mkdir ~/.cache/gopls/d && echo good >~/.cache/gopls/d/kept`, true)
			require.NoError(t, s.Close())
			require.NoError(t, sandbox.Promote(filepath.Join(layers, "trial-3"), filepath.Join(layers, "judge")))
			s, err = supervisor.Start(t.Name(), m.Files)
			require.NoError(t, err)
			run("4", find, false)
			if m.Overlay {
				run("4", `cd ~/.cache/go-build && grep 1 m@v1/f && test "$(stat -c %a m@v1 shut | xargs)" = "555 0"`, true)
				run("4", `grep good ~/.cache/go-build/kept && test -d ~/.cache/go-build/d && test ! -e ~/.cache/go-build/gone && grep good ~/.cache/gopls/d/kept && rm -r ~/.cache/gopls/d`, true)
				run("5", `grep good ~/.cache/gopls/d/kept`, true)

				// Rooms share mounted overlays until Layered says that the layers below have changed.
				lasting := func(fresh, layered, script string) {
					t.Helper()
					p.request.Fresh, p.request.Layered, p.request.Layers = fresh, layered, []string{filepath.Join(layers, "judge")}
					code, out := p.in(s, script)
					require.Zero(t, code, "%s\n%s", script, out)
				}
				lasting("6", "", `test ! -e ~/.cache/go-build/later && ls ~/.cache/go-build && echo 1 >~/.cache/go-build/mine`)
				run("7", `echo good >~/.cache/go-build/later; rm ~/.cache/go-build/kept`, true)
				run("7", `cd ~/.cache/go-build && chmod 755 m@v1 && echo 2 >>m@v1/f && echo 3 >m@v1/a && chmod 555 m@v1 && chmod 700 shut && rm -r shut && mkdir shut && chmod 0 shut`, true)
				require.NoError(t, sandbox.Promote(filepath.Join(layers, "trial-7"), filepath.Join(layers, "judge")))
				lasting("8", "kept 7", `grep good ~/.cache/go-build/later && ls ~/.cache/go-build | grep later && test ! -e ~/.cache/go-build/kept && test -e ~/.cache/go-build/mine`)
				lasting("8", "kept 7", `cd ~/.cache/go-build && grep 2 m@v1/f && grep 3 m@v1/a && test "$(stat -c %a m@v1 shut | xargs)" = "555 0" && chmod 700 shut && test ! -e shut/old`)
			}
			require.FileExists(t, filepath.Join(p.home, ".cache/go-build/gone"), "the user's own cache is as it was")
			b, err := os.ReadFile(filepath.Join(p.home, ".cache/go-build/x"))
			require.NoError(t, err)
			require.Equal(t, "x\n", string(b))
		})
	}
}

// The next judgement can use the layers of the last one only if nothing was done to them, because nothing that a
// judgement does may last.
func TestE6_LayersAreUntouchedUntilSomethingIsDoneToThem(t *testing.T) {
	for name, script := range map[string]string{
		"nothing": `ls -la ~/.cache/go-build ~/.cache/gopls >/dev/null`, "written": `echo 1 >~/.cache/go-build/new`, "an empty folder": `mkdir ~/.cache/gopls/d`,
		"removed": `rm ~/.cache/go-build/x`, "its mode": `chmod 700 ~/.cache/go-build`, "the mode of one that is missing": `chmod 700 ~/.cache/gopls`,
		"its time": `touch -d 2001-01-01 ~/.cache/go-build`, "written and removed": `echo 1 >~/.cache/go-build/new; rm ~/.cache/go-build/new`,
		"an attribute":                      `python3 -c 'import os; os.setxattr(os.path.expanduser("~/.cache/go-build"), "user.x", b"1")'`,
		"one that looks like the overlay's": `python3 -c 'import os; os.setxattr(os.path.expanduser("~/.cache/go-build"), "user.overlay.x", b"1")' || echo 1 >~/.cache/go-build/new`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, sandbox.Probe())
			if !p.request.Machine.Overlay {
				t.Skip("this machine has no overlays")
			}
			s, err := supervisor.Start(t.Name(), p.request.Machine.Files)
			require.NoError(t, err)
			defer s.Close()
			layers := filepath.Join(p.pawl, "loops", "l", "layers")
			trial := filepath.Join(layers, "trial-1")
			require.True(t, sandbox.Untouched(trial), "it is not there yet")
			p.request.Tree, p.request.Fresh, p.request.Layers = "judge", "1", []string{trial, filepath.Join(layers, "judge")}
			code, out := p.in(s, script)
			require.Zero(t, code, out)
			require.Equal(t, name == "nothing", sandbox.Untouched(trial))
		})
	}
}

// A command can't make a layer lead elsewhere. The process that makes the next surroundings would follow it.
func TestE6_ALayerLeadsNowhereElse(t *testing.T) {
	for name, m := range machines(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, m)
			s, err := supervisor.Start(t.Name(), m.Files)
			require.NoError(t, err)
			defer s.Close()
			p.request.Fresh = "1"
			_, out := p.in(s, `for l in /run/pawl/layers/*; do rm -rf $l/upper && ln -s ~ $l/upper; done
				for l in ~/.cache/* ~/.npm; do rm -rf $l && ln -s ~ $l; done; ls -la ~ /run/pawl/layers/* 2>&1`)
			p.request.Fresh = "2"
			code, found := p.in(s, `find -L ~ /run /tmp -name id -path '*.ssh*' 2>/dev/null | grep . || find -L ~ /run /tmp -name .bashrc 2>/dev/null | grep .`)
			require.NotZero(t, code, "%s\nafter %s", found, out)
			_, _ = p.in(s, `for l in ~/.cache/* ~/.npm ~/.ccache; do echo 1 >$l/planted; done`)
			require.NoFileExists(t, filepath.Join(p.home, "planted"))
			require.FileExists(t, filepath.Join(p.home, ".ssh", "id"))
		})
	}
}
