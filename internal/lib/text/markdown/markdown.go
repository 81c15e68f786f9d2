// Package markdown puts text that others wrote into Markdown so that it appears unchanged: nothing in it becomes a
// heading, a link, a picture, HTML, a column or the end of a block. Pure. Start at Text.
package markdown

import (
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
	"pawl/internal/lib/text/visible"
)

// Text returns a text on one line, for a paragraph, a list item or a table cell. Words that readers would make a link
// of become code.
func Text(text string) string {
	words := strings.Split(visible.Clean(text), " ")
	for i, word := range words {
		if strings.ContainsAny(word, ":.@") && linked().MatchString(word) { // the expression is slow, and most words have none of these
			words[i] = unlinked(word)
		} else {
			words[i] = escape.Replace(word)
		}
	}
	line := strings.Join(words, " ")
	if m := block().FindStringSubmatchIndex(line); m != nil {
		at := max(m[2], m[4])
		line = line[:at] + `\` + line[at:]
	}
	return line
}

var (
	linked = lazyregexp.New(`(?i)://|www\.|mailto:|xmpp:|@`)
	escape = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`,
		"#", `\#`, "|", `\|`, "~", `\~`, "&", `\&`, "!", `\!`, "$", `\$`)
	// block matches what begins a block at the start of a line: a list, a line under a heading, a fence.
	block = lazyregexp.New(`^(?:\d{1,9}([.)])|([-+=:]))`)
	// apart matches characters that code in a table can't contain unescaped.
	apart = lazyregexp.New("[`|\\\\]+")
)

// unlinked returns a word as code, except for the characters that code can't contain.
func unlinked(word string) string {
	var b strings.Builder
	at := 0
	for _, m := range append(apart().FindAllStringIndex(word, -1), []int{len(word), len(word)}) {
		if at < m[0] {
			b.WriteString("`" + word[at:m[0]] + "`")
		}
		b.WriteString(escape.Replace(word[m[0]:m[1]]))
		at = m[1]
	}
	return b.String()
}

// Code returns a text on one line as code, for use outside of tables. Its fence is longer than any in the text.
func Code(text string) string {
	text = visible.Clean(text)
	if text == "" {
		return ""
	}
	fence := around("`", text)
	if len(fence) > 1 {
		text = " " + text + " "
	}
	return fence + text + fence
}

// CodeCell is Code for a table cell, where a bar must be escaped even in code. If that is impossible, it returns Text.
func CodeCell(text string) string {
	if strings.Contains(text, `\|`) || strings.HasSuffix(text, `\`) {
		return Text(text)
	}
	return strings.ReplaceAll(Code(text), "|", `\|`)
}

// Block returns a text of several lines as a block of code. Nothing in the text can end the block.
func Block(text string) string {
	fence := around("```", text)
	lines := list.Map(strings.Split(strings.TrimRight(text, "\n"), "\n"), func(line string) string {
		return visible.Line(strings.TrimSuffix(line, "\r"), nil)
	})
	return fence + "text\n" + strings.Join(lines, "\n") + "\n" + fence
}

// Fenced returns a text as a block of code, unchanged, "" for a blank text. Nothing in the text can end the block.
func Fenced(language, text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	fence := around("```", text)
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

// around returns a fence that is longer than any in the text.
func around(fence, text string) string {
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}
