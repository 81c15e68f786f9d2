package transcript_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"pawl/internal/agent/adapter"
	"pawl/internal/agent/transcript"
)

func of(t *testing.T, use, text string) string {
	t.Helper()
	a, ok := adapter.Lookup(use)
	require.True(t, ok)
	s := a.Stream()
	var w transcript.Writer
	for _, line := range strings.SplitAfter(text, "\n") {
		w.Take(s.Feed([]byte(line)))
	}
	w.Take(s.Close())
	return string(w.Bytes())
}

// TestTranscriptsOfRecordedStreams has recorded output of each program.
func TestTranscriptsOfRecordedStreams(t *testing.T) {
	const said = "the agent\n   raise the number by one\n   \n   That should do.\n"
	for file, want := range map[string][]string{
		"claude-2.1.330":   {"session cf8760f9-d06f-4664-a8af-a0dbf9a55f88 claude-sonnet-4-5", "tool 1: Read\n   file_path: /home/u/w/c1/home/loops/c1/desk/desk/n\nresult of tool 1\n   1\t10\n", "tool 2: Edit\n", "new_string: 11\n   old_string: 10\n", said},
		"codex-0.169.0":    {"session 01a200b8", "tool 1: command_execution\n   /bin/bash -lc 'cat work/n'\nresult of tool 1\n   10\n", "tool 2: file_change\n   [{\"path\":", said},
		"gemini-0.61.0":    {"session b508168c-12fa-477d-abb0-965ed97c440b gemini-2.5-pro", "tool 1: read_file\n   file_path: ", "result of tool 1\n", "tool 2: replace\n", "new_string: 11\n", said},
		"opencode-1.18.33": {"tool 1: read\n   filePath: /home/u/direct/desk/n\n", "result of tool 1\n   <path>/home/u/direct/desk/n</path>\n   <type>file</type>\n", said},
		"pi-0.73.1":        {"tool 1: read\n   filePath: /home/u/direct/desk/n\n", "result of tool 1\n   10\n", "result of tool 2\n   Successfully replaced 1 block(s)", said},
		"qwen-0.24.4":      {"tool 1: read_file\n", "tool 2: edit\n", said},
	} {
		t.Run(file, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("..", "adapter", "testdata", file+".jsonl"))
			require.NoError(t, err)
			use, _, _ := strings.Cut(file, "-")
			got := of(t, use, string(b))
			at := 0
			for _, part := range want {
				i := strings.Index(got[at:], part)
				require.GreaterOrEqual(t, i, 0, "%q is not in, or not in its place:\n%s", part, got)
				at += i
			}
			require.Equal(t, 1, strings.Count(got, "raise the number by one"), "it is said once")
			require.Equal(t, 2, strings.Count(got, "\ntool "))
			require.Equal(t, 2, strings.Count(got, "\nresult of "))
		})
	}
}

