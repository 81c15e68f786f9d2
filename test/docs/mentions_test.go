package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/agent/adapter"
	"pawl/internal/loop"
	"pawl/internal/loop/result"
	"pawl/internal/spec"
	"pawl/internal/spec/agents"
	"pawl/test/harness/constants"
)

// forDevelopers are the pages that name files and symbols of the code.
var forDevelopers = []string{"explanation/architecture.md", "reference/conformance.md", "reference/words.md", "../CONTRIBUTING.md"}

// TestWhatThePagesNameIsThere finds files and symbols that were renamed or removed.
func TestWhatThePagesNameIsThere(t *testing.T) {
	have := declared(t)
	file := regexp.MustCompile("`((?:[a-z_0-9]+/)+[a-z_0-9]+\\.(?:go|md|tmpl|json)|(?:internal|workflows|activities|test|docs|config|schema)/[a-z_0-9/]*)`")
	symbol := regexp.MustCompile("`([A-Za-z]+)\\.([A-Za-z]+)`")
	decisions, err := filepath.Glob(filepath.Join("..", "..", "docs", "decisions", "*.md"))
	require.NoError(t, err)
	for i, path := range decisions {
		n := i + 1
		assert.True(t, strings.HasPrefix(filepath.Base(path), fmt.Sprintf("%04d-", n)), "%s has the number of another decision, or one is missing before it", path)
		assert.True(t, strings.HasPrefix(page(t, "decisions/"+filepath.Base(path)), fmt.Sprintf("# %d. ", n)), "the title of %s has another number", path)
		forDevelopers = append(forDevelopers, "decisions/"+filepath.Base(path))
	}
	for _, name := range forDevelopers {
		text := page(t, name)
		for _, m := range file.FindAllStringSubmatch(text, -1) {
			_, err := os.Stat(filepath.Join("..", "..", m[1]))
			assert.NoError(t, err, "docs/%s names %s", name, m[1])
		}
		for _, m := range symbol.FindAllStringSubmatch(text, -1) {
			if have[m[1]] != nil && m[2] != "go" && !isKey(m[1]+"."+m[2]) {
				assert.True(t, have[m[1]][m[2]], "docs/%s names %s, which is not in the code", name, m[0])
			}
		}
	}
}

// TestEveryPackageIsInTheTable compares docs/explanation/architecture.md with the folders of the repository.
func TestEveryPackageIsInTheTable(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("..", "..", "internal", "*"))
	require.NoError(t, err)
	for _, folder := range folders {
		require.Contains(t, page(t, "explanation/architecture.md"), "`internal/"+filepath.Base(folder)+"`")
	}
}

// TestLinksLeadSomewhere follows the links between pages, also to headings.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s:]+)\)`)
	sources(t, func(path, text string) {
		if filepath.Ext(path) != ".md" {
			return
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join("..", "..", path)
			if to != "" {
				target = filepath.Join("..", "..", filepath.Dir(path), to)
			}
			info, err := os.Stat(target)
			if !assert.NoError(t, err, "%s links to %s", path, m[1]) || info.IsDir() || anchor == "" {
				continue
			}
			there, err := os.ReadFile(target)
			require.NoError(t, err)
			assert.Contains(t, anchors(string(there)), anchor, "%s links to %s", path, m[1])
		}
	})
}

// TestEveryPageIsInTheIndex: docs/README.md has a line for each page.
func TestEveryPageIsInTheIndex(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*", "*.md"))
	require.NoError(t, err)
	index := page(t, "README.md")
	for _, path := range pages {
		if room := filepath.Base(filepath.Dir(path)); room != "decisions" {
			assert.Contains(t, index, "]("+room+"/"+filepath.Base(path)+")")
		}
	}
}

// TestPagesThatTheCodeNamesAreThere finds pages that moved: messages and comments name them by their paths. Tests also
// name pages of the repositories that they make, so of a test only the paths into our own folders count.
func TestPagesThatTheCodeNamesAreThere(t *testing.T) {
	anyPage := regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.md\b`)
	ours := regexp.MustCompile(`\bdocs/(?:tutorials|guides|reference|explanation|decisions)/[a-z0-9-]+\.md\b`)
	sources(t, func(path, text string) {
		pattern := anyPage
		if strings.HasSuffix(path, "_test.go") {
			pattern = ours
		}
		if filepath.Ext(path) == ".md" {
			return // TestLinksLeadSomewhere follows links
		}
		for _, page := range pattern.FindAllString(text, -1) {
			assert.FileExists(t, filepath.Join("..", "..", page), "%s names it", path)
		}
	})
}

// anchors returns the anchors that GitHub makes of a page's headings.
func anchors(text string) (all []string) {
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return all
}

func isKey(name string) bool {
	for _, key := range spec.Keys() {
		if key == name || strings.HasPrefix(key, name+".") {
			return true
		}
	}
	return false
}

// declared returns all names in the code: functions, types, variables and constants by package, methods and fields by
// type.
func declared(t *testing.T) map[string]map[string]bool {
	have := map[string]map[string]bool{}
	add := func(in, name string) {
		if have[in] == nil {
			have[in] = map[string]bool{}
		}
		have[in][name] = true
	}
	sources(t, func(path, text string) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(parsed.Name.Name, d.Name.Name)
				} else {
					add(strings.TrimLeft(typeName(d.Recv.List[0].Type), "*"), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.ValueSpec:
						for _, n := range s.Names {
							add(parsed.Name.Name, n.Name)
						}
					case *ast.TypeSpec:
						add(parsed.Name.Name, s.Name.Name)
						if fields, ok := s.Type.(*ast.StructType); ok {
							for _, f := range fields.Fields.List {
								for _, n := range f.Names {
									add(s.Name.Name, n.Name)
								}
							}
						}
					}
				}
			}
		}
	})
	return have
}

func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// TestEveryMessageIsDocumented compares docs/guides/temporal.md with the messages that a loop accepts.
func TestEveryMessageIsDocumented(t *testing.T) {
	for _, m := range loop.Messages {
		require.Contains(t, page(t, "guides/temporal.md"), "\n| `"+m.Name+"` |", "docs/guides/temporal.md has no row for the message %s", m.Name)
	}
}

// TestEveryAgentProgramIsDocumented compares docs/guides/agents.md with the built-in programs.
func TestEveryAgentProgramIsDocumented(t *testing.T) {
	for _, use := range agents.Uses() {
		a, ok := adapter.Lookup(use)
		require.True(t, ok, use)
		version := a.Version
		if version == "" {
			version = "–"
		}
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| `%s` \\|[^|]*\\| %s \\|", a.Name, regexp.QuoteMeta(version)))
		require.Regexp(t, row, page(t, "guides/agents.md"), "docs/guides/agents.md has no row for %s, version %s", a.Name, version)
		require.Regexp(t, "(?m)^\\| `agent.use` \\|.*`"+use+"`", page(t, "reference/spec.md"), "docs/reference/spec.md: agent.use can be %s", use)
	}
}

// TestEveryClassOfACallIsDocumented compares docs/reference/agents.md with the classes of calls.
func TestEveryClassOfACallIsDocumented(t *testing.T) {
	for _, c := range constants.Of[result.Class](t, "internal/loop/result/result.go", "Class") {
		require.Contains(t, page(t, "reference/agents.md"), fmt.Sprintf("\n| `%s` | %s", c.Value, c.Meaning), "docs/reference/agents.md says something else of %s", c.Value)
	}
}
