package main

// crew is the agent of every steward. It plans what its task says and writes a line in each loop. A task with the word
// "circle" makes no progress; one with the word "twice" has two steps.
const crew = `
prompt=$(cat)
case "$PAWL_ROLE" in
planner)
	[ ! -e "$WORLD/plan" ] || { touch "$WORLD/planning"; until [ -e "$WORLD/planning.done" ]; do sleep 0.05; done; }
	more=""
	case "$prompt" in *circle*) kind=improve;; *) kind=deliver;; esac
	case "$prompt" in *twice*) more='  - {id: more, kind: deliver, after: [work], spec: {goal: write more}}';; esac
	case "$prompt" in
	*invalid*) echo "no plan at all" >"$PAWL_PLAN" ;;
	*forbidden*) printf -- '---\nsteps:\n  - {id: work, kind: deliver, spec: {goal: write, test: {command: curl example.org}}}\n---\nWrite.\n' >"$PAWL_PLAN" ;;
	*dear*) printf -- '---\ncost: 500\nsteps:\n  - {id: work, kind: deliver, spec: {goal: write}}\n---\nWrite.\n' >"$PAWL_PLAN" ;;
	*) printf -- '---\nsteps:\n  - {id: work, kind: %s, spec: {goal: write it}}\n%s\n---\nWrite it.\n' $kind "$more" >"$PAWL_PLAN" ;;
	esac ;;
*)
	case "$PAWL_LOOP" in *-slow-*) touch "$WORLD/slow"; until [ -e "$WORLD/slow.done" ]; do sleep 0.05; done ;; esac
	case "$PAWL_LOOP" in *-broken-*) exit 3 ;; esac
	case "$PAWL_LOOP" in *-leaky-*) echo 'aws_secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY"' >work/key ;; esac
	echo "$PAWL_LOOP" >>work/log ;;
esac`

// charter is the spec of every steward.
func charter(w *world) doc {
	agent := doc{"command": []string{"sh", w.path("agent.sh")}, "env": doc{"WORLD": w.dir}}
	return doc{
		"kind": "steward", "repo": doc{"path": w.repo}, "agent": agent,
		"tiers": []doc{{"tier": "T1", "words": []string{"delicate"}}},
		"defaults": doc{
			"scope": []string{"work/**"}, "newFiles": "allow", "test": doc{"command": "true"}, "verify": doc{"command": "cat work/n"},
			"agent": agent, "approvals": doc{"tools": []string{"*"}, "diff": "auto"}, "sandbox": doc{"allow": []string{w.dir}},
			"limits": doc{"iterations": 8, "toolCalls": 1000, "activeTime": "1h"},
		},
	}
}

func task(id, body string) string { return "---\nid: " + id + "\n---\n" + body + "\n" }

// stewards are the cases of stewards. A steward is stopped when its tasks are over.
var stewards = []course{
	{name: "steward-one-task", tasks: []string{task("plain", "Write a line.")}},
	{name: "steward-two-steps", tasks: []string{task("both", "Write twice.")}},
	{name: "steward-own-plan", tasks: []string{"---\nid: own\nplan:\n  - {id: work, kind: deliver, spec: {goal: write}}\n---\nWrite.\n"}},
	{name: "steward-risky-approved", tasks: []string{task("risky", "A delicate matter.")}},
	{name: "steward-risky-replanned", tasks: []string{task("risky", "A delicate matter.")}, answers: answers{"tier": {"answer replan", "approve"}}},
	{name: "steward-risky-cancelled", tasks: []string{task("risky", "A delicate matter.")}, answers: answers{"tier": {"answer cancel"}}},
	{name: "steward-circle", tasks: []string{task("lost", "Go in a circle.")}, answers: answers{"stuck": {"answer cancel"}}},
	{name: "steward-circle-continued", tasks: []string{task("lost", "Go in a circle.")}, answers: answers{"stuck": {"answer continue", "answer cancel"}}},
	{name: "steward-invalid-plan", tasks: []string{task("bad", "An invalid plan.")}, answers: answers{"question": {"answer replan", "answer cancel"}}},
	{name: "steward-forbidden-command", tasks: []string{task("bad", "A forbidden command.")}, answers: answers{"question": {"answer cancel"}}},
	{name: "steward-dear-plan", spec: doc{"limits": doc{"costUSD": 10}}, tasks: []string{task("costly", "A dear plan.")}},
	{name: "steward-broken-agent", spec: doc{"limits": doc{"retries": 1}}, tasks: []string{task("broken", "Write a line.")}, answers: answers{"stuck": {"answer cancel"}, "question": {"answer cancel"}}},
	{name: "steward-secret", tasks: []string{task("leaky", "Write a line.")}, answers: answers{"guard": {"halt"}, "stuck": {"answer cancel"}, "question": {"answer cancel"}}},
	{name: "steward-dependent-tasks", tasks: []string{task("first", "Write a line."), "---\nid: second\nafter: [first]\n---\nWrite another.\n"}},
	{name: "steward-same-task-twice", tasks: []string{task("plain", "Write a line."), task("plain", "Write a line.")}},
	{name: "steward-refused-tasks", tasks: []string{"---\nid: Bad ID\n---\nx\n", "---\nid: odd\nspec: {no: key}\n---\nx\n", task("plain", "Write a line.")}},
	{name: "steward-priority", tasks: []string{task("slow", "Write a line."), "---\nid: high\npriority: 5\n---\nWrite another.\n"},
		deeds: []deed{{"slow", []string{"sleep 1"}}}},
	{name: "steward-task-stopped", tasks: []string{task("slow", "Write a line.")}, deeds: []deed{{"slow", []string{"pawl steward stop $LOOP slow --yes"}}}},
	{name: "steward-task-paused", tasks: []string{task("slow", "Write a line.")}, deeds: []deed{{"slow", []string{"pawl steward pause $LOOP slow", "pawl steward continue $LOOP slow"}}}},
	{name: "steward-tier-set", tasks: []string{task("risky", "A delicate matter.")}, deeds: []deed{{"gate-tier", []string{"pawl steward tier $LOOP risky T3"}}}},
	{name: "steward-mode-plan", tasks: []string{task("plain", "Write a line.")}, deeds: []deed{{"submitted", []string{"pawl steward mode $LOOP plan", "pawl steward mode $LOOP mission"}}}},
	{name: "steward-killed", alone: true, tasks: []string{task("slow", "Write a line.")}, deeds: []deed{{"slow", []string{"kill-up", "up"}}}},
	{name: "steward-killed-while-planning", alone: true, tasks: []string{task("plain", "Write a line.")}, deeds: []deed{{"planning", []string{"kill-up", "rm -f plan", "up"}}}},
}
