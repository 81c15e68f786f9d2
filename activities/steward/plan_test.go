package steward_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/activities"
	"pawl/internal/exec/sandbox"
	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
	"pawl/test/harness/actest"
	"pawl/test/harness/gittest"
)

// defaults are the defaults of the loops of a steward under test.
var defaults = map[string]any{
	"scope": []any{"work/**"}, "verify": map[string]any{"command": "true"}, "agent": map[string]any{"command": []any{"true"}},
	"approvals": map[string]any{"tools": []any{"*"}},
}

// planner returns a change of the charter that adds loops and a planner that runs a script.
func planner(script string, more map[string]any) func(map[string]any) {
	return func(doc map[string]any) {
		doc["defaults"] = defaults
		if script != "" {
			doc["agent"] = map[string]any{"roles": map[string]any{"planner": map[string]any{"command": script}}}
		}
		for key, v := range more {
			doc[key] = v
		}
	}
}

func TestS3_ATaskThatBringsItsStepsIsPlannedWithoutAPlanner(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, map[string]string{"RULES.md": "be kind\n"}, planner("", map[string]any{"governance": []any{"RULES.md"}}))
	s.Submit("one", `{"goal": "better", "scope": ["work/a"]}`)
	p := s.Plan("one", nil)
	require.Empty(t, p.Problems)
	require.Empty(t, p.Blockers)
	require.Equal(t, "task", p.Plan.By)
	require.Len(t, p.Plan.Steps, 1)
	require.NotEmpty(t, p.Tier)
	require.NotEmpty(t, p.TierReasons)
	require.Zero(t, p.Estimate.N)
	require.Equal(t, s.Opened.Base, p.Base)
	require.Equal(t, p.Plan, s.Plan("one", nil).Plan, "a retry has the same")

	s.Append(loop.Event{Type: loop.PlanMade, Task: "one", TaskPlan: p.Plan})
	s.Whole()
	text := gittest.Git(t, s.User, "-C", charterStore(s), "show", s.Ledger+":tasks/one/PLAN.md")
	require.Contains(t, text, "goal: better")
	exported, err := os.ReadFile(filepath.Join(s.Opened.Export, "tasks/one/PLAN.md"))
	require.NoError(t, err)
	require.Equal(t, text+"\n", string(exported))
	gittest.Git(t, s.User, "commit", "-qm", "further", "--allow-empty")
	gittest.Write(t, s.User+"/RULES.md", "be strict\n")
	gittest.Git(t, s.User, "commit", "-qam", "other rules")
	second := s.Plan("one", func(in *stewardapi.PlanTask) { in.Key.Iteration = 1 })
	require.NotEqual(t, p.Governance, second.Governance)
	require.NotEqual(t, p.Base, second.Base)
}

func TestS12_APlanIsAssessedOnceMoreAsItIs(t *testing.T) {
	t.Parallel()
	script := `printf '%b' '` + goodPlan + `' > "$PAWL_PLAN"`
	s := actest.BeginSteward(t, map[string]string{"RULES.md": "be kind\n"}, planner(script, map[string]any{"governance": []any{"RULES.md"}}))
	s.Append(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "better"}})
	p := s.Plan("one", nil)
	require.NotNil(t, p.Plan, p.Problems)
	require.Equal(t, p.Governance, s.ValidateWith().Governance)
	s.Append(loop.Event{Type: loop.PlanMade, Task: "one", TaskPlan: p.Plan})

	gittest.Write(t, s.User+"/RULES.md", "be strict\n")
	gittest.Git(t, s.User, "commit", "-qam", "other rules")
	require.NotEqual(t, p.Governance, s.ValidateWith().Governance)
	s.Charter = s.Chartered(planner("exit 9", map[string]any{"governance": []any{"RULES.md", "work/**"}}))
	assess := func(hash string) stewardapi.TaskPlanned {
		return s.Plan("one", func(in *stewardapi.PlanTask) { in.Key.Name, in.Again = "assess-one", hash })
	}
	second := assess(p.Plan.Hash)
	require.Empty(t, second.Problems)
	require.Equal(t, p.Plan, second.Plan, "nobody is asked for another one")
	require.Equal(t, task.T2, p.Tier)
	require.Equal(t, task.T1, second.Tier)
	require.True(t, second.Governs)
	s.Append(loop.Event{Type: loop.TierSet, Task: "one", Tier: second.Tier, By: second.TierBy, TaskPlan: second.Plan})
	s.Whole()
}

