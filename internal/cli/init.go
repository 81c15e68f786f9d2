package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/cli/render"
	"pawl/internal/cli/scaffold"
	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/userrepo"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/shell"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

func (a *app) initCommand() *cobra.Command {
	o := initOptions{}
	cmd := &cobra.Command{
		Use: "init [DIR]", Short: "Write a first spec for a repository", Args: arguments(0, 1),
		Long: `Examine the repository of a folder (default: this one) and write pawl.yaml: which
files may change, which commands test and measure it, which agent to use, and practical
limits, all with comments. It proposes what is installed here and says what is missing.
The file goes into the root of the repository. If the repository holds several projects,
it goes into the folder of the project that DIR belongs to.

init runs nothing of the repository, with one exception: if it can't tell whether a
higher or a lower result of a benchmark is better, it runs the benchmark once, in a
clone. If the output does not say so either, init asks you. "pawl validate" tries the
other commands.

--kind steward writes steward.yaml, for a steward of the project.`,
		RunE: a.brief(func(ctx context.Context, args []string) error {
			o.dir = "."
			if len(args) == 1 {
				o.dir = args[0]
			}
			return a.runInit(ctx, o)
		}),
	}
	cmd.Flags().StringVar(&o.kind, "kind", kind.All[0].Name, "the kind: "+spec.Or(kind.Names()))
	cmd.Flags().StringVar(&o.goal, "goal", "", "the goal, in words")
	cmd.Flags().StringVar(&o.direction, "direction", "", "which number is better: lower or higher (default: as its unit says)")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace an existing spec")
	return cmd
}

type initOptions struct {
	dir, kind, goal, direction string
	force                      bool
	starts                     bool // pawl run follows: ask for all that a loop needs
}

// firstSpec is a spec for a repository that has none, before it is written.
type firstSpec struct {
	kind    kind.Kind
	path    string
	root    string // of the repository
	tracked bool   // there is a repository
	text    string
	drafted render.Drafted
	options scaffold.Options
}

func (a *app) runInit(ctx context.Context, o initOptions) error {
	first, err := a.propose(ctx, o)
	if err != nil {
		return err
	}
	if err := a.keep(first.path, first.text, o.force); err != nil {
		return err
	}
	begun := first.tracked && userrepo.Begun(ctx, first.root)
	first.drafted.Next = next(first.kind, first.path, first.tracked, begun)
	if begun && !a.deps.Thin && first.kind.Loop {
		first.drafted.Problems = a.obstacles(ctx, first)
	}
	return a.output(first.drafted, a.style().Drafted(first.drafted, first.kind.Reference))
}

// propose drafts a spec for the repository of a folder. It asks for what it can't find out.
func (a *app) propose(ctx context.Context, o initOptions) (first firstSpec, err error) {
	k, err := kind.Of(o.kind)
	if err != nil {
		return first, usage(fmt.Sprintf("--kind is %q; it may be %s", o.kind, spec.Or(kind.Names())))
	}
	if !k.Loop && o.goal != "" {
		return first, usage("--goal is for a loop; a " + k.Name + " gets its goals from tasks")
	}
	if o.direction != "" && o.direction != "lower" && o.direction != "higher" {
		return first, usage(fmt.Sprintf("--direction is %q; it may be lower or higher", o.direction))
	}
	root, folder, tracked, err := rootOf(ctx, o.dir)
	if err != nil {
		return first, err
	}
	files, err := filesOf(ctx, root, tracked)
	if err != nil {
		return first, err
	}
	read := func(name string) string { return head(filepath.Join(root, name)) }
	found := scaffold.Look(scaffold.Checkout{Files: files, Read: read, Folder: folder, Has: installed(ctx, filepath.Join(root, folder))})
	path := filepath.Join(root, found.Folder, scaffold.File(k))
	first = firstSpec{kind: k, path: path, root: root, tracked: tracked}
	switch info, err := os.Lstat(path); {
	case err == nil && info.IsDir():
		return first, fault.New(fault.InvalidSpec, "%s is a folder", path).Advise("Move it away: the spec needs this name.")
	case err == nil && o.starts:
		return first, elsewhere(path)
	case err == nil && !o.force:
		return first, exists(path)
	}
	first.options = scaffold.Options{Goal: o.goal, Agent: scaffold.Agents[0], Name: launch.Folder(spec.Repo{Path: root}, k.Name)}
	first.drafted = render.Drafted{Path: path, Kind: k.Name, Repo: root, Agents: []string{}}
	for _, agent := range slices.Backward(scaffold.Agents) {
		if _, err := exec.LookPath(agent.Name); err == nil {
			first.options.Agent, first.options.OnPath, first.drafted.Agent = agent, true, agent.Name
			first.drafted.Agents = append([]string{agent.Name}, first.drafted.Agents...)
		}
	}
	if o.starts {
		if err := first.startable(ctx); err != nil {
			return first, err
		}
	}
	measures := k.Reference || found.Metric.Command != "" // a steward can do without
	if measures && (k.Reference || !k.Loop) {
		if err := a.settleMetric(ctx, o, root, tracked, &found); err != nil {
			return first, err
		}
	}
	if k.Reference && found.Metric.Command == "" {
		found.Missing = append(found.Missing, "nothing was found here that measures something, so verify.command and verify.direction are open: fill them in")
	}
	if k.Tests && found.Test == "" {
		found.Missing = append(found.Missing, "no tests were found, so verify.command has to say when the work is done: fill it in")
	}
	if k.Tests && o.goal == "" && !o.starts && !slices.Contains(files, "TASK.md") {
		found.Missing = append(found.Missing, "there is no TASK.md, so goal has to say what to build: fill it in")
	}
	if o.starts {
		if err := a.completeSpec(ctx, &first, &found); err != nil {
			return first, err
		}
	}
	first.drafted.Found = found
	first.text = scaffold.Spec(k, found, first.options)
	return first, nil
}

