package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// pipePatience is how long to wait for content from a pipe that is given as a file.
const pipePatience = 10 * time.Second

// readFile reads a file of at most that many bytes. The file may be a pipe, such as a shell makes for <(…). Then
// readFile does not wait for ever, because nobody may ever write to it.
func readFile(path string, limit int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Type() != fs.ModeNamedPipe {
		return bounded(f, path, limit)
	}
	end := time.Now().Add(pipePatience)
	if err := f.SetReadDeadline(end); err != nil {
		return nil, err
	}
	for {
		text, err := bounded(f, path, limit)
		switch {
		case err == nil && len(text) == 0 && time.Now().Before(end):
			time.Sleep(10 * time.Millisecond) // no writer yet; open would wait for one without end
		case err == nil && len(text) == 0, errors.Is(err, os.ErrDeadlineExceeded):
			return nil, fmt.Errorf("%s is a pipe, and nothing was written to it for %v", path, pipePatience)
		default:
			return text, err
		}
	}
}

func bounded(r io.Reader, path string, limit int) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(text) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return text, err
}
