package real_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
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
	module, sum string // of a Go module: path@version, and the sum that go.sum would have
	npm, digest string // of an npm package: name@version, and the SHA-256 of its file
	below       string // the folder in it that is the repository
	needs       []string
	improve     *improvement
	deliver     *delivery
}

// put writes the repository of a source into a folder. Without the package manager, or without a
// network, the test is skipped.
func (s source) put(t *testing.T, dir string) {
	t.Helper()
	for _, tool := range s.needs {
		if _, err := exec.LookPath(tool); err != nil {
			world.Lacks(t, "there is no "+tool)
		}
	}
	if s.module != "" {
		s.putModule(t, dir)
		return
	}
	s.putPackage(t, dir)
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
	require.NoError(t, os.CopyFS(dir, os.DirFS(got.Dir)))
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

func (s source) putPackage(t *testing.T, dir string) {
	t.Helper()
	user, err := os.UserCacheDir()
	require.NoError(t, err)
	cache := filepath.Join(user, "pawl-test-real")
	require.NoError(t, os.MkdirAll(cache, 0o755))
	file := filepath.Join(cache, strings.NewReplacer("@", "-", "/", "-").Replace(s.npm)+".tgz")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if out, err := exec.Command("npm", "pack", "--silent", "--pack-destination", cache, s.npm).CombinedOutput(); err != nil {
			world.Lacks(t, s.npm+" can't be fetched: "+string(out))
		}
	}
	packed, err := os.ReadFile(file)
	require.NoError(t, err)
	digest := sha256.Sum256(packed)
	require.Equal(t, s.digest, hex.EncodeToString(digest[:]), "another package than the one that is pinned: %s", file)
	z, err := gzip.NewReader(strings.NewReader(string(packed)))
	require.NoError(t, err)
	under := filepath.Join("package", s.below)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		name, err := filepath.Rel(under, filepath.Clean(h.Name))
		if err != nil || !filepath.IsLocal(name) || h.Typeflag != tar.TypeReg {
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
		require.NoError(t, err)
		_, err = io.Copy(f, r)
		require.NoError(t, errors.Join(err, f.Close()))
	}
}
