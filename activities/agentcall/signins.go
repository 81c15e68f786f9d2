package agentcall

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/spec/agents"
)

// signIns are those of the user's sign-in files that can hold more than a sign-in, for example a command that the
// program runs, as they were before the call. The program can write them, so that a renewed sign-in reaches the user.
// Nothing else that it writes there stays (E6).
type signIns struct {
	before map[string][]byte // by path; nil if the file did not exist
	file   string            // where the contents are kept until the call has ended, beside its output
}

// signedIn reads the sign-ins of programs whose home is at a path. If an earlier attempt was lost in the middle, it
// returns them as they were before that attempt.
func signedIn(programs []agents.Program, home, stdout string) (signIns, error) {
	s := signIns{before: map[string][]byte{}, file: filepath.Join(filepath.Dir(stdout), "signins.json")}
	switch err := durable.ReadJSON(s.file, &s.before); {
	case err == nil:
		return s, nil
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, durable.ErrTorn):
		return s, fmt.Errorf("reading the sign-ins of before: %w", err)
	}
	for _, p := range programs {
		if m := p.Metering.ByModel; m != nil {
			path := filepath.Join(home, m.Accounts)
			text, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return s, fmt.Errorf("reading a sign-in: %w", err)
			}
			s.before[path] = text
		}
	}
	if len(s.before) == 0 {
		return s, nil
	}
	return s, durable.WriteJSON(s.file, s.before)
}

// check restores the files in which something else than a renewed sign-in was written, with a warning for each.
func (s signIns) check() (warnings []string, err error) {
	for path, original := range s.before {
		current, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return warnings, fmt.Errorf("reading a sign-in: %w", err)
		}
		if agents.Renewed(original, current) {
			continue
		}
		if original == nil {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, original, 0o600)
		}
		if err != nil {
			return warnings, fmt.Errorf("putting a sign-in back: %w", err)
		}
		warnings = append(warnings, "while the agent worked, something other than a renewed sign-in was written to "+path+"; pawl has restored the file. If you wrote it, sign in again")
	}
	if err := os.Remove(s.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return warnings, err
	}
	return warnings, nil
}
