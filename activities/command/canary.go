package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"pawl/activities/commit"
	"pawl/activities/contract"
	"pawl/activities/workspace"
	"pawl/internal/exec/supervisor"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/judge/canary"
	"pawl/internal/judge/evaluator"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
	"pawl/internal/loop/api"
	"pawl/internal/metric"
	"pawl/internal/spec"
)

// CanaryStep is the name of the step. The step has its own surroundings.
const CanaryStep = "canary"

// maxBroken is how many files a canary breaks. A guard that does not notice so many broken files notices nothing.
const maxBroken = 2000

// Canary breaks the code in scope, in the judge, and runs the commands that should guard it: at least one has to
// notice. It breaks all files at once, so that a guard is never called blind because of one file that no test covers.
func (a *Runner) Canary(ctx context.Context, input api.Canary) (api.Canaried, error) {
	return Do(ctx, a, input.Step, func(ctx context.Context, w *Work) (api.Canaried, error) { return w.Canary(ctx, input) })
}

// Canary breaks the code and runs the commands that should notice, as the activity of the same name does.
func (w *Work) Canary(ctx context.Context, input api.Canary) (out api.Canaried, err error) {
	files, _, err := Code(ctx, w.Workspace, input.Spec, input.Head)
	if err != nil {
		return out, err
	}
	if err := w.Ready(ctx, w.inJudge); err != nil || len(files) == 0 {
		return out, err
	}
	out.Files, out.Broken = len(files), commit.Quoted(files[:min(len(files), git.MaxNamed)])
	defer w.Workspace.Leave(w.Workspace.Judge)
	if _, err = w.damage(files, func(file string, content []byte) ([]byte, int) { return canary.Break(file, content), 1 }); err != nil {
		return out, err
	}
	if input.Guards() {
		if out.Seen, err = w.noticed(ctx, input, files, &out); err != nil || out.Interrupted || !out.Seen {
			return out, err
		}
	}
	if input.Metric != nil {
		if err := w.measureBroken(ctx, input, &out); err != nil || out.Interrupted {
			return out, err
		}
	}
	if !input.Guards() || !input.Hollow {
		return out, nil
	}
	if err := w.inJudge(ctx); err != nil {
		return out, err
	}
	emptied, err := w.damage(files, canary.Empty)
	if err != nil || emptied == 0 {
		return out, err
	}
	out.Emptied = emptied
	noticed, err := w.noticed(ctx, input, files, &out)
	out.Hollow = !noticed && !out.Interrupted
	return out, err
}

// measureBroken measures the broken code, and then the rest without any of the files that may change: a metric may count
// something in the code that a syntax error leaves as it is. A metric that stays what it was is none of the code.
func (w *Work) measureBroken(ctx context.Context, input api.Canary, out *api.Canaried) error {
	scoped, err := inScope(ctx, w.Workspace, input.Spec, input.Head)
	if err != nil || scoped.named {
		return err // the contract has a note on a command that names the user's repository
	}
	unmoved, err := w.unmoved(ctx, input, out)
	if err != nil || !unmoved {
		return err
	}
	if err := w.remove(scoped.files); err != nil {
		return err
	}
	out.Unmoved, err = w.unmoved(ctx, input, out)
	return err
}

// unmoved reports whether verify still measures what it did on the unchanged code.
func (w *Work) unmoved(ctx context.Context, input api.Canary, out *api.Canaried) (bool, error) {
	verify := input.Spec.Verify
	ran, err := w.under(ctx, input, verify.Timeout.D(), verify.Command, metric.MetricWord, verify.Pattern)
	if err != nil {
		return false, err
	}
	if ran.Interrupted {
		out.Outcome = ran
		return false, nil
	}
	if !ran.OK() {
		return false, nil
	}
	measured := api.Measured{Outcome: ran}
	if err := w.readMetric(api.Verify{Pattern: verify.Pattern, Form: input.Form}, &measured); err != nil {
		return false, err
	}
	return measured.Metric != nil && measured.Metric.Cmp(*input.Metric) == 0, nil
}

// remove deletes files of the judge. Their folders stay.
func (w *Work) remove(files []string) error {
	root, err := os.OpenRoot(dirfd.At(w.Workspace.Judge.Dir))
	if err != nil {
		return fmt.Errorf("opening the judge: %w", err)
	}
	defer root.Close()
	for _, file := range files {
		if err := root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing %s from the judge: %w", git.Quote(file), err)
		}
	}
	return nil
}

