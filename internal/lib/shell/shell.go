// Package shell reads commands of a POSIX shell: it finds what their words refer to, as far as that is known before
// they run. It also quotes words, so that people can copy a command as it is shown. It runs nothing.
//
// Start reading at [Read].
package shell

import (
	"strings"

	"pawl/internal/lib/list"
)

// plain are the characters without a special meaning in any shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@%+=,-"

// Quote returns text as one word of the shell.
func Quote(text string) string {
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Join joins words to a command.
func Join(words ...string) string {
	return strings.Join(list.Map(words, Quote), " ")
}
