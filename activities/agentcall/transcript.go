package agentcall

import (
	"crypto/sha256"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"pawl/activities/command"
	"pawl/activities/workspace"
	"pawl/internal/agent/transcript"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/text/visible"
	"pawl/internal/loop/api"
)

// transcribe writes the transcript of a call into the step's folder and returns its SHA-256. The transcript includes
// attempts that were lost with their worker.
func transcribe(w *command.Work, e *Exchange, input api.Call, out api.Called) (string, error) {
	var t transcript.Writer
	title := fmt.Sprintf("iteration %d, attempt %d", input.Key.Iteration, input.Key.Attempt)
	if input.Candidate > 0 { // any later iteration may take the candidate
		title = fmt.Sprintf("candidate %d", input.Key.Iteration)
	}
	t.Note(fmt.Sprintf("%s, phase %s: %s, called as %s", title, input.Phase, input.Role, visible.Clean(e.label)), "")
	prompt := filepath.Join(w.Dir, "prompt.md")
	asked, err := workspace.ReadFile(prompt, transcript.Bound)
	if err != nil {
		return "", fmt.Errorf("reading the prompt: %w", err)
	}
	t.Prompt(string(asked), prompt)
	if e.call != nil {
		err = e.call.retell(&t)
	} else if said, unread := workspace.ReadFile(filepath.Join(w.Dir, "stdout"), workspace.MaxOutput); unread != nil {
		err = unread
	} else {
		t.Printed(string(said))
	}
	if err != nil {
		return "", fmt.Errorf("reading what the agent said: %w", err)
	}
	complaint, _ := workspace.ReadTail(filepath.Join(w.Dir, "stderr"), complaintLength)
	if _, whole, cut := strings.Cut(string(complaint), "\n"); cut && len(complaint) == complaintLength {
		complaint = []byte(whole)
	}
	if text := strings.TrimSpace(string(complaint)); text != "" {
		t.Note("the end of what it wrote to stderr", text)
	}
	ending := out.Ending()
	if out.Class != "" {
		ending = fmt.Sprintf("%s (%s)", ending, out.Class)
	}
	u := out.Usage
	t.Note("ended: "+visible.Clean(ending), "")
	t.Note(fmt.Sprintf("usage: tool calls %d, tokens in %d, out %d, $%s, %d.%01d s", u.ToolCalls, u.InputTokens, u.OutputTokens, u.CostUSD, out.ElapsedMs/1000, out.ElapsedMs/100%10), "")
	text := t.Bytes()
	if err := durable.WriteCache(filepath.Join(w.Dir, api.TranscriptFile), text); err != nil {
		return "", fmt.Errorf("writing the transcript: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), nil
}

// complaintLength is how many bytes of an agent's stderr are in its transcript.
const complaintLength = 4 << 10

// retell reads the output of all attempts.
func (c *call) retell(t *transcript.Writer) error {
	for i, file := range append(slices.Clone(c.lost), c.file) {
		if i > 0 {
			t.Note("the worker died here, and the call was made again", "")
		}
		replay := call{stream: c.adapter.Stream(), take: t.Take}
		// All of it: the line that says what was cut makes a file longer than what is followed.
		if err := workspace.ReadFrom(file, 0, math.MaxInt64, &replay); err != nil {
			return err
		}
		t.Take(replay.stream.Close())
	}
	return nil
}
