package calls

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pawl/activities/hosted"
	"pawl/activities/steps"
	"pawl/internal/act"
	"pawl/internal/agent/stream"
	"pawl/internal/agent/transcript"
	"pawl/internal/durable"
	"pawl/internal/held"
	"pawl/internal/visible"
)

// transcribe writes the transcript of a call into the step's folder and returns its SHA-256. The transcript includes
// attempts that were lost with their worker.
func transcribe(w *steps.Work, e *Exchange, in act.Call, out act.Called) (string, error) {
	var t transcript.Writer
	of := fmt.Sprintf("iteration %d, attempt %d", in.Key.Iteration, in.Key.Attempt)
	if in.Candidate > 0 { // any later iteration may take the candidate
		of = fmt.Sprintf("candidate %d", in.Key.Iteration)
	}
	t.Note(fmt.Sprintf("%s, phase %s: %s, called as %s", of, in.Phase, in.Role, visible.Clean(e.label)), "")
	prompt := filepath.Join(w.Dir, "prompt.md")
	asked, err := hosted.ReadFile(prompt, transcript.Bound)
	if err != nil {
		return "", fmt.Errorf("reading the prompt: %w", err)
	}
	t.Prompt(string(asked), prompt)
	if e.call != nil {
		err = e.call.retell(&t)
	} else if said, unread := hosted.ReadFile(filepath.Join(w.Dir, "stdout"), hosted.MaxOutput); unread != nil {
		err = unread
	} else {
		t.Printed(string(said))
	}
	if err != nil {
		return "", fmt.Errorf("reading what the agent said: %w", err)
	}
	complaint, _ := hosted.ReadTail(filepath.Join(w.Dir, "stderr"), complaintLength)
	if _, whole, cut := strings.Cut(string(complaint), "\n"); cut && len(complaint) == complaintLength {
		complaint = []byte(whole)
	}
	if text := strings.TrimSpace(string(complaint)); text != "" {
		t.Note("the end of what it wrote to stderr", text)
	}
	how := out.Ending()
	if out.Class != "" {
		how = fmt.Sprintf("%s (%s)", how, out.Class)
	}
	u := out.Usage
	t.Note("ended: "+visible.Clean(how), "")
	t.Note(fmt.Sprintf("usage: tool calls %d, tokens in %d, out %d, $%s, %d.%01d s", u.ToolCalls, u.InputTokens, u.OutputTokens, u.CostUSD, out.ElapsedMs/1000, out.ElapsedMs/100%10), "")
	text := t.Bytes()
	if err := durable.WriteCache(filepath.Join(w.Dir, act.TranscriptFile), text); err != nil {
		return "", fmt.Errorf("writing the transcript: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), nil
}

// complaintLength is how many bytes of an agent's stderr are in its transcript.
const complaintLength = 4 << 10

// retell reads the output of all attempts.
func (c *call) retell(t *transcript.Writer) error {
	for _, file := range c.lost {
		if err := retell(t, c.adapter.Stream(), file); err != nil {
			return err
		}
		t.Note("the worker died here, and the call was made again", "")
	}
	return retell(t, c.adapter.Stream(), c.file)
}

// retell reads a file with the output of a program in a call.
func retell(t *transcript.Writer, s *stream.Stream, file string) error {
	f, err := os.Open(held.At(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the program could not be started
	}
	if err != nil {
		return err
	}
	defer f.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := f.Read(buffer)
		t.Take(s.Feed(buffer[:n]))
		if errors.Is(err, io.EOF) {
			t.Take(s.Close())
			return nil
		}
		if err != nil {
			return err
		}
	}
}