// charterStore returns the folder of the steward's store.
func charterStore(s *actest.Steward) string {
	st, _ := s.Book()
	return st.Dir()
}

const goodPlan = "---\\ntier: T2\\nsteps:\\n  - id: first\\n    kind: improve\\n    spec: {goal: g, scope: [work/a]}\\n---\\n\\n# why\\n"

func TestS3_ThePlannerPlansOnADeskOfWhichNothingStays(t *testing.T) {
	t.Parallel()
	script := `cat > "$PAWL_RESULT.in"; grep -q 'be kind' "$PAWL_RESULT.in" && grep -q 'think of b' "$PAWL_RESULT.in" && grep -q 'work/a' "$PAWL_RESULT.in" || exit 9
echo changed > work/a; touch new; printf '%b' '` + goodPlan + `' > "$PAWL_PLAN"; echo '{"costUSD": 0.25, "toolCalls": 3}' > "$PAWL_RESULT"`
	s := actest.BeginSteward(t, map[string]string{"RULES.md": "be kind\n"}, planner(script, map[string]any{"governance": []any{"RULES.md"}}))
	s.Append(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "better", Body: "in all ways"}})
	p := s.Plan("one", func(in *stewardapi.PlanTask) { in.Note = "think of b" })
	require.Empty(t, p.Problems)
	require.NotNil(t, p.Plan, p.Ending()+p.Tail)
	require.Equal(t, "planner", p.Plan.By)
	require.Equal(t, task.T2, p.Plan.Tier)
	require.Equal(t, "0.25", p.Usage.CostUSD.String())
	require.Equal(t, 3, p.Usage.ToolCalls)
	require.NoDirExists(t, s.Opened.Desk)
	require.Empty(t, gittest.Git(t, s.User, "status", "--porcelain"))
	calls := filepath.Join(s.Home.Dir, "calls")
	require.NoFileExists(t, calls)

	s.StartWorker() // a retry by another worker does not ask the planner again
	require.Equal(t, p.Plan, s.Plan("one", func(in *stewardapi.PlanTask) { in.Note = "another" }).Plan)
}

func TestS3_APlanIsWhatThePlannerPrintsWhereItWritesNone(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, planner("printf '%b' '```markdown\\n"+goodPlan+"```\\n'", nil))
	s.Append(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "better"}})
	p := s.Plan("one", nil)
	require.Empty(t, p.Problems)
	require.NotNil(t, p.Plan)
}

func TestS3_WhatIsWrongWithAPlanIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec, plan, script string
		more               map[string]any
		problem            string
	}{
		"a command that nobody allowed": {spec: `{"goal": "g", "verify": {"command": "curl example.org"}}`, problem: "may not be used"},
		"a key that the steward sets":   {plan: "---\\nsteps:\\n  - {id: a, kind: improve, spec: {goal: g, session: {user: root}}}\\n---\\n", problem: "session"},
		"a scope without files":         {spec: `{"goal": "g", "scope": ["nowhere/**"]}`, problem: "matches no file"},
		"no front matter":               {plan: "just do it\\n", problem: "front matter"},
		"no plan":                       {plan: "\\n", problem: "has made none"},
		"a spec that is none":           {plan: "---\\nsteps:\\n  - {id: a, kind: improve, spec: {goal: g, verify: {timeout: soon}}}\\n---\\n", problem: "timeout"},
		"a file that can't be read":     {script: `mkdir "$PAWL_PLAN"`, problem: "PLAN.md can't be read"},
		"neither a planner nor a plan":  {problem: "no planner"},
	} {
		t.Run(name, func(t *testing.T) {
			script := c.script
			if c.plan != "" {
				script = "printf '%b' '" + c.plan + "'"
			}
			s := actest.BeginSteward(t, nil, planner(script, c.more))
			s.Append(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "t", Spec: json.RawMessage(c.spec)}})
			p := s.Plan("one", nil)
			require.NotEmpty(t, p.Problems)
			require.Contains(t, p.Problems[0], c.problem)
		})
	}
}

