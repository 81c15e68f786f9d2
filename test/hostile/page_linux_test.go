package hostile_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/world"
)

// outcomes are the words of the page for what comes of an escape.
var outcomes = map[string]string{
	harmless: "counts for nothing", refused: "refused", reached: "**not stopped**",
	noticed: "ends the loop", sealed: "blocks the loop (`sealed`)", secret: "blocks the loop (`secrets`)", nothing: "–",
}

// TestEscapesAreDocumented holds docs/escapes.md to what TestEscapes and the sandbox's tests prove.
func TestEscapesAreDocumented(t *testing.T) {
	outcome := func(comes string) string {
		if text, ok := outcomes[comes]; ok {
			return text
		}
		return "undone (`" + comes + "`)"
	}
	var page strings.Builder
	page.WriteString(escapesPage)
	count := 0
	table := func(title string, deeds []escape) {
		fmt.Fprintf(&page, "\n## %s\n\n| the agent tries to | in a sandbox | without one |\n|---|---|---|\n", title)
		for _, e := range deeds {
			fmt.Fprintf(&page, "| %s | %s | %s |\n", e.name, outcome(e.with), outcome(e.without))
			count++
		}
	}
	for i, group := range escapes[1:] {
		if i == 1 { // behind what is done to the evaluator's own files
			table("What the evaluator finds by itself", append(slices.Clone(outranks), same("change a measure outside of the repository", "", noticed)))
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
	page.WriteString("\n" + bounds)
	require.Greater(t, count, 250)
	if *world.Update {
		require.NoError(t, os.WriteFile("docs/escapes.md", []byte(page.String()), 0o644))
	}
	require.Equal(t, page.String(), world.ReadFile("docs/escapes.md"), "docs/escapes.md is out of step: go test ./test/hostile -run TestEscapesAreDocumented -update")
}

const bounds = `## Memory and processes

A memory bomb, files in ` + "`" + `/tmp` + "`" + `, a fork bomb and threads without end are ended by the loop's cgroup where there is one, as root
and by bubblewrap, and a command that mounts the cgroups in namespaces of its own does not find the one with its limit
(` + "`" + `TestE6_BombsEndTheCommand` + "`" + `, ` + "`" + `TestE6_NoCommandLiftsItsLimits` + "`" + `). Without a cgroup they are **not stopped**, and the contract
says so. [Operating](operating.md#memory-and-processes) has the machines.

## Disks

What fills the tree, the caches, the folder of the result, a file that has no name any more, or the table of files ends the
command that does it, by ` + "`limits.deskBytes`" + `, and by itself where a disk is nearly full; other loops go on
(` + "`TestE6_AnAgentThatFillsTheDiskStopsItself`" + `). ` + "`/tmp`" + ` is in memory.

## What is known to be open

- Your repository can be read. A socket or a named pipe in it leads to nobody, and a lock on a file in it holds nobody up
  (` + "`TestE6_WhatCanBeReadIsNotSpokenTo`" + `). By bubblewrap, where the kernel makes no overlay of it, and where something is mounted in
  it, what is in it is the machine's own: a program that begins to listen in it while a command runs can be spoken
  to by that command. One that listened before is hidden, if it has named its socket by a full path. That also holds for
  the system's folders and for toolchains in your home.
- pawl holds $PAWL_HOME and your repository open, and works in the folders that it has checked, whatever is renamed or
  put in their place (` + "`TestE6_AHeldRepositoryIsTheOneThatItWas`, `TestE6_TheStoreIsTheOneThatItWas`, `TestE6_ATreeIsTakenAwayWhereItWas`" + `,
  ` + "`TestE6_TheEngineIsInTheHomeThatItWas`, `TestE6_TheJudgeIsInTheHomeThatItWas`" + `). SQLite opens nothing but paths: that it has opened the
  database of the folder that pawl holds is looked at afterwards, and an engine that has opened another one does not start. To
  show a tree in a sandbox takes its path, too: if another folder stands at the path of $PAWL_HOME, no command is run, and the
  loop goes on when the folder is back. What a sandbox shows to be read (your repository, toolchains) is what stands at its
  path when the sandbox is made. On macOS all of it is by path.
- The kernel lets programs of one user set each other's priority and processors by a number, and threads of a loop's
  supervisor have numbers that can be guessed. A command can so slow the supervisor of its own loop down, which then
  keeps limits of time late.
- What the kernel counts for each user (inotify instances and watches, namespaces, pending signals) a command can use up for
  all that runs as this user, until it ends.
- A ledger never changes. What an earlier pawl wrote into one before it knew a kind of secret stays there:
  ` + "`git log -p refs/pawl-ledger/LOOP`" + ` shows all of it, and a secret that is in there is one to replace.
- By bubblewrap a sandbox is made for each command, not for each tree: it can start a program in a sandbox and none in
  one that is there.
`

const escapesPage = `<!-- Generated from the code by go test ./test/hostile -run TestEscapesAreDocumented -update ; do not edit. -->

# Escapes

What hostile agents try, and what comes of it. A test does each of these through the built program, in a
sandbox and without one, and holds the outcome to this page (` + "`test/hostile`" + `). What is refused is tried by the agent, and
again by verify, which runs what the agent wrote: as root and as an ordinary user, in pawl's own namespaces and in
bubblewrap's.

- **counts for nothing**: it can be done, and the change is judged and kept as if it had not been.
- **undone**: the change never stays on the branch; the reason in brackets is that of the results.
- **blocks the loop**: the change is parked until a person has mended it, or drops it.
- **refused**: the machine does not let the agent do it.
- **ends the loop**: nothing is judged any more; the loop fails with ` + "`PRECONDITION_FAILED`" + `.
- **not stopped**: without a sandbox an agent has your rights on the machine. Use one, or a machine that has
  nothing else on it: ` + "`sandbox.use: required`" + ` makes a loop refuse to start where there is none. Which protections
  hold is in the contract, before it is approved; [Operating it](operating.md#the-sandbox) has them by machine. Some
  of it takes root's rights.
- **–**: without a sandbox there is nothing to try it on.

What no wall stops: code that is measured can lie about itself. A test and the code that it tests run in one process, so
that code under change can end it with success, or tell it another time. Such a change is in the diff: read it, or measure
from outside (a program that looks at output, in a process of its own).

After all of it your repository is what it was to the byte but for the loop's own branch and ledger, no process
is left, and ` + "`pawl log --verify`" + ` finds the ledger whole. More deeds of the kind, with what is around them, are in
` + "`test/hostile` and `test/ends`" + `.
`