// Sees reports whether a command notices that only these files are broken, with the outcome of the last one that ran.
func (w *Work) Sees(ctx context.Context, input api.Canary, files []string) (seen bool, out api.Outcome, err error) {
	if err := w.Ready(ctx, w.inJudge); err != nil {
		return false, out, err
	}
	defer w.Workspace.Leave(w.Workspace.Judge)
	changed, err := w.damage(files, func(file string, content []byte) ([]byte, int) { return canary.Break(file, content), 1 })
	if err != nil || changed == 0 {
		return true, out, err // there is nothing to notice
	}
	var r api.Canaried
	seen, err = w.noticed(ctx, input, nil, &r)
	return seen, r.Outcome, err
}

// Code returns the files that a canary may break, source code in scope that is not sealed, and the names of all files.
func Code(ctx context.Context, ws *workspace.Workspace, s spec.Spec, commit string) (files, names []string, err error) {
	scoped, err := inScope(ctx, ws, s, commit)
	if err != nil {
		return nil, nil, err
	}
	files = list.Filter(scoped.files, canary.Breakable)
	return files[:min(len(files), maxBroken)], scoped.names, nil
}

// scoped is what a commit has in a spec's scope.
type scoped struct {
	files []string // those that may change
	names []string // all files of the commit
	named bool     // verify names the user's repository by its path
}

func inScope(ctx context.Context, ws *workspace.Workspace, s spec.Spec, commit string) (scoped, error) {
	entries, err := ws.Objects.Entries(ctx, commit)
	if err != nil {
		return scoped{}, fmt.Errorf("listing the code: %w", err)
	}
	var out scoped
	blobs := map[string]store.TreeEntry{}
	for _, e := range entries {
		out.names, blobs[e.Path] = append(out.names, e.Path), e
	}
	read, unreadable := contract.Reading(ctx, ws, blobs)
	seals := evaluator.Find(s, out.names, read)
	measuring := s
	measuring.Guard, measuring.Test, measuring.Check, measuring.Setup = spec.Spec{}.Guard, spec.Spec{}.Test, spec.Spec{}.Check, spec.Spec{}.Setup
	out.named = len(contract.Naming(ws, measuring, evaluator.Find(measuring, out.names, read).Files, read)) > 0
	if err := unreadable(); err != nil {
		return scoped{}, err
	}
	for _, e := range entries {
		if contract.Regular(e) && s.Match(e.Path) && !seals.Has(e.Path) {
			out.files = append(out.files, e.Path)
		}
	}
	return out, nil
}

// damage rewrites files of the judge, and returns how many it has changed.
func (w *Work) damage(files []string, change func(string, []byte) ([]byte, int)) (changed int, err error) {
	root, err := os.OpenRoot(dirfd.At(w.Workspace.Judge.Dir))
	if err != nil {
		return 0, fmt.Errorf("opening the judge: %w", err)
	}
	defer root.Close()
	for _, file := range files {
		st, err := root.Lstat(file)
		if err != nil || !st.Mode().IsRegular() || st.Size() > workspace.MaxOutput {
			continue // setup has put something else in its place
		}
		content, err := root.ReadFile(file)
		if err != nil {
			return changed, fmt.Errorf("reading the code: %w", err)
		}
		broken, n := change(file, content)
		if n == 0 {
			continue
		}
		if err := root.WriteFile(file, broken, st.Mode().Perm()); err != nil {
			return changed, fmt.Errorf("breaking the code: %w", err)
		}
		changed++
	}
	return changed, nil
}

