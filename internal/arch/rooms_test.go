package arch_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rooms are the rooms of the house, from below: none imports a later one.
var rooms = []string{
	"internal/lib", "internal/fault", "internal/metric", "internal/spec", "internal/home", "internal/git", "internal/engine",
	"internal/judge", "internal/loop", "internal/steward", "internal/exec", "internal/agent", "internal/telemetry", "config",
	"internal/ledger", "internal/client", "internal/integrations", "activities", "workflows", "internal/worker", "internal/cli",
}

// runsBack are the arrows that still run back, by package and room. Each goes with a repair; none may be added.
var runsBack = map[string]string{
	"internal/lib/text/excerpt": "internal/metric",  // one line of other people's text: goes to internal/lib/text
	"internal/judge/testreport": "internal/loop",    // loop.Clip: goes to internal/lib/text
	"internal/loop":             "internal/steward", // events of both kinds are one type
	"internal/loop/rules":       "internal/steward", // the same
	"internal/loop/api":         "internal/steward", // a step's rate limit, which a task has too
}

func TestNoArrowBetweenRoomsRunsBack(t *testing.T) {
	room := func(dir string) int {
		return slices.IndexFunc(rooms, func(r string) bool { return dir == r || strings.HasPrefix(dir, r+"/") })
	}
	stillBack := map[string]bool{}
	arrows := map[string][]string{}
	for _, top := range []string{"internal", "config", "activities", "workflows"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := d.Name()
			if d.IsDir() && (name == "testdata" || name == "arch" || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return nil
			}
			rel, err := filepath.Rel(root, filepath.Dir(path))
			require.NoError(t, err)
			dir := filepath.ToSlash(rel)
			from := room(dir)
			require.GreaterOrEqual(t, from, 0, "%s is in no room", dir)
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, spec := range file.Imports {
				own, isOwn := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "pawl/")
				to := room(own)
				if !isOwn || to < 0 || to == from {
					continue
				}
				if !slices.Contains(arrows[rooms[from]], rooms[to]) {
					arrows[rooms[from]] = append(arrows[rooms[from]], rooms[to])
				}
				if to > from {
					require.Equal(t, runsBack[dir], rooms[to], "%s imports %s: the arrow runs back", path, own)
					stillBack[dir] = true
				}
			}
			return nil
		})
		require.NoError(t, err)
	}
	for dir := range runsBack {
		require.True(t, stillBack[dir], "%s runs back no more: take it out of runsBack", dir)
	}
	for _, r := range rooms {
		slices.Sort(arrows[r])
		t.Logf("%s → %s", r, strings.Join(arrows[r], ", "))
	}
}

// TestEveryRoomSaysWhatItIs: a doc.go says what a room is, where to start reading, and what may not be in it.
func TestEveryRoomSaysWhatItIs(t *testing.T) {
	for _, r := range rooms {
		if strings.HasPrefix(r, "internal/") || r == "workflows" {
			require.FileExists(t, filepath.Join(root, r, "doc.go"))
		}
	}
}
