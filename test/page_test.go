package test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// page is a page of the documents, or a part of one, that a test runs: its blocks of shell, in the order
// in which the test takes them, and the commands with arguments that stand in its sentences and tables,
// with the test's own values in the place of the page's.
type page struct {
	*world
	folder string              // the folder in which things are typed, "" for the world's
	blocks map[string][]string // shell that is to be run, by heading
	json   map[string][]string // JSON, by heading
	inline map[string]bool     // commands in sentences, and whether they were run
	values map[string]string   // what placeholders stand for
}

var (
	heading  = regexp.MustCompile(`(?m)^## (.+)$`)
	fenced   = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	commands = regexp.MustCompile("`((?:temporal|pawl|starter|worker) [^`]+)`")
)

// pageOf reads a page, or the parts of it that have one of the headings.
func (w *world) pageOf(path string, values map[string]string, headings ...string) *page {
	w.t.Helper()
	p := &page{world: w, blocks: map[string][]string{}, json: map[string][]string{}, inline: map[string]bool{}, values: values}
	text := "## the top\n" + readFile(path)
	at := heading.FindAllStringSubmatchIndex(text, -1)
	found := 0
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		name, part := text[m[2]:m[3]], text[m[1]:end]
		if len(headings) > 0 && !slices.Contains(headings, name) {
			continue
		}
		found++
		for _, code := range fenced.FindAllStringSubmatch(part, -1) {
			switch code[1] {
			case "sh":
				p.blocks[name] = append(p.blocks[name], code[2])
			case "json":
				p.json[name] = append(p.json[name], code[2])
			}
		}
		for _, m := range commands.FindAllStringSubmatch(fenced.ReplaceAllString(part, ""), -1) {
			if len(strings.Fields(m[1])) > 2 { // `pawl up` only names it
				p.inline[m[1]] = false
			}
		}
	}
	require.True(w.t, len(headings) == 0 || found == len(headings), "%s has not all of %q", path, headings)
	return p
}

// calls puts our programs on the PATH of what the world runs, by the names that pages call them.
func (w *world) calls(programs map[string]string) {
	w.t.Helper()
	bin := filepath.Join(w.dir, "bin")
	require.NoError(w.t, os.MkdirAll(bin, 0o700))
	for name, path := range programs {
		require.NoError(w.t, os.Symlink(path, filepath.Join(bin, name)))
	}
	w.env = append(w.env, "PATH="+bin+":"+os.Getenv("PATH"))
}

// next takes the next block of a heading, with the values put in.
func (p *page) next(name string) string {
	p.t.Helper()
	require.NotEmpty(p.t, p.blocks[name], "there is nothing more to run under %q", name)
	block := p.blocks[name][0]
	p.blocks[name] = p.blocks[name][1:]
	return p.fill(block)
}

// fill puts the values in the place of what they stand for, the longest first.
func (p *page) fill(text string) string {
	longest := func(a, b string) int { return len(b) - len(a) }
	for _, placeholder := range slices.SortedStableFunc(slices.Values(slices.Sorted(maps.Keys(p.values))), longest) {
		text = strings.ReplaceAll(text, placeholder, p.values[placeholder])
	}
	return text
}

// run runs the next block of a heading as a person would, and returns what it prints.
func (p *page) run(name string) string {
	p.t.Helper()
	return p.shell(p.next(name))
}

// types runs a command that stands in a sentence or a table, and returns what it prints.
func (p *page) types(command string) string {
	p.t.Helper()
	p.said(command)
	return p.shell(p.fill(command))
}

// said takes it that commands stand in sentences, and that they are run elsewhere.
func (p *page) said(commands ...string) {
	p.t.Helper()
	for _, command := range commands {
		require.Contains(p.t, p.inline, command, "that is not what the page says")
		p.inline[command] = true
	}
}

func (p *page) shell(text string) string {
	p.t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", text)
	cmd.Dir = p.folder
	s := p.output(cmd)
	require.Equal(p.t, 0, s.code, "%s: %s%s", text, s.out, s.err)
	return s.out
}

// allRan expects that the page has nothing that was not run.
func (p *page) allRan() {
	p.t.Helper()
	for name, left := range p.blocks {
		require.Empty(p.t, left, "not run, under %q", name)
	}
	for command, ran := range p.inline {
		require.True(p.t, ran, "not run: %s", command)
	}
}