func TestS3_APlanMayBeginWithNewFilesAlone(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, planner("printf '%b' '---\\nsteps:\\n  - {id: a, kind: deliver, spec: {goal: g, scope: [\"new/**\"], newFiles: allow, test: {command: \"true\"}}}\\n---\\n'", nil))
	s.Append(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "t"}})
	p := s.Plan("one", nil)
	require.Empty(t, p.Problems)
	require.NotNil(t, p.Plan)
}

func TestS3_BlockersAreNamed(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, planner("", nil))
	s.Submit("before", `{}`)
	s.Append(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", After: []string{"before"}, Spec: json.RawMessage(`{"goal": "g", "agent": {"command": ["no-such-agent"]}, "guard": {"command": "true && no-such-tool --all"}}`)}})
	gittest.Write(t, s.User+"/work/a", "not committed\n")
	p := s.Plan("one", func(in *stewardapi.PlanTask) {
		in.Claims = []stewardapi.Claim{{Task: "other", Scope: []string{"work/*"}}}
	})
	require.Len(t, p.Blockers, 4, p.Blockers)
	for i, want := range []string{"not clean", "no-such-agent", "guard.command needs no-such-tool, which is not on the PATH", "the task before, which is not done"} {
		require.Contains(t, p.Blockers[i], want)
	}
	require.Equal(t, []stewardapi.Meeting{{Task: "other", On: "work/a"}}, p.Meets, "named, and no reason to wait: each task has a branch of its own")

	s.Append(loop.Event{Type: loop.TaskSubmitted, Task: "two", Submitted: &task.Task{ID: "two", Spec: json.RawMessage(`{"goal": "g", "setup": {"command": "sh install.sh"}, "guard": {"command": "no-such-tool --all"}}`)}})
	gittest.Git(t, s.User, "commit", "-qam", "committed")
	require.Empty(t, s.Plan("two", nil).Blockers, "setup may bring it")
}

// TestS3_AnOutageOfTheNetworkBlocksNoTask: a planner, and a loop that begins, wait until the network is back. Only if it
// stays away is a person asked.
func TestS3_AnOutageOfTheNetworkBlocksNoTask(t *testing.T) {
	t.Parallel()
	var remote *actest.Remote
	s := actest.BeginSteward(t, nil, func(doc map[string]any) {
		planner("", nil)(doc)
		remote = actest.NewRemote(t, doc["repo"].(map[string]any)["path"].(string))
		doc["repo"] = map[string]any{"url": remote.URL}
	})
	s.Submit("one", `{"goal": "better", "scope": ["work/a"]}`)
	plan := func(away int32) (out stewardapi.TaskPlanned) {
		remote.Away.Store(away)
		in := stewardapi.PlanTask{
			Step: api.Step{Ref: s.Opened.Ref, Key: api.Key{Name: "plan-one", Iteration: int(away)}, LimitMs: 60_000}, Steward: "shop", Ledger: s.Ledger, Charter: s.Charter, Task: "one",
		}
		require.NoError(t, actest.Retried(t, s.PlanTask, in, &out))
		return out
	}
	p := plan(3)
	require.Empty(t, p.Blockers)
	require.NotNil(t, p.Plan)
	p = plan(1000)
	require.Len(t, p.Blockers, 1)
	require.Contains(t, p.Blockers[0], "can't be reached")
	require.Nil(t, p.Plan)

	sp, err := spec.Parse(fmt.Appendf(nil, `{"goal": "g", "repo": {"url": %q}, "scope": ["work/**"], "verify": {"command": "true"}, "agent": {"command": ["true"]}, "approvals": {"tools": ["*"]}}`, remote.URL))
	require.NoError(t, err)
	for away, want := range map[int32]string{3: "", 1000: "can't be reached"} {
		remote.Away.Store(away)
		err := actest.Retried(t, s.Open, api.Open{Loop: "x", FirstRun: fmt.Sprint(away), Spec: sp}, &api.Opened{})
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
			require.True(t, wire.Is(err, fault.PreconditionFailed), err)
		}
	}
}

