// Package markdown puts text that others wrote into Markdown so that it is shown as it is: nothing in it becomes a
// heading, a link, a picture, HTML, a column or the end of a block. Pure. Start at Text.
package markdown

import (
	"strings"

	"pawl/internal/lazyregexp"
	"pawl/internal/visible"
)

// Text is a text on one line, for a paragraph, an item of a list or a cell of a table. What readers would
// make a link of by itself is code.
func Text(text string) string {
	words := strings.Split(visible.Clean(text), " ")
	for i, word := range words {
		if linked.MatchString(word) {
			words[i] = unlinked(word)
		} else {
			words[i] = escape.Replace(word)
		}
	}
	line := strings.Join(words, " ")
	if m := block.FindStringSubmatchIndex(line); m != nil {
		at := max(m[2], m[4])
		line = line[:at] + `\` + line[at:]
	}
	return line
}

var (
	linked = lazyregexp.New(`(?i)://|www\.|mailto:|xmpp:|@`)
	escape = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`,
		"#", `\#`, "|", `\|`, "~", `\~`, "&", `\&`, "!", `\!`, "$", `\$`)
	// block is what begins a block at the start of a line: a list, a line under a heading, a fence.
	block = lazyregexp.New(`^(?:\d{1,9}([.)])|([-+=:]))`)
	// apart are characters that code in a table could not have as they are.
	apart = lazyregexp.New("[`|\\\\]+")
)

// unlinked is a word as code, but for what code can't have.
func unlinked(word string) string {
	var b strings.Builder
	at := 0
	for _, m := range append(apart.FindAllStringIndex(word, -1), []int{len(word), len(word)}) {
		if at < m[0] {
			b.WriteString("`" + word[at:m[0]] + "`")
		}
		b.WriteString(escape.Replace(word[m[0]:m[1]]))
		at = m[1]
	}
	return b.String()
}

// Code is a text on one line as code, outside of tables. Its fence is longer than any in the text.
func Code(text string) string {
	text = visible.Clean(text)
	if text == "" {
		return ""
	}
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		text = " " + text + " "
	}
	return fence + text + fence
}

// CodeCell is Code for a cell of a table, where a bar has to be escaped even in code. Where that is not
// possible, it is a text.
func CodeCell(text string) string {
	if strings.Contains(text, `\|`) || strings.HasSuffix(text, `\`) {
		return Text(text)
	}
	return strings.ReplaceAll(Code(text), "|", `\|`)
}

// Block is a text of several lines as it is. Nothing in it can end it.
func Block(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	var b strings.Builder
	b.WriteString(fence + "text\n")
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString(visible.Line(strings.TrimSuffix(line, "\r"), nil) + "\n")
	}
	return b.String() + fence
}
