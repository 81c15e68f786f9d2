package hosted

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/ledger"
	"pawl/internal/loop"
)

// system are folders whose programs come with the machine. Nothing of a loop can write there, and an update of the
// machine does not change what was agreed on.
var system = []string{"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/lib", "/usr/lib", "/dev/", "/proc/", "/sys/"}

// Outside seals programs and files outside of the repository that commands of the spec name: by an absolute path, by a
// path from ~/, or by the name of a program, which is looked up in the PATH of the loop. Missing files are not sealed,
// and of a folder only the name is.
func (ws *Workspace) Outside(names []string) ([]loop.Seal, error) {
	env, err := ws.Environment()
	if err != nil {
		return nil, err
	}
	sealed := map[string]loop.Seal{}
	for _, name := range names {
		at := Located(name, env)
		if at == "" || slices.ContainsFunc(system, func(dir string) bool { return strings.HasPrefix(at, dir) }) {
			continue
		}
		sum, err := ws.Machine.sums.of(at)
		switch {
		case errors.Is(err, errNoFile):
		case err != nil: // whoever may not read it can't be judged by it
			continue
		}
		sealed[at] = loop.Seal{Path: at, Blob: sum, Names: loop.SealOutside}
	}
	return slices.SortedFunc(maps.Values(sealed), func(a, b loop.Seal) int { return strings.Compare(a.Path, b.Path) }), nil
}

// Located is where a name of a command is on this host, "" where it is nowhere.
func Located(name string, env []string) string {
	variable := func(name string) (value string) {
		for _, kv := range env {
			if rest, ok := strings.CutPrefix(kv, name+"="); ok {
				value = rest
			}
		}
		return value
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if name = filepath.Join(variable("HOME"), rest); !filepath.IsAbs(name) {
			return ""
		}
	}
	if filepath.IsAbs(name) {
		return name
	}
	for _, dir := range filepath.SplitList(variable("PATH")) {
		at := filepath.Join(dir, name)
		if st, err := os.Stat(at); filepath.IsAbs(dir) && err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return at
		}
	}
	return ""
}

// inForce is the contract in force, an empty one before there is one. A steward has none.
func (ws *Workspace) inForce(ctx context.Context) (c ledger.Contract, err error) {
	if ws.Steward() {
		return c, nil
	}
	at, err := ws.Objects.Ref(ctx, ws.Ledger)
	if err != nil || at == "" {
		return c, err
	}
	return ws.Book.Contract(ctx, at)
}

// evaluators are the programs, files and folders outside of the repository that judge the work, as a contract
// has them. In a sandbox they can be read and not written.
func evaluators(c ledger.Contract) []loop.Seal {
	return slices.DeleteFunc(slices.Clone(c.Sealed), func(s loop.Seal) bool { return s.Names != loop.SealOutside })
}

// Unaltered refuses to judge by what is not what was approved: a program or a file outside of the repository
// that commands name, and that has changed since.
func (ws *Workspace) Unaltered(ctx context.Context) error {
	contract, err := ws.inForce(ctx)
	if err != nil {
		return err
	}
	for _, seal := range evaluators(contract) {
		if sum, err := ws.Machine.sums.of(seal.Path); err != nil && !errors.Is(err, errNoFile) || sum != seal.Blob {
			return Refuse(fault.New(fault.PreconditionFailed, "%s, which is outside of the repository and judges the work, has changed since the contract was drawn up", git.Quote(seal.Path)).
				Advise("Restore the file, or start the loop again: the new contract will have the file as it is now."))
		}
	}
	return nil
}

// errNoFile is of what has no content that could be summed up, as a folder.
var errNoFile = errors.New("no regular file")

// sums are the SHA-256 of files, taken once for as long as nothing about a file changes: nobody can set the
// time of its last change of status back.
type sums struct {
	mu    sync.Mutex
	known map[string][2]string // by path: what the file is, and its sum
}

// of returns the SHA-256 of a file, in hex: fs.ErrNotExist where there is none, errNoFile with "" where it is
// none.
func (s *sums) of(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // which a FIFO would keep waiting
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() {
		return "", errNoFile
	}
	is := identity(st)
	s.mu.Lock()
	known := s.known[path]
	s.mu.Unlock()
	if known[0] == is {
		return known[1], nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", git.Quote(path), err)
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string][2]string{}
	}
	s.known[path] = [2]string{is, sum}
	return sum, nil
}

// identity is all that the system says of a file: device, inode, size and times.
func identity(st fs.FileInfo) string { return fmt.Sprintf("%+v", st.Sys()) }
