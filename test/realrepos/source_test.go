package realrepos_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// source is a repository from a package manager, pinned by version and digest.
type source struct {
	module, sum string   // a Go module: path@version, and its sum in go.sum
	npm         string   // an npm package: name@version
	debian      string   // a file of a Debian source package: name_version.orig.tar.gz
	digest      string   // the SHA-256 of the file from npm or Debian
	below       string   // the folder in the file that is the repository
	needs       []string // programs and files that must be there
	slow        bool     // its loops take long
	without     string   // a change because these machines lack something
	offline     string   // a further change for its loops, because something it needs can't be fetched
	unfit       string   // what validate says if it can have no loop
	improve     *improvement
	deliver     *delivery
}

// available skips the test if something that the source needs is missing.
func (s source) available(t *testing.T) {
	t.Helper()
	for _, tool := range s.needs {
		_, err := exec.LookPath(tool)
		if strings.Contains(tool, "/") {
			_, err = os.Stat(tool)
		}
		if err != nil {
			world.Lacks(t, "there is no "+tool)
		}
	}
}

// put writes the repository of a source into a folder. It skips the test if there is no package manager or no network.
func (s source) put(t *testing.T, dir string) {
	t.Helper()
	s.available(t)
	switch {
	case s.module != "":
		s.putModule(t, dir)
	case s.npm != "":
		file := cached(t, strings.NewReplacer("@", "-", "/", "-").Replace(s.npm)+".tgz")
		unpack(t, dir, file, s.below, func() []*exec.Cmd {
			return []*exec.Cmd{exec.Command("npm", "pack", "--silent", "--pack-destination", filepath.Dir(file), s.npm)}
		})
		require.Equal(t, s.digest, digest(t, file), "another file than the one that is pinned: %s", file)
	default:
		file := cached(t, s.debian)
		unpack(t, dir, file, s.below, func() []*exec.Cmd { return debian(t, s.debian, filepath.Dir(file)) })
		require.Equal(t, s.digest, digest(t, file), "another file than the one that is pinned: %s", file)
	}
}

// digest returns the SHA-256 of a file.
func digest(t *testing.T, file string) string {
	t.Helper()
	packed, err := os.ReadFile(file)
	require.NoError(t, err)
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:])
}

func (s source) putModule(t *testing.T, dir string) {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", s.module).Output()
	var got struct{ Dir, Sum, Error string }
	require.NoError(t, json.Unmarshal(out, &got), string(out))
	if err != nil {
		world.Lacks(t, s.module+" can't be fetched: "+got.Error)
	}
	require.Equal(t, s.sum, got.Sum, "another module than the one that is pinned")
	copyWritable(t, dir, got.Dir)
}

// copyWritable copies a folder of Go's cache, where files are read-only, and makes the copy writable.
func copyWritable(t *testing.T, dir, from string) {
	t.Helper()
	require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // the cache is read-only
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if d.IsDir() || strings.HasSuffix(path, ".sh") {
			mode = 0o755
		}
		return os.Chmod(path, mode)
	}))
}

// cached returns where a file is kept from one run to the next.
func cached(t *testing.T, name string) string {
	t.Helper()
	user, err := os.UserCacheDir()
	require.NoError(t, err)
	cache := filepath.Join(user, "pawl-test-real")
	require.NoError(t, os.MkdirAll(cache, 0o755))
	return filepath.Join(cache, name)
}

// debian returns the commands that fetch a file of a source package from the machine's own package server, even if no
// sources are configured.
func debian(t *testing.T, file, into string) []*exec.Cmd {
	t.Helper()
	targets, err := exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages").Output()
	if err != nil {
		world.Lacks(t, "there is no apt-get to fetch "+file+" with")
	}
	var list strings.Builder
	for target := range strings.Lines(string(targets)) {
		if strings.HasSuffix(target, " main\n") && strings.Contains(target, "/debian/ ") {
			list.WriteString("deb-src " + target)
		}
	}
	own := filepath.Join(into, "apt")
	require.NoError(t, os.MkdirAll(filepath.Join(own, "lists", "partial"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(own, "sources.list"), []byte(list.String()), 0o644))
	apt := func(args ...string) *exec.Cmd {
		c := exec.Command("apt-get", append([]string{
			"-o", "Dir::Etc::SourceList=" + filepath.Join(own, "sources.list"), "-o", "Dir::Etc::SourceParts=/dev/null",
			"-o", "Dir::State::Lists=" + filepath.Join(own, "lists"), "-o", "APT::Sandbox::User=",
		}, args...)...)
		c.Dir = into
		return c
	}
	name, _, _ := strings.Cut(file, "_")
	fetch := func() *exec.Cmd { return apt("source", "-qq", "--download-only", "--tar-only", name) }
	return []*exec.Cmd{apt("update", "-qq"), fetch(), fetch(), fetch()} // a mirror may have now what it did not have a moment ago
}

// unpack unpacks a folder of a file, "" for the whole file. If the file is missing, it runs the commands that fetch it,
// one after the other, until it is there.
func unpack(t *testing.T, dir, file, below string, fetch func() []*exec.Cmd) {
	t.Helper()
	if !exists(file) {
		var said []byte
		for _, c := range fetch() {
			if said, _ = c.CombinedOutput(); exists(file) {
				break
			}
		}
		if !exists(file) {
			world.Lacks(t, filepath.Base(file)+" can't be fetched: "+string(said))
		}
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	args := []string{"-xf", file, "-C", dir, "--strip-components=1", "--no-same-owner", "--no-same-permissions"}
	if below != "" {
		args = append(args[:4], "--strip-components=2", "package/"+below)
	}
	out, err := exec.Command("tar", args...).CombinedOutput()
	require.NoError(t, err, string(out))
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
