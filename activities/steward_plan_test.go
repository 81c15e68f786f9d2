package activities_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/activities"
	"pawl/internal/act"
	"pawl/internal/evidence"
	"pawl/internal/loop"
	"pawl/internal/sandbox"
	"pawl/internal/steward"
	"pawl/internal/task"
)

// defaults are what the loops of a steward under test have.
var defaults = map[string]any{
	"scope": []any{"work/**"}, "verify": map[string]any{"command": "true"}, "agent": map[string]any{"command": []any{"true"}},
	"approvals": map[string]any{"tools": []any{"*"}},
}

// planner makes a charter with loops and a planner that runs a script.
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

func (s *looked) plan(id string, change func(*act.PlanTask)) act.TaskPlanned {
	s.Helper()
	in := act.PlanTask{
		Step: act.Step{Ref: s.o.Ref, Key: act.Key{Name: "plan-" + id}, LimitMs: 60_000}, Steward: "shop", Ledger: s.ledger, Charter: s.charter, Task: id,
	}
	if change != nil {
		change(&in)
	}
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.RegisterActivity(s.a.PlanTask)
	value, err := env.ExecuteActivity(s.a.PlanTask, in)
	require.NoError(s, err)
	var out act.TaskPlanned
	require.NoError(s, value.Get(&out))
	return out
}

func TestS3_ATaskThatBringsItsStepsIsPlannedWithoutAPlanner(t *testing.T) {
	s := looksAfter(t, map[string]string{"RULES.md": "be kind\n"}, planner("", map[string]any{"governance": []any{"RULES.md"}}))
	s.submit("one", `{"goal": "better", "scope": ["work/a"]}`)
	p := s.plan("one", nil)
	require.Empty(t, p.Problems)
	require.Empty(t, p.Blockers)
	require.Equal(t, "task", p.Plan.By)
	require.Len(t, p.Plan.Steps, 1)
	require.NotEmpty(t, p.Tier)
	require.NotEmpty(t, p.Why)
	require.Zero(t, p.Estimate.N)
	require.Equal(t, s.o.Base, p.Base)
	require.Equal(t, p.Plan, s.plan("one", nil).Plan, "a retry has the same")

	s.record(loop.Event{Type: loop.PlanMade, Task: "one", TaskPlan: p.Plan})
	s.whole()
	text := git(t, s.user, "-C", s.charterStore(), "show", s.ledger+":tasks/one/PLAN.md")
	require.Contains(t, text, "goal: better")
	exported, err := os.ReadFile(filepath.Join(s.o.Export, "tasks/one/PLAN.md"))
	require.NoError(t, err)
	require.Equal(t, text+"\n", string(exported))
	git(t, s.user, "commit", "-qm", "further", "--allow-empty")
	write(t, s.user+"/RULES.md", "be strict\n")
	git(t, s.user, "commit", "-qam", "other rules")
	again := s.plan("one", func(in *act.PlanTask) { in.Key.Iteration = 1 })
	require.NotEqual(t, p.Governance, again.Governance)
	require.NotEqual(t, p.Base, again.Base)
}

func TestS12_APlanIsAssessedOnceMoreAsItIs(t *testing.T) {
	script := `printf '%b' '` + goodPlan + `' > "$PAWL_PLAN"`
	s := looksAfter(t, map[string]string{"RULES.md": "be kind\n"}, planner(script, map[string]any{"governance": []any{"RULES.md"}}))
	s.record(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "better"}})
	p := s.plan("one", nil)
	require.NotNil(t, p.Plan, p.Problems)
	require.Equal(t, p.Governance, s.validate().Governance)
	s.record(loop.Event{Type: loop.PlanMade, Task: "one", TaskPlan: p.Plan})

	write(t, s.user+"/RULES.md", "be strict\n")
	git(t, s.user, "commit", "-qam", "other rules")
	require.NotEqual(t, p.Governance, s.validate().Governance)
	s.charter = s.chartered(planner("exit 9", map[string]any{"governance": []any{"RULES.md", "work/**"}}))
	assess := func(hash string) act.TaskPlanned {
		return s.plan("one", func(in *act.PlanTask) { in.Key.Name, in.Again = "assess-one", hash })
	}
	again := assess(p.Plan.Hash)
	require.Empty(t, again.Problems)
	require.Equal(t, p.Plan, again.Plan, "nobody is asked for another one")
	require.Equal(t, task.T2, p.Tier)
	require.Equal(t, task.T1, again.Tier)
	require.True(t, again.Governs)
	s.record(loop.Event{Type: loop.TierSet, Task: "one", Tier: again.Tier, By: again.TierBy, TaskPlan: again.Plan})
	s.whole()
}

