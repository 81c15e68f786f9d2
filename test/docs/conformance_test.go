package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// conformanceRow says where a requirement, or a part of one, is carried out. Tests are those beside the tests that have
// its ID in their names.
type conformanceRow struct {
	ID    string
	About string
	In    string
	Note  string
	Tests []string
}

type conformanceSection struct {
	Section string
	Rows    []conformanceRow
}

// TestConformanceIsInStep writes docs/reference/conformance.md. It fails if a requirement has no row, or if a row names a
// test that does not exist.
func TestConformanceIsInStep(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("testdata", "conformance.yaml"))
	require.NoError(t, err)
	var sections []conformanceSection
	require.NoError(t, yaml.Unmarshal(source, &sections))

	files := declaredTests(t)
	addTestsByName(t, sections, files)
	for _, section := range sections {
		for _, row := range section.Rows {
			for _, name := range row.Tests {
				require.Contains(t, files, name, "%s %s: the test does not exist", row.ID, row.About)
			}
		}
	}

	text := conformancePage(t, sections, files)
	path := filepath.Join("..", "..", "docs", "reference", "conformance.md")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	require.Equal(t, text, page(t, "reference/conformance.md"), "docs/reference/conformance.md is out of step: go test ./test/docs -update")
}

// declaredTests returns the files in which each test stands.
func declaredTests(t *testing.T) map[string][]string {
	files := map[string][]string{}
	declaration := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	sources(t, func(path, text string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, match := range declaration.FindAllStringSubmatch(text, -1) {
			files[match[1]] = append(files[match[1]], path)
		}
	})
	return files
}

// addTestsByName adds each test that has a requirement's ID in its name, to the first row of that requirement, unless one
// of its rows lists the test.
func addTestsByName(t *testing.T, sections []conformanceSection, files map[string][]string) {
	defined := requirements(t)
	first := map[string]*conformanceRow{}
	listed := map[string]bool{}
	for s := range sections {
		for r := range sections[s].Rows {
			row := &sections[s].Rows[r]
			if row.ID == "" {
				continue
			}
			require.True(t, defined[row.ID], "%s is no requirement", row.ID)
			if first[row.ID] == nil {
				first[row.ID] = row
			}
			for _, name := range row.Tests {
				listed[row.ID+" "+name] = true
			}
		}
	}
	for id := range defined {
		require.NotNil(t, first[id], "testdata/conformance.yaml has no row for %s", id)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		match := inTestName.FindStringSubmatch(name)
		if match == nil {
			continue
		}
		id := requirementOf(match, defined)
		if !listed[id+" "+name] {
			first[id].Tests = append(first[id].Tests, name)
		}
	}
}

func conformancePage(t *testing.T, sections []conformanceSection, files map[string][]string) string {
	var index, details strings.Builder
	says := firstSentences(t)
	for _, section := range sections {
		fmt.Fprintf(&details, "\n## %s\n", section.Section)
		if section.Rows[0].ID == "" {
			writeOtherRows(&details, section.Rows, files)
			continue
		}
		for i, row := range section.Rows {
			if i == 0 || row.ID != section.Rows[i-1].ID {
				tests := 0
				for _, other := range section.Rows {
					if other.ID == row.ID {
						tests += len(other.Tests)
					}
				}
				anchor := strings.ToLower(strings.ReplaceAll(row.ID, ".", ""))
				fmt.Fprintf(&index, "| [%s](#%s) | %s | %d |\n", row.ID, anchor, says[row.ID], tests)
				fmt.Fprintf(&details, "\n### %s\n", row.ID)
			}
			fmt.Fprintf(&details, "\n**%s**: %s\n\n", row.About, row.In)
			writeTests(&details, row, files)
		}
	}
	return "# Conformance\n\n" + generated + `Each [requirement](requirements.md) in one line, and how many tests show it. Its ID leads to the code that carries it out, and
to the tests, by file. A test shows a requirement if it has the ID in its name, or if ` + "`test/docs/testdata/conformance.yaml`" + ` lists
it. After the requirements come [findings of an audit](#findings-of-an-audit) and
[what else was promised](#what-else-was-promised).

| requirement | in one line | tests |
|---|---|---|
` + index.String() + details.String()
}

// writeOtherRows writes rows that belong to no requirement.
func writeOtherRows(w *strings.Builder, rows []conformanceRow, files map[string][]string) {
	for _, row := range rows {
		fmt.Fprintf(w, "\n**%s**: %s\n\n", row.About, row.In)
		writeTests(w, row, files)
	}
}

// writeTests lists the tests of a row by their files.
func writeTests(w *strings.Builder, row conformanceRow, files map[string][]string) {
	byFile := map[string][]string{}
	for _, name := range row.Tests {
		file := strings.Join(files[name], "`, `")
		if !slices.Contains(byFile[file], name) {
			byFile[file] = append(byFile[file], name)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		slices.Sort(byFile[file])
		fmt.Fprintf(w, "- `%s`: `%s`\n", file, strings.Join(byFile[file], "`, `"))
	}
	if row.Note != "" {
		fmt.Fprintf(w, "- %s\n", row.Note)
	}
}

// firstSentences returns the beginning of each requirement: its first sentence, or what stands before the first colon.
func firstSentences(t *testing.T) map[string]string {
	says := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([LPASE][0-9.]+) \| (.*) \|$`).FindAllStringSubmatch(page(t, "reference/requirements.md"), -1) {
		sentence, _, _ := strings.Cut(row[2], ". ")
		if before, _, found := strings.Cut(sentence, ": "); found && strings.Contains(before, " ") {
			sentence = before
		}
		says[row[1]] = strings.TrimSuffix(sentence, ".")
	}
	return says
}
