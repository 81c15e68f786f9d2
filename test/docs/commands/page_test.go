package commands_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// page is a page of the documents, or a part of one, that a test runs: its shell blocks, in the order in which the test
// runs them, and the commands with arguments in its sentences and tables. The test's values replace the page's.
type page struct {
	*world.World
	folder string              // the working folder of the commands, "" for the world's
	blocks map[string][]string // shell blocks to run, by heading
	json   map[string][]string // JSON, by heading
	inline map[string]bool     // commands in sentences, and whether they were run
	values map[string]string   // the values of placeholders
}

var (
	heading  = regexp.MustCompile(`(?m)^## (.+)$`)
	fenced   = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	commands = regexp.MustCompile("`((?:temporal|pawl|starter|worker) [^`]+)`")
)

// pageOf reads a page, or the parts of it that have one of the headings.
func pageOf(w *world.World, path string, values map[string]string, headings ...string) *page {
	w.T.Helper()
	return pagesOf(w, []string{path}, values, headings...)
}

// pagesOf reads several pages as one.
func pagesOf(w *world.World, paths []string, values map[string]string, headings ...string) *page {
	w.T.Helper()
	p := &page{World: w, blocks: map[string][]string{}, json: map[string][]string{}, inline: map[string]bool{}, values: values}
	text := "## the top\n" + textOf(paths)
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
			if len(strings.Fields(m[1])) > 2 { // `pawl up` only names a command
				p.inline[m[1]] = false
			}
		}
	}
	require.True(w.T, len(headings) == 0 || found == len(headings), "%s has not all of %q", paths, headings)
	return p
}

// textOf returns the text of pages, one after the other.
func textOf(paths []string) string {
	var text strings.Builder
	for _, path := range paths {
		text.WriteString(world.ReadFile(path))
	}
	return text.String()
}

// pages returns all pages of the documents, and other texts that people read.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		all = append(all, found...)
	}
	return all
}

// A test runs or generates everything that a page shows. This table names the test for each sort of block on
// each page.
func TestDocs_EverythingShownIsRunOrGenerated(t *testing.T) {
	covered := map[string][]string{
		"README.md:sh": {"TestDemo", "TestL_DemoDeliver", "TestS_DemoSteward", "TestReadme_YourOwnLoop"}, "README.md:yaml": {"TestSpecsInTheDocsAreSpecs"},
		"README.md:":            {"TestDemo"},
		"examples/README.md:sh": {"TestExamplesRunWithoutAnyKey"}, "examples/README.md:": {"TestExamplesRunWithoutAnyKey"},
		"docs/tutorials/first-loop.md:console": {"TestTheFirstLoopOfTheDocsWorksToTheLetter"},
		"docs/guides/temporal.md:sh":           {"TestTemporalPage_EveryCommandRuns"}, "docs/guides/temporal.md:json": {"TestTemporalPage_EveryCommandRuns"},
		"docs/guides/operating.md:sh": {"TestOperatingPage_EveryAnswerIsTaken"}, "docs/guides/answering.md:sh": {"TestOperatingPage_EveryAnswerIsTaken"}, "docs/guides/answering.md:yaml": {"TestSpecsInTheDocsAreSpecs"}, "docs/guides/servers.md:sh": {"TestOperatingPage_SeveralHosts"}, "docs/reference/sandbox.md:yaml": {"TestSpecsInTheDocsAreSpecs"},
		"docs/guides/deliver.md:sh": {"TestDeliverPage"}, "docs/guides/deliver.md:yaml": {"TestSpecsInTheDocsAreSpecs", "TestDeliverPage"},
		"docs/reference/phases.md:mermaid": {"TestGeneratedPagesAreInStep"},
		"docs/guides/agents.md:yaml":       {"TestSpecsInTheDocsAreSpecs"}, "docs/explanation/parallel.md:yaml": {"TestSpecsInTheDocsAreSpecs"}, "docs/explanation/backtrack.md:yaml": {"TestSpecsInTheDocsAreSpecs"}, "docs/reference/spec.md:yaml": {"TestSpecsInTheDocsAreSpecs"},
		"docs/tutorials/first-steward.md:console": {"TestTheFirstStewardOfTheDocsWorksToTheLetter"}, "docs/tutorials/first-steward.md:markdown": {"TestTheFirstStewardOfTheDocsWorksToTheLetter"},
		"docs/guides/steward.md:yaml": {"TestSpecsInTheDocsAreSpecs"},
		"docs/guides/triggers.md:sh":  {"TestThePagesCommandsSendWork"}, "docs/guides/triggers.md:yaml": {"TestThePagesCommandsSendWork"},
		"docs/explanation/architecture.md:": {"TestDocs_DrawingsNameWhatIsThere"},
	}
	for _, page := range pages(t) {
		for _, m := range fenced.FindAllStringSubmatch(world.ReadFile(page), -1) {
			require.Contains(t, covered, page+":"+m[1], "no test is known to show that this is so:\n%s", m[2])
		}
	}
}

