package main

const (
	passing  = `n "ok 1 - climbs"`
	failing  = `n "not ok 1 - climbs"`
	approves = `reviewer) sed -n 's/^\(APPROVED [0-9a-f]*\).*/\1: fine/p' "$PAWL_PROMPT" | head -n 1`
	rejects  = `reviewer) sed -n 's/^APPROVED \([0-9a-f]*\).*/REJECTED \1: too steep/p' "$PAWL_PROMPT" | head -n 1`
)

// delivery is the spec of every delivery. Its tests print the file that the agent writes, as TAP.
var delivery = doc{
	"kind": "deliver", "test": doc{"command": "sh test.sh"}, "verify": nil,
	"approvals": doc{"diff": "required"},
}

var planned = doc{"agent": doc{"roles": doc{"planner": doc{}}}}

// deliveries are the cases of deliveries.
var deliveries = []course{
	{name: "deliver-at-once", agent: as("writer) " + passing + "; echo climb")},
	{name: "deliver-planned", spec: planned, agent: as("planner) echo 'First the foot, then the top.'", "writer) "+passing+"; echo climb")},
	{name: "deliver-plan-rejected", spec: planned, agent: as("planner) echo 'Downhill.'", "writer) "+passing),
		answers: answers{"contract": {"reject --note 'uphill'"}}},
	{name: "deliver-fixed", agent: as("writer) "+failing+"; echo badly", "fixer) "+passing+"; echo well")},
	{name: "deliver-fixes-used-up", spec: limits("fixAttempts", 1), agent: as("writer) "+failing+"; echo badly", `fixer) n "not ok 2 - stays"; echo on`)},
	{name: "deliver-regenerated", agent: as(`writer) if [ "$(calls)" -ge 2 ]; then `+passing+"; else "+failing+"; fi; echo climb", `fixer) echo '{"regenerate": true}' >"$PAWL_RESULT"`)},
	{name: "deliver-given-up", agent: as("writer) "+failing+"; echo badly", `fixer) echo '{"giveUp": "too steep"}' >"$PAWL_RESULT"`)},
	{name: "deliver-flaky-test", agent: as("writer) " + passing + "; echo climb"),
		files: map[string]string{"test.sh": `cat work/n; grep -q '^ok' work/n || exit 0; if [ ! -e "$WORLD/seen" ]; then touch "$WORLD/seen"; echo "not ok 2 - now and then"; exit 1; fi` + "\n"}},
	{name: "deliver-known-failure", files: map[string]string{"work/n": "not ok 1 - old\nok 2 - fine\n"}, agent: as(`writer) printf 'not ok 1 - old\nok 2 - fine\nok 3 - new\n' >work/n; echo add`, "fixer) true")},
	{name: "deliver-fewer-tests", files: map[string]string{"work/n": "ok 1 - a\nok 2 - b\n"}, agent: as(`writer) printf 'ok 1 - a\n' >work/n; echo drop`, `fixer) printf 'ok 1 - a\nok 2 - b\nok 3 - c\n' >work/n; echo back`)},
	{name: "deliver-verified", spec: doc{"verify": doc{"command": "grep -q steep work/other && cat work/n | wc -l"}},
		agent: as("writer) " + passing + "; [ $PAWL_ITERATION = 1 ] || echo steep >work/other; echo climb"), answers: answers{}},
	{name: "deliver-never-verified", spec: doc{"verify": doc{"command": "false"}, "limits": doc{"iterations": 2}},
		agent: as(`writer) n "ok 1 - try $PAWL_ITERATION"; echo climb`)},
	{name: "deliver-without-tests", spec: doc{"test": doc{"command": nil, "required": false}, "verify": doc{"command": "grep ok work/n"}}, agent: as("writer) " + passing + "; echo climb")},
	{name: "deliver-guard-reworked", agent: as("writer) " + passing + "; [ $PAWL_ATTEMPT = 2 ] && echo good >work/other || echo bad >work/other; echo climb")},
	{name: "deliver-guard-blocked", agent: as("writer) " + passing + "; echo bad >work/other; echo climb"), answers: answers{"guard": {"halt"}}},
	{name: "deliver-guard-mended", agent: as("writer) " + passing + "; echo bad >work/other; echo climb"),
		answers: answers{"guard": {"continue"}}, deeds: []deed{{"gate-guard", []string{`echo good >"$(pawl show $LOOP --json | sed -n 's/^  "desk": "\(.*\)",/\1/p')/work/other"`}}}},
	{name: "deliver-sealed", agent: as("writer) " + passing + "; echo exit 0 >test.sh; echo ease"), answers: answers{"guard": {"reject --note 'not the tests'", "halt"}}},
	{name: "deliver-reviewed", spec: merge(planned, doc{"agent": doc{"roles": doc{"planner": doc{}, "reviewer": doc{}}}, "approvals": doc{"diff": "auto"}}),
		agent: as("planner) echo climb", "writer) "+passing+"; echo climb", approves)},
	{name: "deliver-review-rejects", spec: doc{"agent": doc{"roles": doc{"reviewer": doc{}}}, "approvals": doc{"diff": "auto"}, "limits": doc{"iterations": 2}},
		agent: as(`writer) n "ok 1 - climbs $PAWL_ITERATION"; echo climb`, `reviewer) if [ "$(calls)" -ge 2 ]; then s='APPROVED \1: fine'; else s='REJECTED \1: too steep'; fi; sed -n "s/^APPROVED \([0-9a-f]*\).*/$s/p" "$PAWL_PROMPT" | head -n 1`)},
	{name: "deliver-diff-rejected", spec: iterations(2), agent: as(`writer) n "ok 1 - climbs $PAWL_ITERATION"; echo climb`),
		answers: answers{"diff": {"reject --note higher", "approve"}}},
	{name: "deliver-applied", agent: as("writer) " + passing + "; echo climb"), answers: answers{"diff": {"approve --apply squash"}}},
	{name: "deliver-criteria", spec: doc{"goal": "Climb\n\n## Acceptance criteria\n\n- it is high\n- it is safe\n", "agent": doc{"roles": doc{"reviewer": doc{}}}, "approvals": doc{"diff": "auto"}},
		agent: as("writer) "+passing+"; echo climb", approves+`; echo "- [x] 1: seen"; echo "- [x] 2: seen"`)},
	{name: "deliver-criterion-unmet", spec: doc{"goal": "Climb\n\n## Acceptance criteria\n\n- it is high\n- it is safe\n", "agent": doc{"roles": doc{"reviewer": doc{}}}, "approvals": doc{"diff": "auto"}, "limits": doc{"reworks": 1}},
		agent: as("writer) "+passing+"; echo climb", approves+`; echo "- [x] 1: seen"`)},
	{name: "deliver-phase-timeout", spec: limits("phaseTimeout", "4s"), agent: as("writer) exec sleep 60")},
	{name: "deliver-permission-denied", spec: doc{"permissions": doc{"fixer": []string{"canExecuteTasks"}}}, agent: as("writer) "+failing+"; echo badly", "fixer) "+passing)},
	{name: "deliver-new-code", spec: doc{"scope": []string{"new/**"}, "newFiles": "allow"}, agent: as("writer) mkdir -p new; echo x >new/x; echo begin")},
	{name: "deliver-no-change", spec: iterations(2), agent: as("writer) echo nothing")},
	{name: "deliver-killed", alone: true, agent: as("writer) reach one; "+failing+"; echo badly", "fixer) reach two; "+passing+"; echo well"),
		deeds: []deed{{"one", []string{"kill-up", "up"}}, {"two", []string{"kill-up", "up"}}}},
	{name: "deliver-paused", agent: as("writer) reach one; " + passing + "; echo climb"), deeds: []deed{{"one", []string{"pawl pause $LOOP", "pawl continue $LOOP"}}}},
}