// charterStore is where the steward's store is.
func (s *looked) charterStore() string {
	st, _ := s.book()
	return st.Dir()
}

const goodPlan = "---\\ntier: T2\\nsteps:\\n  - id: first\\n    kind: improve\\n    spec: {goal: g, scope: [work/a]}\\n---\\n\\n# why\\n"

func TestS3_ThePlannerPlansOnADeskOfWhichNothingStays(t *testing.T) {
	script := `cat > "$PAWL_RESULT.in"; grep -q 'be kind' "$PAWL_RESULT.in" && grep -q 'think of b' "$PAWL_RESULT.in" && grep -q 'work/a' "$PAWL_RESULT.in" || exit 9
echo changed > work/a; touch new; printf '%b' '` + goodPlan + `' > "$PAWL_PLAN"; echo '{"costUSD": 0.25, "toolCalls": 3}' > "$PAWL_RESULT"`
	s := looksAfter(t, map[string]string{"RULES.md": "be kind\n"}, planner(script, map[string]any{"governance": []any{"RULES.md"}}))
	s.record(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "better", Body: "in all ways"}})
	p := s.plan("one", func(in *act.PlanTask) { in.Note = "think of b" })
	require.Empty(t, p.Problems)
	require.NotNil(t, p.Plan, p.Ending()+p.Tail)
	require.Equal(t, "planner", p.Plan.By)
	require.Equal(t, task.T2, p.Plan.Tier)
	require.Equal(t, "0.25", p.Usage.CostUSD.String())
	require.Equal(t, 3, p.Usage.ToolCalls)
	require.NoDirExists(t, s.o.Desk)
	require.Empty(t, git(t, s.user, "status", "--porcelain"))
	calls := filepath.Join(s.home.Dir, "calls")
	require.NoFileExists(t, calls)

	s.worker() // a retry by another worker does not ask again
	require.Equal(t, p.Plan, s.plan("one", func(in *act.PlanTask) { in.Note = "another" }).Plan)
}

func TestS3_APlanIsWhatThePlannerPrintsWhereItWritesNone(t *testing.T) {
	s := looksAfter(t, nil, planner("printf '%b' '```markdown\\n"+goodPlan+"```\\n'", nil))
	s.record(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "better"}})
	p := s.plan("one", nil)
	require.Empty(t, p.Problems)
	require.NotNil(t, p.Plan)
}

func TestS3_WhatIsWrongWithAPlanIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		spec, plan string
		more       map[string]any
		problem    string
	}{
		"a command that nobody allowed": {spec: `{"goal": "g", "verify": {"command": "curl example.org"}}`, problem: "may not be used"},
		"a key that the steward sets":   {plan: "---\\nsteps:\\n  - {id: a, kind: improve, spec: {goal: g, session: {user: root}}}\\n---\\n", problem: "session"},
		"a scope without files":         {spec: `{"goal": "g", "scope": ["nowhere/**"]}`, problem: "matches no file"},
		"no front matter":               {plan: "just do it\\n", problem: "front matter"},
		"a spec that is none":           {plan: "---\\nsteps:\\n  - {id: a, kind: improve, spec: {goal: g, verify: {timeout: soon}}}\\n---\\n", problem: "timeout"},
		"neither a planner nor a plan":  {problem: "no planner"},
	} {
		t.Run(name, func(t *testing.T) {
			script := ""
			if c.plan != "" {
				script = "printf '%b' '" + c.plan + "'"
			}
			s := looksAfter(t, nil, planner(script, c.more))
			s.record(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "t", Spec: json.RawMessage(c.spec)}})
			p := s.plan("one", nil)
			require.NotEmpty(t, p.Problems)
			require.Contains(t, p.Problems[0], c.problem)
		})
	}
}

