package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/lib/fsutil/dirfd"
)

const copyBuffer = 64 << 10

// Kept returns the start and the end of a stream from its file with the default limit, and how many bytes between them
// were left out. Nothing but [Omission] makes a file larger than the limit.
func Kept(file []byte) (head, tail []byte, lost int64) {
	const start = DefaultOutputLimit / 4
	if len(file) <= DefaultOutputLimit {
		return file, nil, 0
	}
	head = file[:start]
	tail = file[len(file)-(DefaultOutputLimit-start):]
	line := strings.TrimPrefix(string(file[start:len(file)-len(tail)]), "\n")
	if _, err := fmt.Sscanf(line, Omission, &lost); err != nil {
		return file, nil, 0
	}
	return head, tail, lost
}

// Omission is the line that stands for bytes that were left out of an output file. It begins on a new line; the text
// after it may begin in the middle of a line.
const Omission = "[pawl: %d bytes left out here]\n"

// capture copies one stream from its pipe into a file of limited size.
//
// The file fills up to the limit. From then on, the part after the head is used as a ring, in the file itself. So
// memory is needed only once, at the end, to put the ring in order. If even the supervisor is killed, everything that
// was kept is in the file.
type capture struct {
	pipe  *os.File
	file  *os.File // nil: bytes are counted and dropped
	head  int64    // bytes at the start that are never overwritten
	ring  int64    // bytes after the head that are overwritten in turn
	total int64    // bytes seen; read it after done
	err   error    // the first write error; read it after done
	find  *finder  // nil: nothing is looked for
	done  chan struct{}
}

// newCapture starts copying and returns the command's end of the pipe.
func newCapture(path string, limit int64, buffer []byte, find *finder) (*capture, *os.File, error) {
	c := &capture{head: limit / 4, ring: limit - limit/4, done: make(chan struct{}), find: find}
	var err error
	if path != "" && path != os.DevNull {
		if c.file, err = createOutput(path); err != nil {
			return nil, nil, err
		}
	}
	var ends [2]int
	if err := unix.Pipe(ends[:]); err != nil {
		if c.file != nil {
			c.file.Close()
		}
		return nil, nil, fmt.Errorf("output pipe: %w", err)
	}
	// Nothing else forks in the supervisor, so this is early enough. Only our end is non-blocking; the command gets an
	// ordinary pipe.
	unix.CloseOnExec(ends[0])
	unix.CloseOnExec(ends[1])
	_ = unix.SetNonblock(ends[0], true)
	c.pipe = os.NewFile(uintptr(ends[0]), "output")
	go c.copy(buffer)
	return c, os.NewFile(uintptr(ends[1]), "output"), nil
}

func createOutput(path string) (*os.File, error) {
	// Open for reading too, because unroll reads. Opening a FIFO this way does not wait for a reader.
	f, err := os.OpenFile(dirfd.At(path), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("output file: %w", dirfd.Named(err, path))
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err == nil && info.Mode().Perm() != 0o600 {
		err = f.Chmod(0o600)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("output file: %w", err)
	}
	return f, nil
}

// copy reads to the end even if writing fails, because the command must not block.
func (c *capture) copy(buffer []byte) {
	defer close(c.done)
	defer c.pipe.Close()
	for {
		n, err := c.pipe.Read(buffer)
		if c.find != nil {
			c.find.search(buffer[:n])
		}
		c.write(buffer[:n])
		if err != nil {
			return
		}
	}
}

// at returns the file offset of byte n of the stream.
func (c *capture) at(n int64) int64 {
	if n < c.head {
		return n
	}
	return c.head + (n-c.head)%c.ring
}

func (c *capture) write(data []byte) {
	for len(data) > 0 {
		offset := c.at(c.total)
		chunk := data[:min(int64(len(data)), c.head+c.ring-offset)]
		if c.file != nil && c.err == nil {
			_, c.err = c.file.WriteAt(chunk, offset)
		}
		c.total += int64(len(chunk))
		data = data[len(chunk):]
	}
}

// finish waits for the end of the stream, which comes soon because its writers are dead, and completes the file.
func (c *capture) finish(limit time.Duration) error {
	_ = c.pipe.SetReadDeadline(time.Now().Add(limit))
	<-c.done
	if c.file == nil {
		return nil
	}
	if c.err == nil && c.total > c.head+c.ring {
		c.err = c.unroll()
	}
	if c.err == nil && c.find != nil {
		c.find.endLine()
		c.err = os.WriteFile(dirfd.At(c.file.Name()+FoundSuffix), c.find.found, 0o600)
	}
	if err := errors.Join(c.err, c.file.Close()); err != nil {
		return fmt.Errorf("output file: %w", err)
	}
	return nil
}

// unroll puts the ring in order, behind the line that says what was overwritten.
func (c *capture) unroll() error {
	limit := c.head + c.ring
	line := fmt.Sprintf(Omission, c.total-limit)
	if c.head > 0 {
		last := make([]byte, 1)
		if _, err := c.file.ReadAt(last, c.head-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = "\n" + line
		}
	}
	rest := make([]byte, int64(len(line))+c.ring)
	copy(rest, line)
	oldest := c.at(c.total)
	ring := io.MultiReader(io.NewSectionReader(c.file, oldest, limit-oldest), io.NewSectionReader(c.file, c.head, oldest-c.head))
	if _, err := io.ReadFull(ring, rest[len(line):]); err != nil {
		return err
	}
	_, err := c.file.WriteAt(rest, c.head)
	return err
}