// leftToTheUser lists the keys that a draft leaves open if nothing in the repository says what is better, or when a delivery
// is done.
var leftToTheUser = []string{"verify.command", "verify.direction"}

// keep writes the spec, unless this version would refuse it for something else than what the draft leaves to the user.
func (a *app) keep(path, text string, force bool) error {
	tmp, err := written(path, text)
	if err != nil {
		return err
	}
	defer tmp.Discard()
	err = loads(tmp.Name())
	if problems, are := errors.AsType[spec.Problems](err); are {
		problems = slices.DeleteFunc(problems, func(p spec.Problem) bool { return slices.Contains(leftToTheUser, p.Key) })
		for i := range problems {
			if problems[i].File == tmp.Name() {
				problems[i].File = "the spec that would be written"
			}
		}
		if len(problems) > 0 {
			return problems
		}
	} else if err != nil {
		return err
	}
	if force {
		return tmp.Replace()
	}
	if err := tmp.Create(); errors.Is(err, fs.ErrExist) {
		return exists(path)
	} else if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// written writes a spec to a draft beside its path, since paths in it are relative to its folder.
func written(path, text string) (*durable.Draft, error) {
	tmp, err := durable.NewDraft(path, 0o644)
	if err != nil {
		return nil, fault.New(fault.InvalidSpec, "%s can't be written: %v", path, err).Advise("Name a folder that you may write to.")
	}
	if _, err = tmp.WriteString(text); err != nil {
		tmp.Discard()
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return tmp, nil
}

// elsewhere says how to start the spec that the project has in another folder than this one.
func elsewhere(path string) error {
	return fault.New(fault.InvalidSpec, "the spec of this project is %s", path).
		Advise("Start it with `pawl run " + shell.Quote(nearest(path)) + "`.")
}

func exists(path string) error {
	return fault.New(fault.InvalidSpec, "%s already exists", path).Advise("Replace it with --force, or change it by hand.")
}

// loads reads a spec of any kind.
func loads(path string) error {
	f, err := config.Open(path, nil)
	switch {
	case err != nil:
	case f.Kind.Name == kind.Steward.Name:
		_, err = f.Steward()
	default:
		_, err = f.Loop()
	}
	return err
}

// next returns the next steps for a new spec, whose repository is there, and has begun with a commit, or not.
func next(k kind.Kind, path string, tracked, begun bool) (steps []string) {
	noun, validate, start := "loop", "pawl validate", "pawl run"
	if !k.Loop {
		noun, validate, start = k.Name, "pawl validate "+scaffold.File(k), "pawl "+k.Name+" up"
	}
	if !tracked {
		steps = append(steps, "git init")
	}
	if !begun {
		steps = append(steps, "git add --all", `git commit -m "Everything so far"`)
	} else {
		steps = append(steps, "git add "+scaffold.File(k), `git commit -m "A `+noun+` of pawl" `+scaffold.File(k))
	}
	if dir, err := os.Getwd(); err == nil && dir != filepath.Dir(path) {
		steps = append([]string{"cd " + shell.Quote(filepath.Dir(path))}, steps...)
	}
	return append(steps, validate, start)
}

// rootOf returns the root of the repository that a folder is in, and the folder relative to it ("" for the root). If
// the folder is in no repository, it returns the folder itself, and tracked is false.
func rootOf(ctx context.Context, dir string) (root, folder string, tracked bool, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", "", false, err
	}
	if fi, err := os.Stat(abs); err != nil || !fi.IsDir() {
		return "", "", false, usage(fmt.Sprintf("there is no folder %s", abs))
	}
	root, err = userrepo.Root(ctx, abs)
	failed := userrepo.Failed(err)
	switch {
	case err == nil:
		if resolved, err := filepath.EvalSymlinks(abs); err == nil {
			abs = resolved
		}
		if rel, err := filepath.Rel(root, abs); err == nil && filepath.IsLocal(rel) && rel != "." {
			folder = filepath.ToSlash(rel)
		}
		return root, folder, true, nil
	case len(failed) > 0 && failed[0].Code == userrepo.NotARepository:
		return abs, "", false, nil
	case len(failed) > 0:
		return "", "", false, fault.New(fault.PreconditionFailed, "%s", failed[0].What).Advise(failed[0].Do)
	case errors.Is(err, exec.ErrNotFound):
		return "", "", false, fault.New(fault.PreconditionFailed, "git is not on the PATH").Advise("Install git " + git.MinVersion + " or later.")
	}
	return "", "", false, err
}

// maxFiles limits how many files are listed without git.
const maxFiles = 50_000

// filesOf lists the files of a repository, including those that are not added yet, or of a folder.
func filesOf(ctx context.Context, root string, tracked bool) ([]string, error) {
	if tracked {
		return userrepo.Files(ctx, root)
	}
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || len(files) > maxFiles:
			return nil
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.Type().IsRegular():
			rel, err := filepath.Rel(root, path)
			files = append(files, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	return files, err
}

// maxHead is how many bytes of a file are read.
const maxHead = 256 << 10

func head(path string) string {
	if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, maxHead)
	n, _ := f.Read(b)
	return string(b[:n])
}