// noticed runs the commands until one fails in a new way. If none does, it looks for the code that they use instead.
func (w *Work) noticed(ctx context.Context, input api.Canary, files []string, out *api.Canaried) (bool, error) {
	out.Instead = nil
	for _, c := range []struct {
		command string
		limit   spec.Duration
	}{{input.Guard, input.Spec.Guard.Timeout}, {input.Test, input.Spec.Test.Timeout}} {
		if c.command == "" {
			continue
		}
		r, err := w.under(ctx, input, c.limit.D(), c.command)
		if out.Outcome = r; err != nil || r.Interrupted {
			return false, err
		}
		if !r.OK() && (c.command != input.Test || input.Signature == "") { // the command has noticed it
			out.ExitCode, out.Signal, out.TimedOut, out.Tail = 0, "", false, ""
			return true, nil
		}
		if c.command == input.Test && input.Signature != "" { // it failed before, so it has to fail in another way
			tests, err := readTests(&r, api.Test{}, w.Dir)
			if err != nil || tests.Signature != input.Signature {
				return err == nil, err
			}
		}
		out.Instead = append(out.Instead, w.mentioned()...)
	}
	origins, err := w.origins(ctx, input, files)
	out.Instead = append(out.Instead, origins...)
	slices.Sort(out.Instead)
	if out.Instead = slices.Compact(out.Instead); len(out.Instead) > git.MaxNamed {
		out.Instead = out.Instead[:git.MaxNamed]
	}
	return false, err
}

// under runs one of several commands of the step, and finds texts in its output, as shell does. Each has its own limit, and all together have that of the step.
func (w *Work) under(ctx context.Context, input api.Canary, limit time.Duration, command string, find ...string) (api.Outcome, error) {
	spent, err := supervisor.ReadProgress(filepath.Join(w.Dir, ProgressFile))
	if err != nil {
		return api.Outcome{}, fmt.Errorf("reading what the step has spent: %w", err)
	}
	w.In.LimitMs = min((spent + limit).Milliseconds(), input.LimitMs)
	return w.shell(ctx, w.Workspace.Judge.Dir, command, find...)
}

// mentioned returns files of the user's repository that the last command named in its output.
func (w *Work) mentioned() (names []string) {
	repo := w.Workspace.Local()
	if repo == "" {
		return nil
	}
	named := regexp.MustCompile(regexp.QuoteMeta(repo) + `[^\s'"():,;]*`)
	for _, name := range []string{"stdout", "stderr"} {
		printed, _ := workspace.ReadFile(filepath.Join(w.Dir, name), workspace.MaxOutput)
		for _, path := range named.FindAll(printed, git.MaxNamed) {
			names = append(names, workspace.Said(string(path))+", in your repository")
		}
	}
	return names
}

var (
	pythonWord = lazyregexp.New(`[\w./-]*\bpython[\d.]*\b`)
	besideIt   = lazyregexp.New(`([\w./-]+/)(?:pytest|py\.test|tox|nox)\b`)
)

// origins returns where Python takes the broken packages from, if not from the judge, as after an editable install.
func (w *Work) origins(ctx context.Context, input api.Canary, files []string) (items []string, err error) {
	names := packages(files)
	if len(names) == 0 {
		return nil, nil
	}
	python := "python3"
	if found := pythonWord().FindString(input.Guard + " " + input.Test); found != "" {
		python = found
	} else if found := besideIt().FindStringSubmatch(input.Guard + " " + input.Test); found != nil {
		python = found[1] + "python"
	}
	const program = `import importlib.util as u, sys
sys.path = [p for p in sys.path if p]
for n in sys.argv[1:]:
    try: s = u.find_spec(n)
    except Exception: continue
    if s: print(n + "\t" + (s.origin or list(s.submodule_search_locations)[0]))`
	r, err := w.under(ctx, input, 20*time.Second, shell.Quote(python)+" -c "+shell.Quote(program)+" "+strings.Join(names, " "))
	if err != nil || !r.OK() { // this Python does not exist, so nothing is known
		return nil, err
	}
	printed, err := workspace.ReadFile(filepath.Join(w.Dir, "stdout"), workspace.MaxOutput)
	for line := range strings.Lines(string(printed)) {
		name, origin, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if ok && !strings.HasPrefix(origin, w.Workspace.Judge.Dir+"/") {
			items = append(items, "`import "+name+"` takes "+workspace.Said(origin))
		}
	}
	return items, err
}

var identifier = lazyregexp.New(`^[A-Za-z_]\w*$`)

// packages returns the top-level Python packages of files.
func packages(files []string) (names []string) {
	for _, file := range files {
		file = strings.TrimPrefix(strings.TrimPrefix(file, "src/"), "lib/")
		name, isPython := strings.CutSuffix(file, ".py")
		if top, _, nested := strings.Cut(file, "/"); nested {
			name = top
		}
		if isPython && identifier().MatchString(name) && !slices.Contains(names, name) && len(names) < git.MaxNamed {
			names = append(names, name)
		}
	}
	return names
}