func TestS3_BlockersAreNamed(t *testing.T) {
	s := looksAfter(t, nil, planner("", nil))
	s.submit("before", `{}`)
	s.record(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", After: []string{"before"}, Spec: json.RawMessage(`{"goal": "g", "agent": {"command": ["no-such-agent"]}, "guard": {"command": "true && no-such-tool --all"}}`)}})
	write(t, s.user+"/work/a", "not committed\n")
	p := s.plan("one", func(in *act.PlanTask) { in.Claims = []act.Claim{{Task: "other", Scope: []string{"work/*"}}} })
	require.Len(t, p.Blockers, 4, p.Blockers)
	for i, want := range []string{"not clean", "no-such-agent", "guard.command needs no-such-tool, which is not on the PATH", "the task before, which is not done"} {
		require.Contains(t, p.Blockers[i], want)
	}
	require.Equal(t, []string{"the task other may change the same files: work/a"}, p.Overlaps, "named, and no reason to wait: each task has a branch of its own")
	require.Equal(t, []string{"other"}, p.With)

	s.record(loop.Event{Type: loop.TaskSubmitted, Task: "two", Submitted: &task.Task{ID: "two", Spec: json.RawMessage(`{"goal": "g", "setup": {"command": "sh install.sh"}, "guard": {"command": "no-such-tool --all"}}`)}})
	git(t, s.user, "commit", "-qam", "committed")
	require.Empty(t, s.plan("two", nil).Blockers, "setup may bring it")
}

func TestS3_WhereThePlannerAsksItIsUnclear(t *testing.T) {
	s := looksAfter(t, nil, planner(`echo '{"giveUp": "which of the two?"}' > "$PAWL_RESULT"`, nil))
	s.record(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "better"}})
	p := s.plan("one", nil)
	require.Equal(t, []string{"which of the two?"}, p.Unclear)
	require.Nil(t, p.Plan)
}

func TestS7_WhatAHandHasChangedIsReportedAndLeftAlone(t *testing.T) {
	s := looksAfter(t, nil, planner("", nil))
	s.submit("one", `{"goal": "g"}`)
	p := s.plan("one", nil)
	require.NotNil(t, p.Plan, p.Problems)
	made := loop.Event{Type: loop.PlanMade, Task: "one", TaskPlan: p.Plan}
	require.Empty(t, s.record(made).Drift)
	file := filepath.Join(s.o.Export, "tasks/one/PLAN.md")
	ours, err := os.ReadFile(file)
	require.NoError(t, err)
	validate := func() []task.Drift {
		v, err := s.a.Validate(ctx, act.Validate{Ref: s.o.Ref, Ledger: s.ledger, Charter: s.charter})
		require.NoError(t, err)
		return v.Drift
	}
	require.Empty(t, validate())
	for name, do := range map[string]func(){
		"edited":          func() { write(t, file, "mine\n") },
		"deleted":         func() { require.NoError(t, os.Remove(file)) },
		"no regular file": func() { require.NoError(t, os.Remove(file)); require.NoError(t, os.Symlink("/etc/passwd", file)) },
		"a folder is no":  func() { require.NoError(t, os.RemoveAll(filepath.Dir(file))); write(t, filepath.Dir(file), "x") },
	} {
		do()
		found := validate()
		require.Len(t, found, 1, name)
		require.Equal(t, task.DriftArtifact, found[0].Name)
		require.Equal(t, "tasks/one/PLAN.md", found[0].What)
		out := s.record(made)
		require.Equal(t, found, out.Drift, name)
		// A person wants pawl's.
		out = s.record(loop.Event{Type: loop.GateClosed, Drift: &found[0], Answer: &loop.Answer{Gate: "g", Choice: "restore"}})
		require.Empty(t, out.Drift, name)
		now, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(ours), string(now), name)
		require.Empty(t, validate(), name)
	}
	write(t, file, "mine\n")
	out := s.record(loop.Event{Type: loop.GateClosed, Drift: &validate()[0], Answer: &loop.Answer{Gate: "g", Choice: "keep"}})
	require.Empty(t, out.Drift)
	require.Empty(t, s.record(made).Drift)
	require.Empty(t, validate())
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(now), "it is theirs now")
	s.worker()
	write(t, file, "mine again\n")
	require.Len(t, validate(), 1)
}

