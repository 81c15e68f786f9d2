package realrepos_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// replay is a history of releases, the oldest first. The first is the repository, and each of the others is what the
// agent makes of it. Package managers have no commits, so consecutive releases stand for them. digest pins all of them.
type replay struct {
	npm, module, digest string
	versions            string
	measure, guard      string
	higher              bool
}

var replays = map[string]replay{
	// Versions 2.7 to 2.10 read options and arguments differently from those before and after.
	"commander": {
		npm: "commander", digest: "01389c6fe454775266fedad43acd695281dbda95b80b4ca54415f8b376e99d20", higher: true,
		versions: "2.0.0 2.1.0 2.2.0 2.3.0 2.4.0 2.5.0 2.5.1 2.6.0 2.7.0 2.7.1 2.8.0 2.8.1 2.9.0 2.10.0 2.11.0 2.12.0 2.12.1 2.12.2 2.13.0 2.14.0 2.14.1 2.15.0 2.15.1 2.16.0 2.17.0 2.17.1 2.18.0 2.19.0 2.20.0 2.20.1 2.20.3",
		measure:  "wc -c <index.js",
		guard:    `node -e "const c = require('./'); c.option('-p, --peppers', 'x').option('--no-s', 'y').option('-l <n>', 'z').parse(['n', 'f', '-p', '-l', '3', 'q']); require('assert')(c.peppers === true && c.args[0] === 'q' && c.s === true)"`,
	},
	"minimist": {
		npm: "minimist", digest: "21e7e914a39856584b65fd126c8028aa2b080b8e7a157cb96ac39e1c863c1d9a",
		versions: "0.0.0 0.0.1 0.0.2 0.0.3 0.0.4 0.0.5 0.0.6 0.0.7 0.0.8 0.0.9 0.0.10 0.1.0 0.2.0 0.2.1 0.2.2 0.2.3 0.2.4 1.0.0 1.1.0 1.1.1 1.1.2 1.1.3 1.2.0 1.2.1 1.2.2 1.2.3 1.2.4 1.2.5 1.2.6 1.2.7 1.2.8",
		measure:  "wc -c <index.js",
		guard:    `node -e "const r = require('./')(['--a.b', '1', '-n5', '--no-x', '--', 'y']); require('assert')(r.n === 5 && r.x === false && r._[0] === 'y')"`,
	},
	"x/mod": {
		module: "golang.org/x/mod", digest: "8d5659b77498819890b40a10ea775686be3c9d24173e50ce019fe15575a48aee", higher: true,
		versions: "v0.12.0 v0.13.0 v0.14.0 v0.15.0 v0.16.0 v0.17.0 v0.18.0 v0.19.0 v0.20.0 v0.21.0 v0.22.0 v0.23.0 v0.24.0 v0.25.0 v0.26.0 v0.27.0 v0.28.0 v0.29.0 v0.30.0 v0.31.0 v0.32.0 v0.33.0 v0.34.0 v0.35.0 v0.36.0 v0.37.0 v0.38.0 v0.39.0 v0.40.0 v0.41.0 v0.42.0",
		measure:  "cat */*.go | wc -c",
		guard:    "cd semver && GO111MODULE=off go test .",
	},
}

// put writes the releases into folders 0, 1, 2 …
func (r replay) put(t *testing.T, dir string) (n int) {
	t.Helper()
	versions := strings.Fields(r.versions)
	all := make([]string, len(versions))
	pinned := sha256.New()
	if r.module != "" {
		for i, v := range versions {
			all[i] = r.module + "@" + v
		}
		out, err := exec.Command("go", append([]string{"mod", "download", "-json"}, all...)...).Output()
		if err != nil {
			world.Lacks(t, r.module+" can't be fetched: "+err.Error())
		}
		for i, more := 0, json.NewDecoder(strings.NewReader(string(out))); ; i++ {
			var got struct{ Dir, Sum string }
			if err := more.Decode(&got); errors.Is(err, io.EOF) {
				break
			}
			io.WriteString(pinned, got.Sum+"\n")
			copyWritable(t, filepath.Join(dir, strconv.Itoa(i)), got.Dir)
		}
	} else {
		for i, v := range versions {
			all[i] = r.npm + "@" + v
		}
		fetch := exec.Command("npm", append([]string{"pack", "--silent", "--pack-destination", filepath.Dir(cached(t, "x"))}, all...)...)
		for i, v := range versions {
			file, into := cached(t, r.npm+"-"+v+".tgz"), filepath.Join(dir, strconv.Itoa(i))
			unpack(t, into, file, "", func() []*exec.Cmd { return []*exec.Cmd{fetch} })
			io.WriteString(pinned, digest(t, file)+"\n")
		}
	}
	require.Equal(t, r.digest, hex.EncodeToString(pinned.Sum(nil)), "other releases than those that are pinned")
	return len(versions)
}

// TestRealHistoriesAreJudgedAsAnOracleDoes has the agent make the changes that the repository's authors made, release
// after release. It compares each verdict with what the same two commands say in another folder.
func TestRealHistoriesAreJudgedAsAnOracleDoes(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(replays)) {
		r := replays[name]
		t.Run(name, func(t *testing.T) {
			world.Slow(t, "three iterations of real repositories")
			source{needs: []string{"go", "node", "npm"}}.available(t)
			theirs := t.TempDir()
			n := r.put(t, theirs)
			w := world.New(t, "")
			require.NoError(t, os.Rename(theirs, filepath.Join(w.Dir, "releases")))
			at := func(i int) string { return filepath.Join(w.Dir, "releases", strconv.Itoa(i)) }
			const become = "find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +\ncp -R "
			out, err := exec.Command("sh", "-ec", "cd "+w.Repo+"\n"+become+at(0)+"/. .").CombinedOutput()
			require.NoError(t, err, string(out))
			w.Git("add", "--force", "--all")
			w.Commit("the first release")
			w.Script(become + filepath.Join(w.Dir, "releases") + "/$PAWL_ITERATION/. .\necho release $PAWL_ITERATION")
			direction := "lower"
			if r.higher {
				direction = "higher"
			}
			w.Set(world.Doc{
				"scope": []string{"**", "**/*_test.go", "**/go.mod", "**/go.sum"}, "verify": world.Doc{"command": r.measure, "direction": direction}, "guard": world.Doc{"command": r.guard, "fewerTests": true},
				"limits": world.Doc{"iterations": n - 1, "discards": n, "reworks": 0, "onSealed": "rework"}, "newFiles": "allow",
			})
			w.Run(0)
			rows := w.Results(w.Loop)
			require.Len(t, rows, n)
			says := func(i int, command string) (string, bool) {
				c := exec.Command("sh", "-c", command)
				c.Dir, c.Env = at(i), w.Environ()
				out, err := c.Output()
				return strings.TrimSpace(string(out)), err == nil
			}
			best, _ := says(0, r.measure)
			for i := 1; i < n; i++ {
				printed, _ := says(i, r.measure)
				now, err := strconv.Atoi(printed)
				require.NoError(t, err)
				before, err := strconv.Atoi(best)
				require.NoError(t, err)
				want := "no"
				if now != before && (now > before) == r.higher {
					if _, passes := says(i, r.guard); passes {
						want, best = "yes", printed
					}
				}
				require.Equal(t, want, rows[i].Kept(), "release %d: %d after %d, and pawl says %v", i, now, before, rows[i])
			}
		})
	}
}
