package docs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec/kind"
	"pawl/internal/steward"
)

// TestPicturesAreDrawn compares each picture with its source: who changes one runs `make pictures`.
func TestPicturesAreDrawn(t *testing.T) {
	style, err := os.ReadFile(picture("style.css"))
	require.NoError(t, err)
	for _, source := range pictureSources(t) {
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		sum := sha256.Sum256(slices.Concat(text, style))
		drawn, err := os.ReadFile(strings.TrimSuffix(source, filepath.Ext(source)) + ".svg")
		require.NoError(t, err)
		require.Contains(t, string(drawn), "from "+hex.EncodeToString(sum[:])[:16]+" -->", "%s has changed: make pictures", source)
	}
}

// TestEveryPictureIsShown: a picture that no page shows is of no use.
func TestEveryPictureIsShown(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*/*.md")
	require.NoError(t, err)
	var all strings.Builder
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		all.Write(text)
	}
	for _, source := range pictureSources(t) {
		name := strings.TrimSuffix(filepath.Base(source), filepath.Ext(source))
		require.Contains(t, all.String(), "pictures/"+name+".svg)")
	}
}

func TestL6_DeliverIsDrawnFromItsMachine(t *testing.T) {
	var want []string
	machine := kind.Deliver.Machine(kind.Version(), false)
	for _, current := range machine.Phases() {
		for _, next := range machine.Row(current).Next {
			want = append(want, string(current)+" -> "+string(next))
		}
	}
	require.ElementsMatch(t, want, arrows(t, "deliver.dot"))
}

func TestS2_TheStatesAreDrawnFromTheTable(t *testing.T) {
	var want []string
	for _, row := range steward.Transitions {
		want = append(want, string(row.From)+" -> "+string(row.To))
	}
	require.ElementsMatch(t, want, arrows(t, "steward.dot"))
}

func picture(name string) string { return filepath.Join("../../docs/pictures", name) }

func pictureSources(t *testing.T) []string {
	graphs, err := filepath.Glob(picture("*.dot"))
	require.NoError(t, err)
	courses, err := filepath.Glob(picture("*.tsv"))
	require.NoError(t, err)
	sources := append(graphs, courses...)
	require.NotEmpty(t, sources)
	return sources
}

// arrows returns the arrows of a picture's source, as `from -> to`.
func arrows(t *testing.T, name string) []string {
	text, err := os.ReadFile(picture(name))
	require.NoError(t, err)
	return regexp.MustCompile(`(?m)\b\w+ -> \w+`).FindAllString(string(text), -1)
}
