package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/viper"

	"pawl/internal/fault"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/steward/charter"
)

// envPrefix begins the variables that override keys of the spec file: PAWL_SPEC_VERIFY_TIMEOUT overrides
// verify.timeout. An empty variable counts as not set.
const envPrefix = "PAWL_SPEC"

// setFlag is the flag of the commands that overrides any key.
const setFlag = "--set"

// Flag is another flag that overrides one key. A problem names it as the user typed it.
type Flag struct{ Name, Key, Value string }

// File is a spec file of any kind with its overrides, read once.
type File struct {
	Kind kind.Kind // the kind in the file; the zero Kind if there is no kind with that name

	path string
	doc  *document
}

// Open reads the spec in a YAML, TOML or JSON file (by extension; any other file is read as YAML). The environment
// (envPrefix) overrides the file, sets override the environment, and flags override sets. Each set is "key=value" with a dotted key and a
// value in YAML's syntax. An empty value restores a key's default. The set "goal=@issue.md" reads the goal from a
// Markdown file, relative to the current folder.
//
// Open does not check the content. The error is INVALID_SPEC if the file can't be read.
func Open(path string, sets []string, flags ...Flag) (File, error) {
	doc, err := readSpec(path)
	if err != nil {
		return File{}, err
	}
	override(doc, sets, flags)
	if doc.lost {
		return File{}, doc.problems(nil)
	}
	f := File{Kind: kind.All[0], path: path, doc: doc}
	if named := doc.values["kind"]; named != nil {
		name, _ := named.(string)
		f.Kind, _ = kind.Of(name)
	}
	return f, nil
}

// LoadSpec returns the spec in a file that must be a loop's.
func LoadSpec(path string, sets []string, flags ...Flag) (spec.Spec, error) {
	f, err := Open(path, sets, flags...)
	if err != nil {
		return spec.Spec{}, err
	}
	return f.Loop()
}

// LoadCharter returns the charter in a file that must be a steward's.
func LoadCharter(path string, sets []string) (charter.Charter, error) {
	f, err := Open(path, sets)
	if err != nil {
		return charter.Charter{}, err
	}
	return f.Steward()
}

// Sets reports whether the file or what overrides it sets a dotted key.
func (f File) Sets(key string) bool {
	var value any = f.doc.values
	for name := range strings.SplitSeq(key, ".") {
		values, nested := value.(map[string]any)
		if !nested {
			return false
		}
		value = values[name]
	}
	return value != nil
}

// Loop returns the spec of a loop. It makes repo.path absolute: relative to the spec file's folder, or to the current
// folder if the environment or a set gave the path. It fills in who starts the loop and from where. The error has all
// problems at once, as spec.Problems with file and line.
func (f File) Loop() (spec.Spec, error) {
	if f.Kind.Name != "" && !f.Kind.Loop {
		return spec.Spec{}, f.other(kind.Loops(), "a "+f.Kind.Name+" is started with `pawl "+f.Kind.Name+" up FILE`")
	}
	s, err := spec.FromMap(f.doc.values)
	if err == nil {
		err = s.Kept()
	}
	if err := f.finish(err, &s.Repo); err != nil {
		return spec.Spec{}, err
	}
	given := s.Session
	s.Session = session()
	maps.Copy(s.Session, given) // a caller that starts loops for others says for whom
	return s, nil
}

// Steward returns the charter of a steward, as Loop returns the spec of a loop.
func (f File) Steward() (charter.Charter, error) {
	if f.Kind.Loop {
		return charter.Charter{}, f.other([]string{kind.Steward.Name}, "a loop is started with `pawl run FILE` or `pawl start FILE`")
	}
	c, err := charter.FromMap(f.doc.values)
	return c, f.finish(err, &c.Repo)
}

// other returns the problem of a file that is a spec of another kind.
func (f File) other(kinds []string, advice string) error {
	problem := "is " + spec.Show(f.Kind.Name)
	if f.doc.values["kind"] == nil {
		problem = "is missing, so this is the spec of a loop"
	}
	p := spec.Problem{Key: "kind", What: problem, Want: spec.Or(kinds) + " here; " + advice}
	return f.doc.problems(spec.Problems{p})
}

// finish adds positions in the file to the problems. If there are none, it makes repo.path absolute.
func (f File) finish(err error, repo *spec.Repo) error {
	found, are := errors.AsType[spec.Problems](err)
	if err != nil && !are {
		return err
	}
	for i, p := range found {
		if p.Key == "kind" {
			found[i].Want = spec.Or(kind.Loops()) + ", or steward for `pawl steward up`"
		}
	}
	if problems := f.doc.problems(found); len(problems) > 0 {
		return problems
	}
	return anchor(repo, f.doc, f.path)
}

// maxSpec is larger than any spec that a person wrote, in bytes.
const maxSpec = 1 << 20

// specAbove returns the file of that name in the nearest folder above, within the repository, "" for none.
func specAbove(name string) string {
	if filepath.Base(name) != name {
		return ""
	}
	for dir := "."; ; dir = filepath.Join(dir, "..") {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil && dir != "." {
			return filepath.Join(dir, name)
		}
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return ""
		}
		whole, err := filepath.Abs(dir)
		if err != nil || whole == filepath.Dir(whole) {
			return ""
		}
	}
}

