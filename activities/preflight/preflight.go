// Package preflight finds, without Temporal, what a loop of a spec would meet before it starts. Start at DryRun.
package preflight

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/activities/agentcall"
	"pawl/activities/baseline"
	"pawl/activities/contract"
	"pawl/activities/open"
	"pawl/activities/workspace"
	"pawl/internal/exec/sandbox"
	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/git"
	"pawl/internal/git/userrepo"
	"pawl/internal/home"
	"pawl/internal/ledger"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

// Findings is what a loop would find before it starts (P0), and the contract that it would ask a person to approve.
type Findings struct {
	Repo     string
	Branch   string           // the branch of the loop
	Contract *ledger.Contract // nil if there is no commit to start from
	InScope  int              // how many files may change
	Baseline *metric.Decimal
	Spread   string       // how far evaluations of the unchanged code differ, in a few words, "" if they do not
	Noise    string       // how the loop judges a metric that varies, "" if it does not vary
	Verify   *api.Outcome // nil if it did not run
	Printed  string       // the end of what verify printed
	Guard    *api.Outcome
	Test     *api.Outcome // for a Deliver loop
	// Leftovers are files that the commands leave behind and git does not ignore.
	Leftovers []string
	// Problems keep the loop from starting. Notes are what the author of the spec should know.
	Problems []Problem
	Notes    []string
	// Protections are the sentences about this host's sandbox that hold.
	Protections []string
	Claims      int      // how many claims about the sandbox were tried
	Lacks       []string // what the sandbox does not protect
	// Environment says which part of this process's environment agent and commands get.
	Environment []string

	steps  []baseline.Step // what a loop would run on the unchanged code in the same way
	unsure bool            // these steps say too little, or may say something else next time
}

// Problem is one thing that keeps a loop from starting, or a steward from working.
type Problem struct {
	Check string `json:"check"`          // repository, scope, setup, agent, verify, guard, test, check; spec; a steward's secret
	Key   string `json:"key,omitempty"`  // of the spec, with the file and the line, if they are known
	Code  string `json:"code,omitempty"` // of a precondition of the repository, such as dirty-tree
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
}

// DryRun opens a loop of the spec, without Temporal, in its own folder, which is removed afterwards. The code of a
// worker checks the repository, draws the contract, and runs verify and guard on the unchanged code. After a problem
// DryRun continues as far as possible, so that it reports all problems at once. It only reads the user's repository.
// It calls tell at the beginning of each step, because a step may take minutes.
func DryRun(ctx context.Context, h home.Home, id string, s spec.Spec, tell func(step string)) (Findings, error) {
	return findings(ctx, h, id, s, tell, true)
}

// Start finds what DryRun finds before it measures anything: the repository, the scope, agents, and programs. It takes
// about a second.
func Start(ctx context.Context, h home.Home, id string, s spec.Spec) (Findings, error) {
	return findings(ctx, h, id, s, func(string) {}, false)
}

// findings finds what a loop of the spec would meet. measures says to run its commands too.
func findings(ctx context.Context, h home.Home, id string, s spec.Spec, tell func(step string), measures bool) (out Findings, err error) {
	dir, discard, err := scratch(h)
	if err != nil {
		return Findings{}, err
	}
	defer discard()
	a := workspace.New(home.Home{Dir: dir}, "", "", "", false)
	a.Main = h
	if len(a.EnginePorts()) == 0 {
		a.Closed = []int{workspace.StockPort, workspace.StockUI} // the engine's ports, unless they are taken
	}
	defer a.Stop()
	input := api.Open{Loop: id, FirstRun: "validate-" + filepath.Base(dir), Spec: s}

	tell("repository")
	var source userrepo.Source
	repo, err := workspace.Find(ctx, s.Repo)
	if err == nil {
		defer repo.Close()
		source, err = open.Inspect(ctx, a.Machine, repo, s.Repo, id)
	}
	failed := userrepo.Failed(err)
	if p := open.Unfit(s.Mode); p != nil {
		out.problem("spec", p.What, p.Do)
	}
	for _, pre := range failed {
		out.Problems = append(out.Problems, Problem{Check: "repository", Code: pre.Code, What: pre.What, Do: pre.Do})
	}
	if err != nil && len(failed) == 0 {
		return out, plainly(open.Precondition(ctx, err))
	}
	if source.Head == "" {
		return out, nil
	}
	record, err := open.Enroll(a.Machine, open.RequestOf(a.Machine, input), repo, source)
	if err != nil {
		return out, err
	}
	record.Short = shortName(dir)
	ws, err := a.OpenWorkspace(ctx, record)
	if err != nil {
		return out, err
	}
	a.Keep(ws)
	defer func() { out.relative(strings.NewReplacer(ws.Judge.Dir+"/", "", ws.Desk.Dir+"/", "")) }()
	out.Repo, out.Branch = ws.Repo, git.BranchName(record.Branch)
	base, err := open.Base(ctx, ws, source)
	if err != nil {
		err = out.unmet("repository", err)
		return out, err
	}
	d, err := contract.Draw(ctx, ws, s, base)
	if err != nil {
		return out, err
	}
	out.Contract, out.InScope = &d.Contract, d.InScope
	if f := d.Closed(ws, s); f != nil {
		about := "scope"
		if f.Code == fault.InvalidSpec {
			about = "spec"
		}
		out.problem(about, f.What, f.Do)
	} else if clash := slices.DeleteFunc(d.Clash, func(name string) bool { return spec.MatchAny(s.Protect, name) }); len(clash) > 0 {
		out.Notes = append(out.Notes, "these files match the scope but are sealed, since they judge the work: "+git.QuoteSome(clash)+". To let tests change, name them in the scope. To let code change that the guard command names, put the command into a script, such as check.sh")
	}
	protection, err := ws.Protections(ctx)
	if err != nil {
		return out, err
	}
	out.Protections, out.Claims, out.Lacks = protection.Lines, protection.Claims, protection.Lacks
	named, err := ws.Named(s)
	if err != nil {
		return out, err
	}
	out.Protections = append(out.Protections, named...)
	out.Environment = rules.Environment(s, os.Environ())
	if env, runs := workspace.WorkersEnvironment(h); runs {
		if names := workspace.DifferingHere(env); len(names) > 0 {
			out.Notes = slices.Insert(out.Notes, 0, workspace.OtherEnvironment(names))
		}
		ws.Env = env
	}
	counting, key, err := agentcall.Counting(ws, s)
	out.Environment = append(out.Environment, counting...)
	if err := out.unmet(key, err); err != nil {
		return out, err
	}
	tell("programs")
	ready, err := open.ReadyToStart(ctx, ws, s, d)
	for _, p := range ready.Problems {
		out.problem(p.Check, p.What, p.Do)
	}
	out.Notes = append(out.Notes, ready.Notes...)
	if err != nil {
		return out, err
	}
	out.Notes = append(out.Notes, rules.SpecNotes(s)...)
	out.notes(s, d)
	if !measures || len(ready.Problems) > 0 { // what is measured without them would have to be measured again
		return out, nil
	}
	if err := dryRuns(ctx, ws, input, d, &out, tell); err != nil || len(out.Problems) > 0 {
		return out, err
	}
	if err := out.listed(ctx, ws, s, d, tell); err != nil {
		return out, plainly(err)
	}
	if len(protection.Broken) == 0 || sandbox.OnlyBounds(protection.Broken) {
		out.keep(ctx, h, ws, s, d.Contract)
	}
	return out, nil
}