func TestS3_WhereThePlannerAsksItIsUnclear(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, planner(`echo '{"giveUp": "which of the two?"}' > "$PAWL_RESULT"`, nil))
	s.Append(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "better"}})
	p := s.Plan("one", nil)
	require.Equal(t, []string{"which of the two?"}, p.Unclear)
	require.Nil(t, p.Plan)
}

func TestS7_WhatAHandHasChangedIsReportedAndLeftAlone(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, planner("", nil))
	s.Submit("one", `{"goal": "g"}`)
	p := s.Plan("one", nil)
	require.NotNil(t, p.Plan, p.Problems)
	made := loop.Event{Type: loop.PlanMade, Task: "one", TaskPlan: p.Plan}
	require.Empty(t, s.Append(made).Drift)
	file := filepath.Join(s.Opened.Export, "tasks/one/PLAN.md")
	ours, err := os.ReadFile(file)
	require.NoError(t, err)
	validate := func() []task.Drift {
		v, err := s.Validate(t.Context(), stewardapi.Validate{Ref: s.Opened.Ref, Ledger: s.Ledger, Charter: s.Charter})
		require.NoError(t, err)
		return v.Drift
	}
	require.Empty(t, validate())
	for name, do := range map[string]func(){
		"edited":          func() { gittest.Write(t, file, "mine\n") },
		"deleted":         func() { require.NoError(t, os.Remove(file)) },
		"no regular file": func() { require.NoError(t, os.Remove(file)); require.NoError(t, os.Symlink("/etc/passwd", file)) },
		"a folder is no": func() {
			require.NoError(t, os.RemoveAll(filepath.Dir(file)))
			gittest.Write(t, filepath.Dir(file), "x")
		},
	} {
		do()
		found := validate()
		require.Len(t, found, 1, name)
		require.Equal(t, task.DriftArtifact, found[0].Name)
		require.Equal(t, "tasks/one/PLAN.md", found[0].What)
		out := s.Append(made)
		require.Equal(t, found, out.Drift, name)
		// A person wants pawl's version back.
		out = s.Append(loop.Event{Type: loop.GateClosed, Drift: &found[0], Answer: &loop.Answer{Gate: "g", Choice: "restore"}})
		require.Empty(t, out.Drift, name)
		now, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(ours), string(now), name)
		require.Empty(t, validate(), name)
	}
	gittest.Write(t, file, "mine\n")
	out := s.Append(loop.Event{Type: loop.GateClosed, Drift: &validate()[0], Answer: &loop.Answer{Gate: "g", Choice: "keep"}})
	require.Empty(t, out.Drift)
	require.Empty(t, s.Append(made).Drift)
	require.Empty(t, validate())
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(now), "it is theirs now")
	s.StartWorker()
	gittest.Write(t, file, "mine again\n")
	require.Len(t, validate(), 1)
}

