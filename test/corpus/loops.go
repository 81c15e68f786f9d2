package main

import "fmt"

// loops are the cases of metric loops. The number in work/n starts at 10; higher is better unless a spec says otherwise.
var loops = []course{
	// Ends.
	{name: "raise-thrice", spec: iterations(3), agent: raise},
	{name: "reach-target", spec: merge(iterations(9), doc{"verify": doc{"target": 12}}), agent: raise},
	{name: "lower-is-better", spec: merge(iterations(2), doc{"verify": doc{"direction": "lower"}}), agent: by("1) n 9; echo lower", "2) n 11; echo higher")},
	{name: "discards-in-a-row", spec: limits("iterations", 9, "discards", 3), agent: by("1) n 1; echo a", "2) n 2; echo b", "3) n 3; echo c")},
	{name: "no-change", spec: iterations(2), agent: "echo look around"},
	{name: "agent-fails", spec: iterations(2), agent: "echo tried; exit 3"},
	{name: "agent-fails-then-works", spec: iterations(2), agent: by("1) exit 3", "2) n 11; echo raise")},
	{name: "agent-is-not-there", spec: doc{"agent": doc{"command": []string{"/nowhere/agent"}}}},
	{name: "agent-sleeps-too-long", spec: limits("iterations", 1, "phaseTimeout", "2s"), agent: "sleep 60"},
	{name: "agent-is-silent", spec: limits("iterations", 1, "silence", "2s"), agent: "sleep 60"},
	{name: "agent-ignores-SIGTERM", spec: limits("iterations", 1, "phaseTimeout", "2s"), agent: "trap '' TERM; sleep 60 & wait; sleep 60"},
	{name: "agent-leaves-a-daemon", agent: "setsid sleep 600 >/dev/null 2>&1 & " + raise},
	{name: "agent-commits-itself", agent: raise + "; git add -A; git -c user.name=m -c user.email=m@example.com commit -qm mine"},
	{name: "agent-deletes-git", agent: "rm -rf .git; " + raise},
	{name: "tool-calls-used-up", spec: limits("iterations", 9, "toolCalls", 2), agent: raise},
	{name: "budget-extended", spec: limits("iterations", 1, "onExhausted", "ask"), agent: raise,
		answers: answers{"budget": {"extend --limit iterations=2", "halt"}}},
	{name: "budget-not-extended", spec: limits("iterations", 1, "onExhausted", "ask"), agent: raise, answers: answers{"budget": {"halt"}}},

	// Numbers.
	{name: "metric-line", files: measure(`echo "METRIC speed=$(cat work/n)"; echo 99`), agent: raise},
	{name: "metric-with-unit", files: measure(`echo "took $(cat work/n)ms"`), spec: lower, agent: by("1) n 9; echo faster")},
	{name: "metric-changes-its-unit", files: measure(`cat work/n`), spec: merge(lower, iterations(2)),
		agent: by("1) n '900us'; echo faster", "2) n 8; echo faster")},
	{name: "metric-pattern", files: measure(`echo "a 1 b $(cat work/n) c 3"`), spec: doc{"verify": doc{"pattern": `b ([0-9.]+) c`}}, agent: raise},
	{name: "metric-pattern-finds-none", files: measure(`cat work/n`), spec: doc{"verify": doc{"pattern": `b ([0-9.]+) c`}}, agent: raise},
	{name: "metric-from-another-line", files: measure(`cat work/n`), spec: iterations(2),
		agent: by("1) n 'crashed after 20 steps'; echo crash", "2) n 11; echo raise")},
	{name: "metric-with-thousands", files: measure(`cat work/n`), agent: by("1) n 12_000; echo much more")},
	{name: "metric-is-not-a-number", files: measure(`cat work/n`), agent: by("1) n nan; echo nothing")},
	{name: "no-number-twice", spec: iterations(3), agent: by("1) n one; echo a", "2) n two; echo b", "3) n 11; echo c")},
	{name: "verify-fails", spec: iterations(2), files: measure("cat work/n; ! grep -q 99 work/n"), agent: by("1) n 99; echo too much", "2) n 11; echo raise")},
	{name: "verify-fails-at-the-start", files: measure("echo broken; exit 2"), agent: raise},
	{name: "verify-takes-too-long", spec: doc{"verify": doc{"timeout": "1s"}}, files: measure("cat work/n; grep -q 11 work/n && sleep 30; true"), agent: raise},
	{name: "min-delta", spec: merge(iterations(2), doc{"verify": doc{"minDelta": 2}}), agent: by("1) n 11; echo little", "2) n 13; echo more")},
	{name: "min-delta-percent", spec: merge(iterations(2), doc{"verify": doc{"minDelta": "20%"}}), agent: by("1) n 11; echo little", "2) n 13; echo more")},
	{name: "suspicious-set-aside", spec: merge(iterations(2), lower), agent: by("1) n 0; echo nothing left", "2) n 9; echo lower")},
	{name: "suspicious-asked-keep", spec: merge(lower, doc{"verify": doc{"suspicious": "ask"}}), agent: by("1) n 0; echo nothing left"),
		answers: answers{"question": {"answer keep"}}},
	{name: "suspicious-asked-discard", spec: merge(lower, doc{"verify": doc{"suspicious": "ask"}}), agent: by("1) n 0; echo nothing left"),
		answers: answers{"question": {"answer discard"}}},
	{name: "suspicious-marked", spec: merge(lower, doc{"verify": doc{"suspicious": "mark"}}), agent: by("1) n 0; echo nothing left")},
	{name: "second-metric-bound", spec: merge(iterations(2), doc{"metrics": []doc{{"name": "size", "direction": "lower", "atWorst": 5}}}),
		files: merge2(measure(`echo "METRIC size=$(cat work/size)"; echo "METRIC n=$(cat work/n)"`), "work/size", "4\n"),
		agent: by("1) n 11; echo 9 >work/size; echo larger", "2) n 11; echo smaller")},
	{name: "second-metric-missing", spec: doc{"metrics": []doc{{"name": "size", "direction": "lower"}}}, agent: raise},
	{name: "noisy", spec: merge(iterations(2), doc{"verify": doc{"maxSamples": 6}}),
		files: measure(`awk -v n="$(cat work/n)" -v s="$(date +%N)" 'BEGIN { print n + s % 7 / 1000 }'`), agent: by("1) n 20; echo double", "2) n 3; echo less")},
	{name: "holdout", spec: doc{"verify": doc{"holdout": doc{"command": "cat work/n"}}}, agent: raise},

	// Guards.
	{name: "guard-fails", spec: iterations(2), agent: by("1) n 11; echo bad >work/other; echo careless", "2) n 12; echo careful")},
	{name: "guard-reworked", agent: by("1.1) n 11; echo bad >work/other; echo careless", "1.2) n 11; echo good >work/other; echo careful")},
	{name: "guard-fails-at-the-start", files: map[string]string{"work/other": "bad\n"}, agent: raise},
	{name: "guard-without-retries", spec: doc{"guard": doc{"retries": 0}}, agent: by("1) n 11; echo bad >work/other; echo careless")},
	{name: "guard-counts-tests", files: map[string]string{"guard.sh": "cat work/other\n", "work/other": "TAP version 13\n1..2\nok 1 - a\nok 2 - b\n"},
		agent: by(`1) n 11; printf 'TAP version 13\n1..1\nok 1 - a\n' >work/other; echo fewer`)},
	{name: "guard-names-failures", files: map[string]string{"guard.sh": "cat work/other\n", "work/other": "TAP version 13\n1..1\nok 1 - a\n"},
		agent: by(`1) n 11; printf 'TAP version 13\n1..1\nnot ok 1 - a\n' >work/other; echo broken`)},
	{name: "guard-changes-a-file", files: map[string]string{"guard.sh": "! grep -q 11 work/n || echo 12 >work/n\n"}, agent: raise},
	{name: "guard-changes-a-file-at-the-start", files: map[string]string{"guard.sh": "echo 12 >work/n\n"}, agent: raise},
	{name: "check-fails", spec: doc{"check": doc{"command": "sh check.sh"}}, agent: by("1.1) n 11; echo bad >work/syntax; echo badly", "1.2) n 11; echo well"), files: map[string]string{"work/syntax": "fine\n"}},
	{name: "setup", spec: doc{"setup": doc{"command": "mkdir -p made && echo yes >made/it"}, "verify": doc{"command": "cat made/it work/n"}},
		files: map[string]string{".gitignore": "made/\n"}, agent: raise},
	{name: "setup-fails", spec: doc{"setup": doc{"command": "echo no such package; exit 1"}}, agent: raise},

	// Policies.
	{name: "out-of-scope", spec: iterations(2), agent: by("1) echo steep >README.md; echo outside", "2) n 11; echo inside")},
	{name: "sealed-reworked", agent: by("1.1) n 11; echo true >guard.sh; echo ease", "1.2) n 11; echo raise")},
	{name: "sealed-blocks-rejected", spec: limits("iterations", 2, "onSealed", "block"), agent: by("1) n 11; echo true >guard.sh; echo ease", "2) n 11; echo raise"),
		answers: answers{"guard": {"reject --note no"}}},
	{name: "sealed-blocks-halted", spec: limits("iterations", 2, "onSealed", "block"), agent: by("1) n 11; echo true >guard.sh; echo ease"),
		answers: answers{"guard": {"halt"}}},
	{name: "protected", spec: doc{"protect": []string{"work/other"}}, agent: by("1) n 11; echo fine >work/other; echo touch")},
	{name: "secret", agent: by("1) n 11; echo 'aws_secret_access_key = \"wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY\"' >work/other; echo leak"), answers: answers{"guard": {"halt"}}},
	{name: "new-file-denied", spec: iterations(2), agent: by("1) n 11; echo x >work/new; echo add", "2) n 11; echo raise")},
	{name: "new-file-allowed", spec: doc{"newFiles": "allow"}, agent: by("1) n 11; echo x >work/new; echo add")},
	{name: "new-file-asked-approved", spec: doc{"newFiles": "ask"}, agent: by("1) n 11; echo x >work/new; echo add")},
	{name: "new-file-asked-rejected", spec: doc{"newFiles": "ask"}, agent: by("1) n 11; echo x >work/new; echo add"), answers: answers{"newFiles": {"reject"}}},
	{name: "link-out", agent: by("1) ln -sf /etc/passwd work/other; n 11; echo link")},
	{name: "too-many-lines", spec: doc{"guard": doc{"policy": "small"}, "policies": doc{"small": doc{"maxLines": 4}}}, agent: by("1) seq 9 >work/other; n 11; echo long")},
	{name: "binary-denied", spec: doc{"guard": doc{"policy": "text"}, "policies": doc{"text": doc{"binary": "deny"}}}, agent: by(`1) n 11; printf 'a\000b' >work/other; echo bytes`)},
	{name: "fifo", agent: by("1) n 11; mkfifo work/pipe; echo pipe")},
	{name: "nested-repository", agent: by("1) n 11; git init -q work/inner; echo x >work/inner/x; echo nest")},
	{name: "executable-bit", agent: by("1) n 11; chmod +x work/other; echo run")},
	{name: "attributes", spec: doc{"newFiles": "allow"}, agent: by("1) n 11; echo '* -diff' >work/.gitattributes; echo attributes")},
	{name: "not-atomic", spec: doc{"limits": doc{"atomic": "rework"}}, agent: by("1.1) n 11; echo fine >work/other; echo 'raise n and polish other'", "1.2) n 11; echo good >work/other; echo 'raise n'")},

	// People.
	{name: "contract-rejected", agent: raise, answers: answers{"contract": {"reject --note 'not now'"}}},
	{name: "diff-rejected", agent: raise, answers: answers{"diff": {"reject --note 'no'"}}},
	{name: "diff-approved-and-applied", agent: raise, answers: answers{"diff": {"approve --apply ff"}}},
	{name: "diff-approved-and-merged", spec: iterations(2), agent: raise, answers: answers{"diff": {"approve --apply merge"}}},
	{name: "diff-approved-and-squashed", spec: iterations(2), agent: raise, answers: answers{"diff": {"approve --apply squash"}}},
	{name: "diff-auto", spec: doc{"approvals": doc{"diff": "auto"}}, agent: raise},
	{name: "plan-auto", spec: doc{"approvals": doc{"plan": "auto", "diff": "auto"}}, agent: raise},
	{name: "paused-and-continued", spec: iterations(2), agent: by("1) reach one; n 11; echo a", "2) n 12; echo b"), deeds: []deed{{"one", []string{"pawl pause $LOOP", "pawl continue $LOOP"}}}},
	{name: "steered", spec: iterations(2), agent: by("1) reach one; n 11; echo a", `2) grep -q "look left" "$PAWL_PROMPT" && n 12; echo b`),
		deeds: []deed{{"one", []string{"pawl steer $LOOP 'look left'"}}}},
	{name: "halted-at-work", spec: iterations(2), agent: by("1) reach one; sleep 60"), deeds: []deed{{"one", []string{"pawl halt $LOOP"}}}},
	{name: "mode-changed", spec: iterations(2), agent: by("1) reach one; sleep 60"), deeds: []deed{{"one", []string{"pawl mode $LOOP plan"}}}},
	{name: "loop-stop-file", spec: iterations(2), agent: by("1) reach one; n 11; echo a", "2) n 12; echo b"), deeds: []deed{{"one", []string{"touch repo/loop-stop"}}}},
	{name: "breakpoint", spec: merge(iterations(2), doc{"breakpoints": []string{"verify"}}), agent: raise, answers: answers{"breakpoint": {"continue"}}},
	{name: "amended-verify", agent: by("1) n 11; echo raise"), files: measure("cat work/n; ! grep -q 11 work/n || exit 127"),
		answers: answers{"question": {"amend --set 'verify.command=cat work/n'", "halt"}, "contract": {"approve"}}},
	{name: "wrong-messages", agent: by("1) reach one; n 11; echo a"),
		deeds: []deed{{"one", []string{"pawl approve $LOOP --hash 0123456789abcdef", "pawl answer $LOOP keep", "pawl extend $LOOP --limit iterations=9", "pawl steer $LOOP ''"}}}},
	{name: "base-moves", agent: by("1) reach one; n 11; echo a"),
		deeds: []deed{{"one", []string{"cd repo && echo more >>README.md && git commit -qam more"}}}, answers: answers{"diff": {"approve --apply squash"}}},
	{name: "base-conflicts", agent: by("1) reach one; n 11; echo a"),
		deeds: []deed{{"one", []string{"cd repo && echo 50 >work/n && git commit -qam mine"}}}, answers: answers{"diff": {"approve --apply ff"}}},
	{name: "dirty-tree", agent: by("1) reach one; n 11; echo a"), deeds: []deed{{"one", []string{"echo 12 >repo/work/n"}}}, answers: answers{"diff": {"approve --apply ff"}}},

	// Roles, candidates, courses.
	{name: "ideas", spec: merge(iterations(2), doc{"agent": doc{"ideas": true}}), agent: as(`ideator) echo "raise the number"`, "writer) "+raise)},
	{name: "reviewed", spec: doc{"agent": doc{"roles": doc{"reviewer": doc{}}}, "approvals": doc{"diff": "auto"}}, agent: as("writer) "+raise, approves)},
	{name: "review-rejects", spec: doc{"agent": doc{"roles": doc{"reviewer": doc{}}}, "approvals": doc{"diff": "auto"}}, agent: as("writer) "+raise, rejects)},
	{name: "candidates", spec: limits("iterations", 4, "parallel", 2), agent: `echo $(($(cat work/n) + 1)) >work/n; echo "raise"`},
	{name: "strategy-shifts", spec: limits("iterations", 5, "shiftAfter", 2), agent: by("1) n 1; echo a", "2) n 2; echo b", "3) n 3; echo c", "4) n 11; echo d", "5) n 12; echo e")},
	{name: "backtracks", spec: limits("iterations", 7, "shiftAfter", 2, "backtrack", true),
		agent: by("1) n 11; echo a", "2) n 12; echo b", "3) n 1; echo c", "4) n 2; echo d", "5) n 14; echo e", "6) n 15; echo f", "7) n 16; echo g")},
	{name: "fallback-agent", spec: doc{"agent": doc{"fallback": []doc{{"command": "echo 11 >work/n; echo second"}}}}, agent: "exit 75"},
	{name: "result-file", agent: raise + `; echo '{"description": "from the file", "toolCalls": 7, "inputTokens": 11, "outputTokens": 5, "costUSD": 0.5}' >"$PAWL_RESULT"`},

	// Kills.
	{name: "killed-while-the-agent-works", alone: true, spec: iterations(2), agent: by("1) reach one; n 11; echo a", "2) n 12; echo b"), deeds: []deed{{"one", []string{"kill-up", "up"}}}},
	{name: "killed-while-verify-runs", alone: true, spec: merge(iterations(2), doc{"verify": doc{"timeout": "5m"}}),
		files: measure(`if grep -q 11 work/n && [ ! -e "$WORLD/measured" ]; then touch "$WORLD/measured"; until [ -e "$WORLD/measured.done" ]; do sleep 0.05; done; fi; cat work/n`),
		agent: raise, deeds: []deed{{"measured", []string{"kill-up", "up"}}}},
	{name: "killed-at-a-gate", alone: true, agent: raise, deeds: []deed{{"gate-diff", []string{"kill-up", "up"}}}},
	{name: "killed-twice", alone: true, spec: iterations(3), agent: by("1) reach one; n 11; echo a", "2) reach two; n 5; echo b", "3) n 12; echo c"),
		deeds: []deed{{"one", []string{"kill-up", "up"}}, {"two", []string{"kill-up", "up"}}}},

	// Specs and repositories that are refused.
	{name: "unknown-key", spec: doc{"limts": doc{}}},
	{name: "wrong-type", spec: limits("iterations", "many")},
	{name: "contradiction", spec: doc{"limits": doc{"parallel": 2}, "approvals": doc{"onDenied": "ask"}}},
	{name: "empty-scope", spec: doc{"scope": []string{"nothing/**"}}},
	{name: "no-git", spec: doc{"repo": doc{"path": "/tmp"}}},
	{name: "no-base", spec: doc{"repo": doc{"base": "nowhere"}}},
	{name: "absent-program", spec: doc{"verify": doc{"command": "no-such-program --count"}}},
}

var lower = doc{"verify": doc{"direction": "lower"}}

func iterations(n int) doc { return limits("iterations", n) }

// limits returns a spec with these limits: keys and values in turn.
func limits(pairs ...any) doc {
	set := doc{}
	for i := 0; i < len(pairs); i += 2 {
		set[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return doc{"limits": set}
}

// measure returns the files of a repository whose verify command is this script.
func measure(script string) map[string]string { return map[string]string{"measure.sh": script + "\n"} }

func merge2(files map[string]string, name, content string) map[string]string {
	files[name] = content
	return files
}
