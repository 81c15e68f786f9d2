package cli_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// TestA7_WhatIsApprovedIsWhatIsSeen has a change with many new files and with characters that can't be seen.
func TestA7_WhatIsApprovedIsWhatIsSeen(t *testing.T) {
	w := world.New(t, world.Raises+`
		for i in $(seq 71); do printf 'file %d begins\n\tindented\n' $i >work/new$i; done
		printf 'a\342\200\213b\342\200\256c\r\n' >work/zz; printf '\033[2Kx\n' >work/zy; chmod +x work/other`).
		Set(doc{"newFiles": "ask", "limits": doc{"iterations": 1}, "approvals": doc{"diff": "required"}})
	c := atTerminal(w, "run", "--yes", w.SpecFile())
	const question = "Approve this change? d: show it; y: approve; n: reject; Enter: later "
	c.sees(question)
	for _, text := range []string{"73 new files: work/new1, ", " more (raise the number)", "work/new71", "file 71 begins", "work/zz", `6 bytes  \u{1b}[2Kx`, "  M  mode +x       work/other"} {
		require.Contains(t, c.screen(), text)
	}
	gate := w.Show().Gate
	whole := w.Done("diff", w.Loop).Out
	sum := sha256.Sum256([]byte(whole))
	require.Equal(t, gate.Hash, hex.EncodeToString(sum[:]), "a program gets what is approved, byte for byte")
	require.Contains(t, w.Done("diff", "--stat", w.Loop).Out, "files 75, ")

	c.types("d\n")
	c.sees("-- line 38 of ")
	c.types("\n")
	c.sees("-- line 76 of ")
	c.types("q\n")
	c.seesTimes(question, 2)
	c.types("y\n")
	c.sees("ff, merge or squash: approve and apply it that way; n: reject (ends the loop); Enter: later ")
	c.types("later\n")
	c.sees("is no answer to this")

	w.Env = append(w.Env, "PAGER=sed 's/^/| /'")
	look := atTerminal(w, "diff", w.Loop)
	look.exits(0)
	shown := strings.ReplaceAll(look.screen(), "\r\n", "\n")
	require.Contains(t, shown, "| \x1b[32m+\tindented\x1b[0m\n", "as it is, in colour, through the pager")
	require.Contains(t, shown, "+a\x1b[7m\\u{200b}\x1b[0m\x1b[32mb\x1b[7m\\u{202e}\x1b[0m\x1b[32mc\x1b[7m\\r\x1b[0m")

	c.types("n\n")
	c.sees("Why? (for the record; Enter: no reason) ")
	c.types("\n")
	c.exits(0)
	require.Contains(t, c.screen(), "rejected by root")
}