// The gate stays until a person closes it, and says that there is nothing left to restore.
func TestS12_AnArtifactThatIsPutRightByHandIsSaidToBe(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, planner("", nil))
	s.Submit("one", `{"goal": "g"}`)
	made := loop.Event{Type: loop.PlanMade, Task: "one", TaskPlan: s.Plan("one", nil).Plan}
	s.Append(made)
	file := filepath.Join(s.Opened.Export, "tasks/one/PLAN.md")
	ours, err := os.ReadFile(file)
	require.NoError(t, err)
	another := loop.Event{Type: loop.Warned, Reason: "something else"}
	found := func() task.Drift {
		v := s.ValidateWith()
		require.Len(t, v.Drift, 1)
		require.NotContains(t, names(v.Well), "artifact tasks/one/PLAN.md")
		s.Append(loop.Event{Type: loop.DriftFound, Drift: &v.Drift[0]})
		return v.Drift[0]
	}
	gittest.Write(t, file, "theirs\n")
	edited := found()
	require.Empty(t, s.Append(another).Well)
	gittest.Write(t, file, string(ours))
	well := task.Drift{Name: task.DriftArtifact, What: "tasks/one/PLAN.md", Text: file + " is again as pawl wrote it"}
	require.Contains(t, s.ValidateWith().Well, well)
	require.Equal(t, []task.Drift{well}, s.Append(another).Well, "the next entry has seen it, too")

	kept := loop.Event{Type: loop.GateClosed, Drift: &edited, Answer: &loop.Answer{Gate: "g", Choice: steward.Keep}}
	gittest.Write(t, file, "theirs\n")
	s.Append(kept)
	require.NoError(t, os.Remove(file))
	deleted := found()
	gittest.Write(t, file, "theirs\n")
	well.Text = file + " is again as you kept it"
	require.Equal(t, []task.Drift{well}, s.Append(another).Well)
	deleted.Well = well.Text
	restore := loop.Event{Type: loop.GateClosed, Drift: &deleted, Answer: &loop.Answer{Gate: "g", Choice: steward.Restore}}
	gittest.Write(t, file, "something else\n")
	require.Len(t, s.Append(restore, made).Drift, 1, "nobody was asked about that")
	gittest.Write(t, file, "theirs\n")
	require.Empty(t, s.Append(restore, made).Drift)
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(ours), string(now))
	// What was kept is said to be over as well.
	gittest.Write(t, file, "theirs\n")
	edited = found()
	s.Append(kept)
	require.Empty(t, s.Append(another).Well, "it is as they have kept it")
	gittest.Write(t, file, string(ours))
	well.Text = file + " is again as pawl wrote it"
	require.Equal(t, []task.Drift{well}, s.Append(another).Well)

	mode := func(remove func(string) error, put func(string)) stewardapi.Validated {
		require.NoError(t, remove(s.Opened.Export))
		put(s.Opened.Export)
		v := s.ValidateWith()
		for i := range v.Drift {
			s.Append(loop.Event{Type: loop.DriftFound, Drift: &v.Drift[i]})
		}
		return v
	}
	require.Equal(t, []string{"artifact .pawl"}, names(mode(func(dir string) error { return os.Rename(dir, dir+"-away") }, func(dir string) { gittest.Write(t, dir, "x") }).Drift))
	require.Contains(t, names(mode(os.Remove, func(dir string) { require.NoError(t, os.Rename(dir+"-away", dir)) }).Well), "artifact .pawl")
}

func TestS11_AMovedLedgerHasItsName(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, nil)
	s.Submit("one", `{}`)
	s.Stop()
	gittest.Git(t, s.User, "update-ref", "refs/pawl-ledger/shop", s.Opened.Base)
	v, err := s.Validate(t.Context(), stewardapi.Validate{Ref: s.Opened.Ref, Ledger: s.Ledger, Charter: s.Charter})
	require.NoError(t, err)
	require.Len(t, v.Drift, 1)
	require.Equal(t, task.DriftLedger, v.Drift[0].Name)
	require.Equal(t, s.Opened.Base, v.Drift[0].Theirs)
	s.Append(loop.Event{Type: loop.DriftFound, Drift: &v.Drift[0]})
	s.Stop() // it may be pushing
	gittest.Git(t, s.User, "fetch", "-q", charterStore(s), "+refs/pawl-ledger/shop:refs/pawl-ledger/shop")
	require.Contains(t, names(s.ValidateWith().Well), v.Drift[0].Name+" "+v.Drift[0].What)
	v, err = s.Validate(t.Context(), stewardapi.Validate{Ref: s.Opened.Ref, Ledger: s.Opened.Base, Charter: s.Charter})
	require.NoError(t, err)
	require.NotEmpty(t, v.Drift)
}

