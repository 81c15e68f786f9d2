package real_test

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

	"pawl/test/world"
)

// source is a repository as its package manager has it, pinned by version and digest.
type source struct {
	module, sum string   // of a Go module: path@version, and the sum that go.sum would have
	npm         string   // an npm package: name@version
	debian      string   // a file of a Debian source package: name_version.orig.tar.gz
	digest      string   // the SHA-256 of the file that npm or Debian has
	below       string   // the folder in it that is the repository
	needs       []string // programs, and what is somewhere
	slow        bool     // what its loops run takes long
	without     string   // what is changed because these machines lack what it is for
	offline     string   // what is changed besides for its loops, since what it needs can't be fetched
	unfit       string   // what validate says of it, where it can have no loop
	improve     *improvement
	deliver     *delivery
}

// available skips the test where something is missing that the source needs.
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

// put writes the repository of a source into a folder. Without the package manager, or without a
// network, the test is skipped.
func (s source) put(t *testing.T, dir string) {
	t.Helper()
	s.available(t)
	switch {
	case s.module != "":
		s.putModule(t, dir)
	case s.npm != "":
		file := cached(t, strings.NewReplacer("@", "-", "/", "-").Replace(s.npm)+".tgz")
		unpack(t, dir, file, s.below, exec.Command("npm", "pack", "--silent", "--pack-destination", filepath.Dir(file), s.npm))
		require.Equal(t, s.digest, digest(t, file), "another file than the one that is pinned: %s", file)
	default:
		file := cached(t, s.debian)
		unpack(t, dir, file, s.below, debian(t, s.debian, filepath.Dir(file))...)
		require.Equal(t, s.digest, digest(t, file), "another file than the one that is pinned: %s", file)
	}
}

// digest is the SHA-256 of a file.
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

// copyWritable copies a folder of Go's cache, in which nothing may be written.
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

// cached is where a file is kept from one run to the next.
func cached(t *testing.T, name string) string {
	t.Helper()
	user, err := os.UserCacheDir()
	require.NoError(t, err)
	cache := filepath.Join(user, "pawl-test-real")
	require.NoError(t, os.MkdirAll(cache, 0o755))
	return filepath.Join(cache, name)
}

// debian are the commands that fetch a file of a source package from where this machine has its packages from,
// whether or not it has been told that there are sources.
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
	return []*exec.Cmd{apt("update", "-qq"), fetch(), fetch(), fetch()} // a mirror may have what it did not have a moment ago
}

// unpack unpacks a folder of a file, "" for all of it. Where the file is not there yet, the commands fetch it, one
// after the other until it is.
func unpack(t *testing.T, dir, file, below string, fetch ...*exec.Cmd) {
	t.Helper()
	var said []byte
	for _, c := range fetch {
		if _, err := os.Stat(file); err == nil {
			break
		}
		said, _ = c.CombinedOutput()
	}
	if _, err := os.Stat(file); err != nil {
		world.Lacks(t, filepath.Base(file)+" can't be fetched: "+string(said))
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	args := []string{"-xf", file, "-C", dir, "--strip-components=1", "--no-same-owner", "--no-same-permissions"}
	if below != "" {
		args = append(args[:4], "--strip-components=2", "package/"+below)
	}
	out, err := exec.Command("tar", args...).CombinedOutput()
	require.NoError(t, err, string(out))
}
