package security_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// outcomes are the words of the page for what comes of an escape.
var outcomes = map[string]string{
	harmless: "counts for nothing", refused: "refused", reached: "**not stopped**",
	noticed: "ends the loop", sealed: "blocks the loop (`sealed`)", secret: "blocks the loop (`secrets`)", nothing: "–",
}

// TestEscapesAreDocumented holds docs/reference/escapes.md to what TestEscapes and the sandbox's tests prove.
func TestEscapesAreDocumented(t *testing.T) {
	outcome := func(comes string) string {
		if text, ok := outcomes[comes]; ok {
			return text
		}
		return "undone (`" + comes + "`)"
	}
	var details, summary strings.Builder
	count := 0
	table := func(title string, deeds []escape) {
		fmt.Fprintf(&details, "\n## %s\n", title)
		var ways []string
		byWay := map[string][]string{}
		counts := map[bool]map[string]int{true: {}, false: {}}
		for _, e := range deeds {
			too := ""
			if other, is := ordinary[e.name]; is {
				too = "; by an ordinary user " + outcome(other)
			}
			with, without := outcome(e.with)+too, outcome(e.without)+too
			way := "With and without a sandbox: " + with
			if with != without {
				way = "In a sandbox: " + with + ". Without one: " + without
			}
			if e.without == nothing {
				way = "In a sandbox: " + with + ". Without one: not tried"
			}
			if byWay[way] == nil {
				ways = append(ways, way)
			}
			byWay[way] = append(byWay[way], e.name)
			counts[true][brief(e.with)]++
			counts[false][brief(e.without)]++
			count++
		}
		for _, way := range ways {
			fmt.Fprintf(&details, "\n%s\n\n- %s\n", way, strings.Join(byWay[way], "\n- "))
		}
		fmt.Fprintf(&summary, "| [%s](#%s) | %s | %s |\n", title, strings.NewReplacer(" ", "-", ",", "").Replace(strings.ToLower(title)), counted(counts[true]), counted(counts[false]))
	}
	for i, group := range escapes[1:] {
		if i == 1 { // behind what is done to the evaluator's own files
			table("Files that the evaluator finds by itself", append(slices.Clone(outranks), escape{"change a measure script outside the repository", "", refused, noticed}))
		}
		table(group.after, slices.DeleteFunc(slices.Clone(group.deeds), func(e escape) bool { return e.script == ":" }))
	}
	for _, group := range attempts {
		var deeds []escape
		for _, a := range group.deeds {
			deeds = append(deeds, escape{name: a.name, with: refused, without: cmp.Or(a.without, reached)})
		}
		table(group.after, deeds)
	}
	page := escapesPage + summary.String() + details.String() + "\n" + bounds
	require.Greater(t, count, 250)
	if *world.Update {
		require.NoError(t, os.WriteFile("docs/reference/escapes.md", []byte(page), 0o644))
	}
	require.Equal(t, page, world.ReadFile("docs/reference/escapes.md"), "docs/reference/escapes.md is out of step: go test ./test/security -run TestEscapesAreDocumented -update")
}

// brief returns the word of the summary for what comes of an escape.
func brief(comes string) string {
	switch comes {
	case sealed, secret:
		return "blocked"
	case noticed:
		return "ends the loop"
	case nothing:
		return "not tried"
	case harmless:
		return "without effect"
	case refused, reached:
		return outcomes[comes]
	}
	return "undone"
}

func counted(counts map[string]int) string {
	var parts []string
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[word], word))
	}
	return strings.Join(parts, ", ")
}