func TestS12_AMovedLedgerIsPushedBackOnlyAfterTheAnswer(t *testing.T) {
	t.Parallel()
	const ref = "refs/pawl-ledger/shop"
	for name, c := range map[string]struct{ to, how string }{
		"to an earlier entry":   {"HEAD~1", "was moved back by somebody else"},
		"to the first entry":    {"FIRST", "was moved back by somebody else"},
		"to a code commit":      {"BASE", "was moved by somebody else"},
		"to a commit of theirs": {"THEIRS", "was moved by somebody else"},
		"deleted":               {"", "was deleted by somebody else"},
	} {
		for _, choice := range []string{steward.Restore, steward.Keep} {
			t.Run(name+", "+choice, func(t *testing.T) {
				s := actest.BeginSteward(t, nil, nil)
				s.Stop() // pushes the due push
				first := gittest.Git(t, s.User, "rev-parse", ref)
				s.Submit("one", `{}`)
				s.Stop()
				s.Submit("two", `{}`)
				s.Stop()
				require.Equal(t, s.Ledger, gittest.Git(t, s.User, "rev-parse", ref))
				to := ""
				switch c.to {
				case "HEAD~1":
					to = gittest.Git(t, s.User, "rev-parse", ref+"~1")
				case "FIRST":
					to = first
				case "BASE":
					to = s.Opened.Base
				case "THEIRS":
					to = gittest.Git(t, s.User, "commit-tree", "-m", "theirs", "-p", ref, ref+"^{tree}")
				}
				there := func() string { return gittest.Git(t, s.User, "for-each-ref", "--format=%(objectname)", ref) }
				if to == "" {
					gittest.Git(t, s.User, "update-ref", "-d", ref)
				} else {
					gittest.Git(t, s.User, "update-ref", ref, to)
				}
				s.StartWorker() // what was pushed must be known after a restart
				s.Submit("three", `{}`)
				s.Stop()
				require.Equal(t, to, there(), "nobody has answered")
				found := s.ValidateWith().Drift
				require.Len(t, found, 1)
				require.Equal(t, task.DriftLedger, found[0].Name)
				require.Equal(t, to, found[0].Theirs)
				require.Contains(t, found[0].Text, c.how)
				require.True(t, found[0].Restorable)
				out := s.Append(loop.Event{Type: loop.GateClosed, Drift: &found[0], Answer: &loop.Answer{Gate: "g", Choice: choice}})
				s.Stop()
				if choice == steward.Keep {
					require.Equal(t, to, there())
					return
				}
				require.NotContains(t, out.PushRefused, "until you answer")
				require.Equal(t, s.Ledger, there())
				require.Empty(t, s.ValidateWith().Drift)
				s.Submit("four", `{}`)
				s.Stop()
				require.Equal(t, s.Ledger, there(), "pushes go on")
			})
		}
	}
}

func TestS12_AnAnswerAboutALedgerHoldsOnlyForWhatWasSeen(t *testing.T) {
	t.Parallel()
	const ref = "refs/pawl-ledger/shop"
	s := actest.BeginSteward(t, nil, nil)
	s.Stop()
	first := s.Ledger
	s.Submit("one", `{}`)
	s.Stop()
	gittest.Git(t, s.User, "update-ref", "-d", ref)
	found := s.ValidateWith().Drift
	require.Len(t, found, 1)
	gittest.Git(t, s.User, "update-ref", ref, first)
	s.Append(loop.Event{Type: loop.GateClosed, Drift: &found[0], Answer: &loop.Answer{Gate: "g", Choice: steward.Restore}})
	s.Stop()
	require.Equal(t, first, gittest.Git(t, s.User, "rev-parse", ref))
	require.Len(t, s.ValidateWith().Drift, 1)
}

