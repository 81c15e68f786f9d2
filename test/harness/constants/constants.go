// Package constants reads from a Go file which constants of a type it has, and what is written beside them. Tests compare
// that with docs and with what other packages do for each of the constants.
package constants

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Constant is a constant's value, and the comment at the end of its line.
type Constant[T ~string] struct {
	Value   T
	Meaning string
}

// Of returns the constants of the type T in a file of this module, in their order. Each has to have a comment.
func Of[T ~string](t testing.TB, file, typeName string) (all []Constant[T]) {
	t.Helper()
	root, err := os.Getwd()
	require.NoError(t, err)
	for !exists(filepath.Join(root, "go.mod")) {
		root = filepath.Dir(root)
	}
	source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ParseComments)
	require.NoError(t, err)
	ast.Inspect(source, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if of, is := spec.Type.(*ast.Ident); is && of.Name == typeName {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			require.NotNil(t, spec.Comment, "%s says nothing about %s", file, spec.Names[0])
			all = append(all, Constant[T]{T(value), strings.TrimSpace(spec.Comment.Text())})
		}
		return true
	})
	require.NotEmpty(t, all)
	return all
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