// The gate stays until a person closes it, and says that nothing is left to put right.
func TestS12_AnArtifactThatIsPutRightByHandIsSaidToBe(t *testing.T) {
	s := looksAfter(t, nil, planner("", nil))
	s.submit("one", `{"goal": "g"}`)
	made := loop.Event{Type: loop.PlanMade, Task: "one", TaskPlan: s.plan("one", nil).Plan}
	s.record(made)
	file := filepath.Join(s.o.Export, "tasks/one/PLAN.md")
	ours, err := os.ReadFile(file)
	require.NoError(t, err)
	another := loop.Event{Type: loop.Warned, Reason: "something else"}
	found := func() task.Drift {
		v := s.validate()
		require.Len(t, v.Drift, 1)
		require.NotContains(t, names(v.Well), "artifact tasks/one/PLAN.md")
		s.record(loop.Event{Type: loop.DriftFound, Drift: &v.Drift[0]})
		return v.Drift[0]
	}
	write(t, file, "theirs\n")
	edited := found()
	require.Empty(t, s.record(another).Well)
	write(t, file, string(ours))
	well := task.Drift{Name: task.DriftArtifact, What: "tasks/one/PLAN.md", Text: file + " is as pawl has written it again"}
	require.Contains(t, s.validate().Well, well)
	require.Equal(t, []task.Drift{well}, s.record(another).Well, "the next entry has seen it, too")

	kept := loop.Event{Type: loop.GateClosed, Drift: &edited, Answer: &loop.Answer{Gate: "g", Choice: steward.Keep}}
	write(t, file, "theirs\n")
	s.record(kept)
	require.NoError(t, os.Remove(file))
	deleted := found()
	write(t, file, "theirs\n")
	well.Text = file + " is as you have kept it again"
	require.Equal(t, []task.Drift{well}, s.record(another).Well)
	deleted.Well = well.Text
	restore := loop.Event{Type: loop.GateClosed, Drift: &deleted, Answer: &loop.Answer{Gate: "g", Choice: steward.Restore}}
	write(t, file, "something else\n")
	require.Len(t, s.record(restore, made).Drift, 1, "nobody was asked about that")
	write(t, file, "theirs\n")
	require.Empty(t, s.record(restore, made).Drift)
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(ours), string(now))

	mode := func(remove func(string) error, put func(string)) act.Validated {
		require.NoError(t, remove(s.o.Export))
		put(s.o.Export)
		v := s.validate()
		for i := range v.Drift {
			s.record(loop.Event{Type: loop.DriftFound, Drift: &v.Drift[i]})
		}
		return v
	}
	require.Equal(t, []string{"artifact .pawl"}, names(mode(func(dir string) error { return os.Rename(dir, dir+"-away") }, func(dir string) { write(t, dir, "x") }).Drift))
	require.Contains(t, names(mode(os.Remove, func(dir string) { require.NoError(t, os.Rename(dir+"-away", dir)) }).Well), "artifact .pawl")
}

func TestS11_AMovedLedgerHasItsName(t *testing.T) {
	s := looksAfter(t, nil, nil)
	s.submit("one", `{}`)
	s.a.Stop()
	git(t, s.user, "update-ref", "refs/pawl-ledger/shop", s.o.Base)
	v, err := s.a.Validate(ctx, act.Validate{Ref: s.o.Ref, Ledger: s.ledger, Charter: s.charter})
	require.NoError(t, err)
	require.Len(t, v.Drift, 1)
	require.Equal(t, task.DriftLedger, v.Drift[0].Name)
	require.Equal(t, s.o.Base, v.Drift[0].Theirs)
	git(t, s.user, "update-ref", "refs/pawl-ledger/shop", s.ledger)
	require.Contains(t, names(s.validate().Well), v.Drift[0].Name+" "+v.Drift[0].What)
	v, err = s.a.Validate(ctx, act.Validate{Ref: s.o.Ref, Ledger: s.o.Base, Charter: s.charter})
	require.NoError(t, err)
	require.NotEmpty(t, v.Drift)
}

func TestS3_TheWorkOfSeveralStepsIsJoined(t *testing.T) {
	s := looksAfter(t, map[string]string{"work/b": "b\n"}, nil)
	heads := map[string]string{}
	for _, name := range []string{"a", "b", "clash"} {
		git(t, s.user, "checkout", "-q", "-b", name, s.o.Base)
		file := name
		if name == "clash" {
			file = "a"
		}
		write(t, s.user+"/work/"+file, "by "+name+"\n")
		git(t, s.user, "commit", "-qam", name)
		heads[name] = git(t, s.user, "rev-parse", "HEAD")
		git(t, s.user, "push", "-q", s.charterStore(), "HEAD:refs/heads/pawl/shop-one-"+name)
	}
	join := func(a *activities.Activities, names ...string) act.Joined {
		in := act.Join{Ref: s.o.Ref, Task: "one", Step: "last"}
		for _, name := range names {
			in.Heads = append(in.Heads, heads[name])
		}
		out, err := a.Join(ctx, in)
		require.NoError(t, err)
		return out
	}
	j := join(s.a, "a", "b")
	require.Empty(t, j.Conflicts)
	require.Equal(t, "pawl/shop-one-last-base", j.Branch)
	require.Equal(t, j.Head, git(t, s.user, "rev-parse", j.Branch))
	require.Equal(t, "by a", git(t, s.user, "show", j.Head+":work/a"))
	require.Equal(t, "by b", git(t, s.user, "show", j.Head+":work/b"))
	s.worker()
	require.Equal(t, j, join(s.a, "a", "b"))
	require.Equal(t, []string{"work/a"}, join(s.a, "a", "clash").Conflicts)
	require.Equal(t, heads["a"], join(s.a, "a").Head, "planned again, with one step less")
}

