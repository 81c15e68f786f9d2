// Package realrepos runs pawl on repositories that others wrote: `init`, `validate`, three iterations of `Improve` with an
// agent that cheats once, and `Deliver` of one broken function. They come from Go's proxy, from npm and from Debian's
// source packages, and are kept in the user's cache. testdata has what `init` proposes for each, for people to read.
// Start at sources.
//
// # Real commits
//
// Package managers have no commits, so the package replays their releases (replays). To replay the commits of a git
// repository, write a YAML file such as this, and name it in $PAWL_REPLAY:
//
//	# a list of repositories
//	- repo: /home/ann/src/thing       # a clone, or a bare repository
//	  commits: v1.2..v1.3             # what git rev-list takes; only first parents, the oldest first
//	  measure: cat *.go | wc -c       # prints an integer
//	  higher: true                    # whether more is better; without it less is better
//	  guard: go test ./...
//	  tests: _test\.go$               # the files that judge the work: those of the first parent may not change
//	  fixes: [1a2b3c4, 5d6e7f8]       # commits that mend something and bring tests for it
//
// Then run:
//
//	PAWL_REPLAY=/tmp/thing.yaml go test -count=1 -v -timeout 1h -run 'TestReal(Commits|Fixes)' ./test/realrepos
//
// TestRealCommitsAreJudgedAsAnOracleDoes has the agent make each of these commits on top of what was kept, once with
// these commands and newFiles: allow (exact), once with what `pawl init` proposes (init). An oracle that knows nothing of
// pawl makes the same changes in a clone of its own, and both must say the same of each commit: kept, or the reason why
// not. TestRealFixesAreDeliveredAsAnOracleSays begins before each fix, with its tests. The agent makes the fix, a half of it, or
// takes the tests away. The loop must deliver exactly if no file that judges was changed and the tests pass.
//
// More keys, all optional: before is a script that changes the repository before the loop begins, for what is missing
// here. protect (globs) and setup are the spec's, for exact. improve and deliver are parts of a spec that replace what init
// proposes. code is an expression for the files of a fix that the agent changes, all but the tests by default. The tests of a
// fix have to fail without it, and all others have to pass. With $PAWL_REPLAY_OUT, a folder, you find prompts, logs and output
// of each fix there.
package realrepos
