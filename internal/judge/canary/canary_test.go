package canary_test

import (
	"go/parser"
	"go/token"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/judge/canary"
)

func TestBreakableIsCodeAndNotWhatTestsIt(t *testing.T) {
	for file, want := range map[string]bool{
		"route/plan.go": true, "src/requests/models.py": true, "lib/index.mjs": true, "src/lib.rs": true, "parson.c": true, "src/main/java/a/B.java": true, "index.php": true,
		"route/plan_test.go": false, "tests/utils.py": false, "test_parson.py": false, "src/a.test.ts": false, "src/test/java/a/BTest.java": false, "BTest.java": false,
		"setup.py": false, "docs/conf.py": false, "vite.config.ts": false, "build.rs": false, "README.md": false, "work/n": false, "data.json": false, "style.css": false,
	} {
		require.Equal(t, want, canary.Breakable(file), file)
	}
}

func TestPartsAreWhatOneGuardMayNotSee(t *testing.T) {
	files := []string{"a.go", "b/c.go", "web/x.ts", "web/y.js", "web/gen.py", "web/deep/z.js", "lib/m.c", "lib/m.h"}
	for name, c := range map[string]struct {
		files, all []string
		want       []canary.Part
	}{
		"one package in one language": {files[:2], []string{"go.mod"}, []canary.Part{{"Go", []string{"a.go", "b/c.go"}}}},
		"no manifest":                 {[]string{"x.py", "y.rb", "z.py"}, nil, []canary.Part{{"Python", []string{"x.py", "z.py"}}, {"Ruby", []string{"y.rb"}}}},
		"packages and languages": {files, []string{"go.mod", "web/package.json", "web/deep/pyproject.toml", "b/node_modules.txt"}, []canary.Part{
			{"web (JavaScript)", []string{"web/x.ts", "web/y.js"}}, {"what is in no package (C)", []string{"lib/m.c", "lib/m.h"}}, {"what is in no package (Go)", []string{"a.go", "b/c.go"}},
			{"web (Python)", []string{"web/gen.py"}}, {"web/deep", []string{"web/deep/z.js"}},
		}},
		"packages alone": {[]string{"p/a/i.js", "p/b/i.js"}, []string{"package.json", "p/a/package.json", "p/b/package.json"}, []canary.Part{{"p/a", []string{"p/a/i.js"}}, {"p/b", []string{"p/b/i.js"}}}},
		"nothing":        {nil, []string{"go.mod"}, nil},
	} {
		require.Equal(t, c.want, canary.Parts(c.files, c.all), name)
	}
}

func TestEveryLanguageThatIsBrokenHasAName(t *testing.T) {
	for _, ext := range canary.Extensions() {
		require.NotEmpty(t, canary.Parts([]string{"a" + ext}, nil)[0].Name, ext)
	}
}

func TestEmptyLeavesAFileThatCompilesAndOnlyFails(t *testing.T) {
	for file, c := range map[string]struct {
		from, to string
		n        int
	}{
		"a.go": {"package a\n\nfunc F(n int) (int, error) {\n\tif n > 0 {\n\t\treturn n, nil\n\t}\n\treturn 0, nil\n}\n\nfunc (t *T) G() { t.x++ }\n\ntype T struct{ x int }\n",
			"package a\n\nfunc F(n int) (int, error) { panic(\"broken by pawl on purpose\") }\n\nfunc (t *T) G() { panic(\"broken by pawl on purpose\") }\n\ntype T struct{ x int }\n", 2},
		"a.py": {"import os\n\ndef f(a,\n      b): return 1\n\nclass C:\n    def g(self):\n        # why\n        x = 1\n\n        return x\n\n    y = 2\n",
			"import os\n\ndef f(a,\n      b): return 1\n\nclass C:\n    def g(self):\n        raise RuntimeError(\"broken by pawl on purpose\")\n    y = 2\n", 1},
		"a.js": {"export function f(a) {\n  return { a };\n}\nconst g = 1;\n", "export function f(a) { throw new Error(\"broken by pawl on purpose\"); }\nconst g = 1;\n", 1},
		"a.rs": {"pub fn f<T: Into<u8>>(t: T) -> u8 {\n    t.into()\n}\n", "pub fn f<T: Into<u8>>(t: T) -> u8 { panic!(\"broken by pawl on purpose\"); }\n", 1},
		"A.java": {"class A {\n  public static int f(int n) throws X {\n    if (n > 0) { return 1; }\n    return 0;\n  }\n}\n",
			"class A {\n  public static int f(int n) throws X { throw new RuntimeException(\"broken by pawl on purpose\"); }\n}\n", 1},
		"a.c":  {"static int f(int n)\n{\n  return n;\n}\n", "static int f(int n)\n{ __builtin_trap(); }\n", 1},
		"a.md": {"def f():\n  x\n", "def f():\n  x\n", 0},
	} {
		out, n := canary.Empty(file, []byte(c.from))
		require.Equal(t, c.to, string(out), file)
		require.Equal(t, c.n, n, file)
	}
}

func TestBreakIsASyntaxError(t *testing.T) {
	source := []byte("package a\n\nfunc F() {}\n")
	_, err := parser.ParseFile(token.NewFileSet(), "a.go", canary.Break("a.go", source), 0)
	require.Error(t, err)
	emptied, _ := canary.Empty("a.go", source)
	_, err = parser.ParseFile(token.NewFileSet(), "a.go", emptied, 0)
	require.NoError(t, err)
	require.Equal(t, "#!/x\n<?php\n)]} broken by pawl on purpose ;{[(\n\necho 1;", string(canary.Break("a.php", []byte("#!/x\n<?php\necho 1;"))))
	if python, err := exec.LookPath("python3"); err == nil {
		for _, c := range []struct {
			code []byte
			want bool
		}{{canary.Break("a.py", []byte("x = 1\n")), false}, {first(canary.Empty("a.py", []byte("def f():\n    return 1\n"))), true}} {
			require.Equal(t, c.want, exec.Command(python, "-c", "import sys; compile(sys.argv[1], 'a', 'exec')", string(c.code)).Run() == nil)
		}
	}
}

func first(b []byte, _ int) []byte { return b }

// FuzzEmpty checks that everything outside of functions stays, and that no text makes Empty fail.
func FuzzEmpty(f *testing.F) {
	for _, text := range []string{"func F() {", "def f():\n\tx", "fn a() { { }", "", "def f():"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, file := range []string{"a.go", "a.py", "a.rs", "a.js", "A.java", "a.c"} {
			out, n := canary.Empty(file, []byte(text))
			if n == 0 {
				require.Equal(t, text, string(out))
			}
		}
	})
}