func TestS3_TheWorkOfSeveralStepsIsJoined(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, map[string]string{"work/b": "b\n"}, nil)
	heads := map[string]string{}
	for _, name := range []string{"a", "b", "clash"} {
		gittest.Git(t, s.User, "checkout", "-q", "-b", name, s.Opened.Base)
		file := name
		if name == "clash" {
			file = "a"
		}
		gittest.Write(t, s.User+"/work/"+file, "by "+name+"\n")
		gittest.Git(t, s.User, "commit", "-qam", name)
		heads[name] = gittest.Git(t, s.User, "rev-parse", "HEAD")
		gittest.Git(t, s.User, "push", "-q", charterStore(s), "HEAD:refs/heads/pawl/shop-one-"+name)
	}
	join := func(a *activities.Activities, names ...string) stewardapi.Joined {
		in := stewardapi.Join{Ref: s.Opened.Ref, Task: "one", Step: "last"}
		for _, name := range names {
			in.Heads = append(in.Heads, heads[name])
		}
		out, err := a.Join(t.Context(), in)
		require.NoError(t, err)
		return out
	}
	j := join(s.Activities, "a", "b")
	require.Empty(t, j.Conflicts)
	require.Equal(t, "pawl/shop-one-last-base", j.Branch)
	require.Equal(t, j.Head, gittest.Git(t, s.User, "rev-parse", j.Branch))
	require.Equal(t, "by a", gittest.Git(t, s.User, "show", j.Head+":work/a"))
	require.Equal(t, "by b", gittest.Git(t, s.User, "show", j.Head+":work/b"))
	s.StartWorker()
	require.Equal(t, j, join(s.Activities, "a", "b"))
	require.Equal(t, []string{"work/a"}, join(s.Activities, "a", "clash").Conflicts)
	require.Equal(t, heads["a"], join(s.Activities, "a").Head, "planned again, with one step less")
}

// TestS7_AnAgentCannotWriteWhatPeopleRead: the planner is an agent in the steward's sandbox, which is that of its
// loops.
func TestS7_AnAgentCannotWriteWhatPeopleRead(t *testing.T) {
	t.Parallel()
	if sandbox.Probe().Files == sandbox.ByNothing {
		t.Skip("this machine has no sandbox for files")
	}
	script := `cd "$PROJECT" && for do in 'echo mine > .pawl/STATUS_LEDGER.md' 'rm -f .pawl/STATUS_LEDGER.md' 'echo mine > .pawl/new' 'mkdir .pawl/tasks/one' 'mv .pawl away' 'rm -rf .pawl' 'chmod 777 .pawl'; do
	(eval "$do") 2>/dev/null && echo "it could: $do" >> "$PAWL_RESULT.could"; done; test -e "$PAWL_RESULT.could" && cat "$PAWL_RESULT.could" >&2
printf '%b' '` + goodPlan + `'; test ! -e "$PAWL_RESULT.could"`
	s := actest.BeginSteward(t, nil, nil)
	s.Charter = s.Chartered(planner(script, map[string]any{"agent": map[string]any{"roles": map[string]any{"planner": map[string]any{
		"command": script, "env": map[string]any{"PROJECT": s.User},
	}}}}))
	s.Append(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "better"}})
	before := gittest.Git(t, s.Opened.Export, "hash-object", "STATUS_LEDGER.md")
	p := s.Plan("one", nil)
	require.True(t, p.OK(), p.Ending()+p.Tail)
	require.Equal(t, before, gittest.Git(t, s.Opened.Export, "hash-object", "STATUS_LEDGER.md"))
	require.NoFileExists(t, s.Opened.Export+"/new")
	v, err := s.Validate(t.Context(), stewardapi.Validate{Ref: s.Opened.Ref, Ledger: s.Ledger, Charter: s.Charter})
	require.NoError(t, err)
	require.Empty(t, v.Drift)
}