func readSpec(path string) (*document, error) {
	text, err := readFile(path, maxSpec)
	if above := specAbove(path); errors.Is(err, fs.ErrNotExist) && above != "" {
		return nil, fault.New(fault.InvalidSpec, "there is no spec file %s in this folder", path).
			Advise("This repository has " + above + ": name that one.")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.InvalidSpec, "there is no spec file %s", path).
			Advise("Name the file, or write one: `pawl init` (for a steward `pawl init --kind steward`). `pawl demo` shows a loop at work.")
	}
	if err != nil {
		return nil, fault.New(fault.InvalidSpec, "the spec file can't be read: %v", err).Advise("Name a spec file that you may read.")
	}
	doc := newDocument(path)
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if problem, want, line := notText(text); problem != "" {
		doc.unread(spec.Problem{Line: line, What: problem, Want: want})
		return doc, nil
	}
	doc.read(text, path, strings.ToLower(filepath.Ext(path)))
	return doc, nil
}

// notText says why a file is not text in UTF-8, and in which line; "" if it is.
func notText(text []byte) (problem, want string, line int) {
	const save = "a text file in UTF-8"
	lineAt := func(i int) int { return 1 + bytes.Count(text[:i], []byte("\n")) }
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return "is in UTF-16", save, 0
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == 0:
			return "is not a text file", save, 0
		case r == utf8.RuneError && size == 1:
			return "is not valid UTF-8", save, lineAt(i)
		case r < ' ' && r != '\t' && r != '\n' && r != '\r':
			return fmt.Sprintf("contains the control character %U", r), save, lineAt(i)
		}
		i += size
	}
	return "", "", 0
}

// override applies environment, --set and the other flags to the file's values.
//
// viper finds the variables, but does not read the file, because it changes every key to lower case, and the names in
// agent.env and policies are the user's own. Here it handles only the keys of the contract, whose case is known.
func override(doc *document, sets []string, flags []Flag) {
	v := viper.New()
	names, short := map[string]string{}, []string{} // variable → key; variables without their prefix
	for _, key := range slices.Compact(slices.Sorted(slices.Values(append(spec.Keys(), charter.Keys()...)))) {
		short = append(short, strings.ToUpper(strings.ReplaceAll(key, ".", "_")))
		name := envPrefix + "_" + short[len(short)-1]
		names[name] = key
		_ = v.BindEnv(key, name) // fails only without a key
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if _, ok := names[name]; strings.HasPrefix(name, envPrefix+"_") && !ok {
			want := "a name such as PAWL_SPEC_LIMITS_ITERATIONS"
			if best := spec.Alike(name[len(envPrefix)+1:], short); best != "" {
				want = envPrefix + "_" + best + " (did you mean it?)"
			}
			doc.wrong = append(doc.wrong, spec.Problem{File: "environment", Key: spec.Join("", name), What: "is not the variable of a key of a spec", Want: want})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if key := names[name]; v.IsSet(key) {
			doc.put(strings.Split(key, "."), text(v.GetString(key)), name)
		}
	}
	for _, set := range sets {
		key, value, ok := doc.pair(setFlag, set, "limits.iterations=5")
		switch file, named := strings.CutPrefix(strings.TrimSpace(value), "@"); {
		case !ok:
		case named && slices.Equal(key, []string{"goal"}):
			putGoal(doc, file, setFlag)
		default:
			doc.put(key, text(value), setFlag)
		}
	}
	for _, flag := range flags {
		if file, named := strings.CutPrefix(flag.Value, "@"); named && flag.Key == "goal" {
			putGoal(doc, file, flag.Name)
			continue
		}
		doc.put(strings.Split(flag.Key, "."), flag.Value, flag.Name)
	}
}

// anchor makes repo.path absolute. With a repo.url, it removes the default path, which means nothing there.
func anchor(repo *spec.Repo, doc *document, path string) error {
	if repo.Remote() && repo.Path == spec.Defaults().Repo.Path {
		repo.Path = ""
	}
	if repo.Path == "" || filepath.IsAbs(repo.Path) {
		return nil
	}
	base := "."
	if source := doc.locate("repo.path").source; source == path {
		base = filepath.Dir(path)
	}
	abs, err := filepath.Abs(filepath.Join(base, repo.Path))
	if err != nil {
		return fmt.Errorf("making repo.path absolute: %w", err)
	}
	if !utf8.ValidString(abs) { // neither a workflow's input nor the contract can contain such a path
		return spec.Problems{{File: path, Key: "repo.path", What: fmt.Sprintf("is %q, which is not valid UTF-8", abs), Want: "a path in UTF-8, such as that of a link to the repository"}}
	}
	repo.Path = abs
	return nil
}

// session returns who starts a loop and from where (L12).
func session() map[string]string {
	s := map[string]string{"user": User(), "pid": strconv.Itoa(os.Getpid())}
	if host, err := os.Hostname(); err == nil {
		s["host"] = host
	}
	if dir, err := os.Getwd(); err == nil {
		s["cwd"] = dir
	}
	return s
}

// User returns the name of the user who runs this process, for messages to loops.
func User() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = cmp.Or(u.Username, name)
	}
	return cmp.Or(name, "uid "+strconv.Itoa(os.Getuid()))
}
