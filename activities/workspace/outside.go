package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"pawl/internal/exec/sandbox"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/ledger"
	"pawl/internal/loop"
)

// system lists folders of the machine where nothing in a loop can write, and whose updates change no contract.
var system = []string{"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/lib", "/usr/lib", "/dev/", "/proc/", "/sys/"}

// Outside returns seals for programs and files outside of the repository that commands of the spec name: by an
// absolute path, by a path from ~/, or by the name of a program, which is looked up in the PATH of the loop. It skips
// missing files. Of a folder it seals only the name.
func (ws *Workspace) Outside(names []string) ([]loop.Seal, error) {
	env, err := ws.Environment()
	if err != nil {
		return nil, err
	}
	sealed := map[string]loop.Seal{}
	for _, name := range names {
		path := Located(name, env)
		ofSystem := slices.ContainsFunc(system, func(dir string) bool { return strings.HasPrefix(path, dir) })
		if path == "" || ofSystem {
			continue
		}
		sum, err := ws.Machine.sums.of(path)
		if err != nil { // a file that this user can't read can't judge the work
			continue
		}
		sealed[path] = loop.Seal{Path: path, Blob: sum, Names: loop.SealOutside}
	}
	return slices.SortedFunc(maps.Values(sealed), func(a, b loop.Seal) int { return strings.Compare(a.Path, b.Path) }), nil
}

// Located returns where a program or file that a command names is on this host, "" if it does not exist.
func Located(name string, env []string) string {
	variables := sandbox.Values(env)
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if name = filepath.Join(variables["HOME"], rest); !filepath.IsAbs(name) {
			return ""
		}
	}
	if filepath.IsAbs(name) {
		return name
	}
	for _, dir := range filepath.SplitList(variables["PATH"]) {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil || !filepath.IsAbs(dir) {
			continue
		}
		if info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// inForce returns the contract in force, an empty one before there is one. A steward has none.
func (ws *Workspace) inForce(ctx context.Context) (c ledger.Contract, err error) {
	if ws.Steward() {
		return c, nil
	}
	head, err := ws.Objects.Ref(ctx, ws.Ledger)
	if err != nil || head == "" {
		return c, err
	}
	return ws.Book.Contract(ctx, head)
}

// evaluators returns the seals of programs, files and folders outside of the repository that judge the work. In a
// sandbox they can be read, but not written.
func evaluators(c ledger.Contract) []loop.Seal {
	return slices.DeleteFunc(slices.Clone(c.Sealed), func(s loop.Seal) bool { return s.Names != loop.SealOutside })
}

// Unaltered refuses if something outside of the repository that judges the work has changed since the contract.
func (ws *Workspace) Unaltered(ctx context.Context) error {
	contract, err := ws.inForce(ctx)
	if err != nil {
		return err
	}
	for _, seal := range evaluators(contract) {
		if sum, err := ws.Machine.sums.of(seal.Path); err != nil || sum != seal.Blob {
			return Refuse(fault.New(fault.PreconditionFailed, "%s, which is outside of the repository and judges the work, has changed since the contract was drawn up", git.Quote(seal.Path)).
				Advise("Restore the file, or start the loop again: the new contract will have the file as it is now."))
		}
	}
	return nil
}

// sums caches the SHA-256 of files until their status changes; nobody can set back the time of that.
type sums struct{ known sync.Map } // by path: a summed

// summed is the SHA-256 of a file, and everything that the system says about the file: device, inode, size and times.
type summed struct{ status, sum string }

// of returns the SHA-256 of a file, in hex, "" for something without content, such as a folder.
func (s *sums) of(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // otherwise opening a FIFO would wait
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() {
		return "", nil
	}
	status := fmt.Sprintf("%+v", st.Sys())
	if last, ok := s.known.Load(path); ok && last.(summed).status == status {
		return last.(summed).sum, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", git.Quote(path), err)
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	s.known.Store(path, summed{status, sum})
	return sum, nil
}

// LookUp finds a program on the PATH of an environment, "" if it does not exist. A name with a slash is a path. A
// relative path is returned as it is, because it is in a tree.
func LookUp(env []string, name string) string {
	if strings.Contains(name, "/") && !filepath.IsAbs(name) && !strings.HasPrefix(name, "~/") {
		return name
	}
	path := Located(name, env)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return ""
	}
	return path
}