// The drawings name only folders and files that exist.
func TestDocs_DrawingsNameWhatIsThere(t *testing.T) {
	n := 0
	for _, page := range []string{"docs/explanation/architecture.md"} {
		for _, m := range fenced.FindAllStringSubmatch(world.ReadFile(page), -1) {
			for _, name := range regexp.MustCompile(`(?m)(workflows|activities|internal)/[a-z/.]*$`).FindAllString(m[2], -1) {
				n++
				require.FileExists(t, strings.TrimSuffix(name, "/")+map[bool]string{true: "/activities.go"}[name == "activities/"])
			}
		}
	}
	require.Positive(t, n)
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(world.ReadFile("docs/explanation/architecture.md"), -1) {
		for _, name := range strings.Split(m[1], ", ") {
			_, err := os.Stat(strings.Trim(name, "`"))
			require.NoError(t, err, "docs/explanation/architecture.md")
		}
	}
}

// calls puts our programs on the PATH of the world's commands, under the names that pages use.
func calls(w *world.World, programs map[string]string) {
	w.T.Helper()
	bin := filepath.Join(w.Dir, "bin")
	require.NoError(w.T, os.MkdirAll(bin, 0o700))
	for name, path := range programs {
		require.NoError(w.T, os.Symlink(path, filepath.Join(bin, name)))
	}
	w.Env = append(w.Env, "PATH="+bin+":"+os.Getenv("PATH"))
}

// next returns the next block of a heading, with the values filled in.
func (p *page) next(name string) string {
	p.T.Helper()
	require.NotEmpty(p.T, p.blocks[name], "there is nothing more to run under %q", name)
	block := p.blocks[name][0]
	p.blocks[name] = p.blocks[name][1:]
	return p.fill(block)
}

// fill replaces placeholders by their values, the longest first.
func (p *page) fill(text string) string {
	longest := func(a, b string) int { return len(b) - len(a) }
	for _, placeholder := range slices.SortedStableFunc(slices.Values(slices.Sorted(maps.Keys(p.values))), longest) {
		text = strings.ReplaceAll(text, placeholder, p.values[placeholder])
	}
	return text
}

// run runs the next block of a heading as a person would, and returns its output.
func (p *page) run(name string) string {
	p.T.Helper()
	return p.shell(p.next(name))
}

// types runs a command from a sentence or a table, and returns its output.
func (p *page) types(command string) string {
	p.T.Helper()
	p.said(command)
	return p.shell(p.fill(command))
}

// said marks commands in sentences that another test runs.
func (p *page) said(commands ...string) {
	p.T.Helper()
	for _, command := range commands {
		require.Contains(p.T, p.inline, command, "that is not what the page says")
		p.inline[command] = true
	}
}

func (p *page) shell(text string) string {
	p.T.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", text)
	cmd.Dir = p.folder
	s := p.Output(cmd)
	require.Equal(p.T, 0, s.Code, "%s: %s%s", text, s.Out, s.Err)
	return s.Out
}

// allRan checks that everything on the page was run.
func (p *page) allRan() {
	p.T.Helper()
	for name, left := range p.blocks {
		require.Empty(p.T, left, "not run, under %q", name)
	}
	for command, ran := range p.inline {
		require.True(p.T, ran, "not run: %s", command)
	}
}