// TestS7_AnAgentCannotWriteWhatPeopleRead: the planner is an agent in the sandbox of its steward, which
// is that of its loops.
func TestS7_AnAgentCannotWriteWhatPeopleRead(t *testing.T) {
	if sandbox.Probe().Files == sandbox.ByNothing {
		t.Skip("this machine has no sandbox for files")
	}
	script := `cd "$PROJECT" && for do in 'echo mine > .pawl/STATUS_LEDGER.md' 'rm -f .pawl/STATUS_LEDGER.md' 'echo mine > .pawl/new' 'mkdir .pawl/tasks/one' 'mv .pawl away' 'rm -rf .pawl' 'chmod 777 .pawl'; do
	(eval "$do") 2>/dev/null && echo "it could: $do" >> "$PAWL_RESULT.could"; done; test -e "$PAWL_RESULT.could" && cat "$PAWL_RESULT.could" >&2
printf '%b' '` + goodPlan + `'; test ! -e "$PAWL_RESULT.could"`
	s := looksAfter(t, nil, nil)
	s.charter = s.chartered(planner(script, map[string]any{"agent": map[string]any{"roles": map[string]any{"planner": map[string]any{
		"command": script, "env": map[string]any{"PROJECT": s.user},
	}}}}))
	s.record(loop.Event{Type: loop.TaskSubmitted, Task: "one", Submitted: &task.Task{ID: "one", Title: "better"}})
	before := git(t, s.o.Export, "hash-object", "STATUS_LEDGER.md")
	p := s.plan("one", nil)
	require.True(t, p.OK(), p.Ending()+p.Tail)
	require.Equal(t, before, git(t, s.o.Export, "hash-object", "STATUS_LEDGER.md"))
	require.NoFileExists(t, s.o.Export+"/new")
	v, err := s.a.Validate(ctx, act.Validate{Ref: s.o.Ref, Ledger: s.ledger, Charter: s.charter})
	require.NoError(t, err)
	require.Empty(t, v.Drift)
}

func TestFilesThatTwoTasksMayMakeAreNamed(t *testing.T) {
	s := looksAfter(t, nil, planner("", nil))
	s.submit("one", `{"goal": "g", "scope": ["docs/**"], "newFiles": "allow"}`)
	s.submit("two", `{"goal": "g", "scope": ["docs/**"]}`)
	claims := func(in *act.PlanTask) {
		in.Claims = []act.Claim{{Task: "other", Scope: []string{"**/*.md"}}, {Task: "far", Scope: []string{"src/**"}}}
	}
	require.Equal(t, []string{"the task other may make the same new files: its scope and docs/** meet"}, s.plan("one", claims).Overlaps)
	require.Empty(t, s.plan("two", claims).Overlaps, "it makes none, and there are none")
}

// TestS3_AnEstimateIsWhatThisStewardsLikeTasksHaveCost plans a task after others, in this life of the steward and in
// the next: what is over has its steps in PLAN.md alone.
func TestS3_AnEstimateIsWhatThisStewardsLikeTasksHaveCost(t *testing.T) {
	s := looksAfter(t, nil, planner("", nil))
	cost := func(usd string) *loop.Usage { return &loop.Usage{CostUSD: evidence.MustDecimal(usd)} }
	did := func(id, spec, usd string) {
		s.submit(id, spec)
		plan := s.plan(id, nil)
		require.NotNil(t, plan.Plan, plan.Problems)
		s.record(loop.Event{Type: loop.PlanMade, Task: id, TaskPlan: plan.Plan, Usage: cost(usd)}, loop.Event{Type: loop.TaskEnded, Task: id, Outcome: steward.Done})
	}
	improve := `{"kind": "improve", "goal": "better", "scope": ["work/a"]}`
	did("one", improve, "2")
	did("two", improve, "4")
	did("other", `{"kind": "deliver", "goal": "new", "scope": ["work/a"], "test": {"command": "true"}}`, "100")
	s.submit("three", improve)
	require.Equal(t, "2", s.plan("three", nil).Estimate.Median.String())
	require.Equal(t, 2, s.plan("three", nil).Estimate.N)

	s.append(act.RecordTasks{Entry: s.entry(loop.Event{Type: loop.StewardEnded}), Close: true})
	s.ledger, s.seq = "", 0
	s.open("second")
	s.opened()
	s.submit("four", improve)
	require.Equal(t, 2, s.plan("four", nil).Estimate.N, "the tasks of an earlier life count")
}