const bounds = `## Memory and processes

The loop's cgroup, if there is one, ends a memory bomb, files in ` + "`" + `/tmp` + "`" + `, a fork bomb and endless threads, as root and by bubblewrap.
A command that mounts the cgroups in its own namespaces does not find the one with its limit
(` + "`" + `TestE6_BombsEndTheCommand` + "`" + `, ` + "`" + `TestE6_NoCommandLiftsItsLimits` + "`" + `). Without a cgroup these are **not stopped**, and the contract
says so. [Sandbox](sandbox.md#memory-and-processes) lists the machines.

## Disks

A command can fill the tree, the caches, the result's folder, a deleted file that it still has open, or the table of files. It is
ended by ` + "`" + `limits.deskBytes` + "`" + `, or without that when the disk is nearly full. Other loops continue
(` + "`" + `TestE6_AnAgentThatFillsTheDiskStopsItself` + "`" + `). ` + "`" + `/tmp` + "`" + ` is in memory.

## What is known to be open

- An agent can read your repository. A socket or a named pipe in it leads nowhere, and a lock on a file in it blocks nobody
  (` + "`" + `TestE6_WhatCanBeReadIsNotSpokenTo` + "`" + `). Three cases are exceptions: bubblewrap, a kernel that makes no overlay of the repository, and
  folders in it where something is mounted. There a command can speak to a program that begins to listen in the repository
  while the command runs. A program that listened before is hidden, if it has named its socket by a full path. The same holds for
  the system's folders and for toolchains in your home.
- pawl holds $PAWL_HOME and your repository open. It works in the folders that it has checked, even if somebody renames or
  replaces them (` + "`" + `TestE6_AHeldRepositoryIsTheOneThatItWas` + "`" + `, ` + "`" + `TestE6_ARepositoryThatAFileURLNamesIsTheOneThatItWas` + "`" + `,
  ` + "`" + `TestE6_AStartAndAnAdoptionStayAtTheRepositoryThatTheyFound` + "`" + `, ` + "`" + `TestE6_APushGoesWholeToTheRepositoryThatItWas` + "`" + `,
  ` + "`" + `TestE6_TheStoreIsTheOneThatItWas` + "`" + `, ` + "`" + `TestE6_ATreeIsTakenAwayWhereItWas` + "`" + `,
  ` + "`" + `TestE6_TheEngineIsInTheHomeThatItWas` + "`" + `, ` + "`" + `TestE6_TheJudgeIsInTheHomeThatItWas` + "`" + `). SQLite can open only paths. So pawl checks afterwards
  that it has opened the database of the held folder, and an engine that has opened another one does not start. A sandbox also
  finds a tree by its path. If another folder is at the path of $PAWL_HOME, pawl runs no command, and the loop continues when the
  folder is back. The files that a sandbox may only read (your repository, toolchains) are those at their paths when pawl makes the
  sandbox. On macOS pawl uses paths for everything.
- While a repository at a file:// URL takes a push, git names its folder for objects by the path. If another repository is put
  there at that moment, git refuses the push, or the loop's ref is left with objects missing; nothing of the other one runs. pawl
  can't prevent that without changing what hooks of the repository see. A repository at ` + "`" + `repo.path` + "`" + ` takes a push whole.
- Commands of root read of /etc, /opt and /usr what everybody may read, what the spec names by its path, and nothing that is put
  there later for root alone (` + "`" + `TestE6_WhatOnlyRootMayReadIsReadByNoCommandOfRoots` + "`" + `). With bubblewrap, and on file systems
  without idmapped mounts, pawl covers each file for root alone that it found in /etc and /opt in the last minute. There root's
  commands can read one that is new or was replaced since, and in /usr/local what root may read: run pawl as an
  ordinary user if there are secrets.
- What the commands of a kept change wrote to caches stays for later judgements of that loop
  (` + "`" + `TestE6_OnlyWhatAKeptChangeLeftInCachesIsFound` + "`" + `). So code that is kept once can leave a forged result there, and a later change
  can remove that code. Before the loop proposes anything, pawl [judges its head from scratch](sandbox.md#judged-from-scratch)
  (` + "`" + `TestE6_PoisonThatAKeptChangeLeavesIsNotProposed` + "`" + `, ` + "`" + `TestE6_PoisonInWhatTheJudgeKeepsIsNotProposed` + "`" + `). But it does not judge the commits in between again, nor the head of a loop
  that a person halts or that has no time left. ` + "`" + `pawl show` + "`" + ` says so. Judge these in a fresh clone before you trust them.
- The kernel lets programs of one user set each other's priority and processors by a thread's number. The numbers of the
  supervisor's threads can be guessed. So a command can slow down the supervisor of its own loop, which then
  keeps time limits late.
- A command can read in ` + "`" + `/sys/fs/cgroup` + "`" + ` which services and containers run on the machine, and how much memory and processor time
  each uses. Runtimes such as Java's look up their own limits there. It sees none of their processes.
- The kernel counts some resources for each user: inotify instances and watches, namespaces, pending signals. A command can use
  them up for everything that runs as this user, until the command ends.
- A ledger never changes. If an earlier version of pawl did not know a kind of secret, the secret stays in the ledgers of that time:
  ` + "`" + `git log -p refs/pawl-ledger/LOOP` + "`" + ` shows everything. Replace a secret that is in there.
- Bubblewrap makes a sandbox for each command, not for each tree: it can't start a program in a sandbox that already exists.
`

const escapesPage = `<!-- Generated from the code by go test ./test/security -run TestEscapesAreDocumented -update ; do not edit. -->

# Escapes

This page lists what hostile agents try, and what happens. A test does each of these things through the built program, in a
sandbox and without one, and compares the outcome with this page (` + "`" + `test/security` + "`" + `). First the agent tries each refused action, then
verify tries it again, because verify runs code that the agent wrote. The test does this as root and as an ordinary user, in pawl's
own namespaces and in bubblewrap's.

- **counts for nothing**: the agent can do it, but it has no effect: pawl judges and keeps the change as usual.
- **undone**: the change never stays on the branch; the results show the reason in brackets.
- **blocks the loop**: the change waits until a person has fixed it, or drops it.
- **refused**: the machine does not let the agent do it.
- **ends the loop**: pawl judges nothing any more; the loop fails with ` + "`" + `PRECONDITION_FAILED` + "`" + `.
- **not stopped**: without a sandbox an agent has your rights on the machine. Use a sandbox, or a machine with
  nothing else on it. With ` + "`" + `sandbox.use: required` + "`" + ` a loop refuses to start without a sandbox. Before you approve the contract, it
  says which protections work; [Sandbox](sandbox.md#the-sandbox) lists them by machine. Some of these actions need root's rights.
- **not tried**: without a sandbox there is nothing to try it on.

No sandbox stops code that lies about itself while pawl measures it. A test and the code that it tests run in one process, so
the code can end the test with success, or tell it a wrong time. You can see such a change in the diff: read it, or measure
from outside, with a program that looks at output from its own process.

After all of this your repository is unchanged to the byte, except for the loop's branch and ledger. No process
is left, and ` + "`" + `pawl log --verify` + "`" + ` finds the ledger complete. There are more such actions in ` + "`" + `test/security` + "`" + ` and ` + "`" + `test/e2e/ends` + "`" + `.

The number of things that the agent tries, and what comes of them. [What is known to be open](#what-is-known-to-be-open) stands at
the end.

| it is about | in a sandbox | without one |
|---|---|---|
`