func TestFilesThatTwoTasksMayMakeAreNamed(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, planner("", nil))
	s.Submit("one", `{"goal": "g", "scope": ["docs/**"], "newFiles": "allow"}`)
	s.Submit("two", `{"goal": "g", "scope": ["docs/**"]}`)
	claims := func(in *stewardapi.PlanTask) {
		in.Claims = []stewardapi.Claim{{Task: "other", Scope: []string{"**/*.md"}}, {Task: "far", Scope: []string{"src/**"}}}
	}
	require.Equal(t, []stewardapi.Meeting{{Task: "other", On: "new files in docs/**"}}, s.Plan("one", claims).Meets)
	require.Empty(t, s.Plan("two", claims).Meets, "it makes none, and there are none")
}

// TestS3_AnEstimateIsWhatThisStewardsLikeTasksHaveCost plans a task after others, in one run of the steward and in
// the next. Only PLAN.md has the steps of a finished task.
func TestS3_AnEstimateIsWhatThisStewardsLikeTasksHaveCost(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, planner("", nil))
	cost := func(usd string) *loop.Usage { return &loop.Usage{CostUSD: metric.MustDecimal(usd)} }
	did := func(id, spec, usd string) {
		s.Submit(id, spec)
		plan := s.Plan(id, nil)
		require.NotNil(t, plan.Plan, plan.Problems)
		s.Append(loop.Event{Type: loop.PlanMade, Task: id, TaskPlan: plan.Plan, Usage: cost(usd)}, loop.Event{Type: loop.TaskEnded, Task: id, Outcome: steward.Done})
	}
	improve := `{"kind": "improve", "goal": "better", "scope": ["work/a"]}`
	did("one", improve, "2")
	did("two", improve, "4")
	did("other", `{"kind": "deliver", "goal": "new", "scope": ["work/a"], "test": {"command": "true"}}`, "100")
	s.Submit("three", improve)
	require.Equal(t, "2", s.Plan("three", nil).Estimate.Median.String())
	require.Equal(t, 2, s.Plan("three", nil).Estimate.N)
	require.Nil(t, s.Plan("three", nil).Estimate.Planned)

	s.AppendIn(stewardapi.RecordTasks{Entry: s.Entry(loop.Event{Type: loop.StewardEnded}), Close: true})
	s.Ledger, s.Seq = "", 0
	s.Reopen("second")
	ids := list.Map(s.Opened.Known, func(k task.Known) string { return k.Task })
	require.ElementsMatch(t, []string{"one", "two", "other"}, ids, "what was done is known, what was not may run")
	s.AppendOpened()
	s.Submit("four", improve)
	require.Equal(t, 2, s.Plan("four", nil).Estimate.N, "the tasks of an earlier life count")
}

// TestAPlannerThatWaitsForTheDeskCanBeInterrupted: a worker that stops does not wait for the planner of another task.
func TestAPlannerThatWaitsForTheDeskCanBeInterrupted(t *testing.T) {
	t.Parallel()
	s := actest.BeginSteward(t, nil, planner("true", nil))
	s.Append(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "better"}})
	ws, err := s.Workspace(t.Context(), s.Opened.Ref)
	require.NoError(t, err)
	done, err := ws.Planning(t.Context())
	require.NoError(t, err)
	defer done()
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	stop := make(chan struct{})
	env.SetWorkerStopChannel(stop)
	env.RegisterActivity(s.PlanTask)
	planned := make(chan error)
	go func() {
		_, err := env.ExecuteActivity(s.PlanTask, stewardapi.PlanTask{
			Step: api.Step{Ref: s.Opened.Ref, Key: api.Key{Name: "plan-one"}, LimitMs: 60_000}, Steward: "shop", Ledger: s.Ledger, Charter: s.Charter, Task: "one",
		})
		planned <- err
	}()
	require.Eventually(t, func() bool {
		stacks := make([]byte, 1<<20)
		return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "(*planning).ask")
	}, 20*time.Second, time.Millisecond)
	close(stop)
	select {
	case err := <-planned:
		require.ErrorContains(t, err, "the worker is stopping")
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for the other planner")
	}
}