// TestATranscriptIsBounded has a call that never ends. The beginning and the end must be there, and a line about what
// was left out.
func TestATranscriptIsBounded(t *testing.T) {
	var w transcript.Writer
	w.Prompt(strings.Repeat("prompt ", 10000), "/f/prompt.md")
	const calls = 5000
	for i := range calls {
		id := fmt.Sprint("c", i)
		w.Take([]adapter.Event{
			{Kind: adapter.ToolCall, Tool: "Bash"}, {Kind: adapter.Asked, Call: id, Tool: "Bash", Text: fmt.Sprintf(`{"command":"echo %d"}`, i)},
			{Kind: adapter.Answered, Call: id, Text: strings.Repeat("a result\n", 1000)},
		})
	}
	w.Note("ended: ok", "")
	got := string(w.Bytes())
	require.Less(t, len(got), transcript.Bound+512)
	require.Greater(t, len(got), transcript.Bound*8/10)
	require.True(t, utf8.ValidString(got))
	require.Contains(t, got, "prompt; all of it is in /f/prompt.md\n")
	require.Contains(t, got, "command: echo 0\n")
	require.Contains(t, got, "command: echo 4999\n")
	require.NotContains(t, got, "command: echo 2500\n")
	require.Regexp(t, `… left out here, because a transcript has at most 256 kB: \d+ of 10002 entries, about \d+ kB …`, got)
	require.True(t, strings.HasSuffix(got, "ended: ok\n"))

	var escapes transcript.Writer
	for range 1000 {
		escapes.Note("x", strings.Repeat("\x1b\u00ad\u200b\xff\n", 1000))
	}
	require.Less(t, len(escapes.Bytes()), transcript.Bound+512)

	var one transcript.Writer
	one.Printed(strings.Repeat("x", 1<<20) + "\n" + strings.Repeat("line\n", 100000) + "last\n")
	got = string(one.Bytes())
	require.Less(t, len(got), transcript.Bound+512)
	require.True(t, strings.HasPrefix(got, "the program\n   xxx"))
	require.True(t, strings.HasSuffix(got, "   last\n"))
}

// TestNothingSecretOrUnseenIsInATranscript has credentials in everything that an agent says, also where the text is
// cut, and characters that a terminal would interpret.
func TestNothingSecretOrUnseenIsInATranscript(t *testing.T) {
	token := "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
	var w transcript.Writer
	w.Prompt("use "+token, "/f")
	w.Take([]adapter.Event{
		{Kind: adapter.Text, Text: "I found " + token},
		{Kind: adapter.Asked, Call: "1", Tool: "Bash", Text: `{"command":"curl -H 'Authorization: Bearer ` + token + `'\necho ` + token + `"}`},
		{Kind: adapter.Asked, Call: "2", Tool: "Write", Text: `{"content":"a\n` + token + `\nb` + strings.Repeat("x ", 10000)}, // cut
		{Kind: adapter.Answered, Call: "1", Text: strings.Repeat("y", 570) + " " + token + " z"},
		{Kind: adapter.Answered, Call: "2", Text: "\x1b]0;title\a\u202eevil\rover", Failed: true},
		{Kind: adapter.Aside, Text: token},
		{Kind: adapter.Ended, End: &adapter.End{Failure: "no " + token}},
	})
	w.Printed(token)
	w.Note("the end of what it wrote to stderr", token)
	got := string(w.Bytes())
	require.NotContains(t, got, "16C7e42F", got)
	require.GreaterOrEqual(t, strings.Count(got, "[a GitHub token]"), 8, got)
	require.Contains(t, got, "result of tool 2, which failed\n   \\u{1b}]0;title\\u{7}\\u{202e}evil\\rover\n")
}

// TestWordsThatComeInPiecesAreOne has a program that each time sends everything that it has said so far, and a tool
// whose input it never reports.
func TestWordsThatComeInPiecesAreOne(t *testing.T) {
	var w transcript.Writer
	w.Take([]adapter.Event{
		{Kind: adapter.Text, Text: "raise"}, {Kind: adapter.Usage}, {Kind: adapter.Text, Text: "raise it"}, {Kind: adapter.Text, Text: "Done."},
		{Kind: adapter.ToolCall, Tool: "look"}, {Kind: adapter.Answered, Call: "9", Text: "seen"},
	})
	require.Equal(t, "the agent\n   raise it\nthe agent\n   Done.\nresult of a tool\n   seen\ntool look, whose input the program does not report\n", string(w.Bytes()))
}

func FuzzTranscript(f *testing.F) {
	f.Add("claude", `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"x","input":{"a":1}}]}}`)
	f.Fuzz(func(t *testing.T, use, text string) {
		if a, ok := adapter.Lookup(use); !ok || !a.Streams() {
			return
		}
		got := of(t, use, text)
		require.True(t, utf8.ValidString(got))
		require.NotContains(t, got, "\x1b")
	})
}