// inTime returns further advice for a command that took too long.
func inTime(key, command string, r api.Outcome) string {
	if !r.TimedOut {
		return ""
	}
	return " " + rules.SlowAdvice(key, command, r.Tail)
}

// leaves adds a note about files that a command has left in the tree. A loop finds these itself for the commands that
// it runs on the unchanged code, and for its check. A report that the spec names is meant to be left.
func (f *Findings) leaves(k kind.Kind, s *spec.Spec, name string, r api.Outcome) {
	reports := append(s.GuardReports(), s.TestReports()...)
	isKnown := func(left string) bool {
		return slices.Contains(f.Leftovers, left) || spec.MatchAny(reports, left)
	}
	left := slices.DeleteFunc(slices.Clone(r.Leftovers), isKnown)
	if len(left) == 0 {
		return
	}
	f.Leftovers = append(f.Leftovers, left...)
	note := "pawl leaves these files out of every change. Add them to .gitignore to keep them out of your own commits too"
	if k.Mends && name == "verify" {
		note = "If an agent runs the command, these files become part of its change: add them to .gitignore"
	}
	f.Notes = append(f.Notes, fmt.Sprintf("the %s command leaves files behind that git does not ignore (%s). %s", name, git.QuoteSome(left), note))
}

// altered adds the problem of a command that changes tracked files of the code that it judges.
func (f *Findings) altered(key, command string, r api.Outcome) {
	f.problem(key, fmt.Sprintf("the %s command changes files of the unchanged code (%s): `%s`", key, strings.Join(r.Altered, ", "), command), rules.AlteredAdvice(key, r.Altered))
}

func (f *Findings) problem(check, text, do string) {
	f.Problems = append(f.Problems, Problem{Check: check, What: text, Do: do})
}

// unmet adds a problem for a precondition that does not hold. It returns any other error.
func (f *Findings) unmet(check string, err error) error {
	if refused := wire.Decode(err); refused != nil && refused.Code == fault.PreconditionFailed {
		f.problem(check, refused.What, refused.Do)
		return nil
	}
	return plainly(err)
}

// notes adds the notes about the contract, including those about which the loop would warn too.
func (f *Findings) notes(s spec.Spec, d contract.Drawn) {
	f.Notes = append(f.Notes, d.Warnings...)
	open := slices.DeleteFunc(slices.Clone(d.Unsealed), func(dir string) bool {
		return !slices.ContainsFunc(d.Names, func(name string) bool { return strings.HasPrefix(name, dir+"/") && s.Match(name) })
	})
	if len(open) > 0 {
		f.Notes = append(f.Notes, "your commands name folders in which the agent may change files: "+git.QuoteSome(open)+". Add the files that must not change to protect")
	}
}

// relative makes paths in the trees paths in the repository: the trees are gone when somebody reads them.
func (f *Findings) relative(trees *strings.Replacer) {
	f.Printed = trees.Replace(f.Printed)
	for i := range f.Problems {
		f.Problems[i].What = trees.Replace(f.Problems[i].What)
	}
	for i := range f.Notes {
		f.Notes[i] = trees.Replace(f.Notes[i])
	}
}

func tailed(r api.Outcome) string {
	if r.Tail == "" {
		return ""
	}
	return "\n" + r.Tail
}

// plainly returns the fault that a worker would report to the service, without its encoding.
func plainly(err error) error {
	if f := wire.Decode(err); f != nil {
		return f
	}
	return err
}
