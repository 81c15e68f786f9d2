package rules

import (
	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/shell"
)

// waits matches what programs print while they wait for changes: jest, vitest, tsc, mocha, nodemon, rollup, esbuild,
// webpack, dotnet watch, cargo watch, mix test.watch, karma, gradle.
var waits = lazyregexp.New(`(?i)(waiting|watching) for (a |file |any )?(file |source )?change|watch(ing)? for file changes|watch usage|waiting for a file to change|waiting for changes|` +
	`press .{1,12} to (quit|show help|run all|rerun|exit)|\[watch(ing)?\]|\[finished running|file change detected|watch mode|karma v[0-9.]+ server started`)

// WatchAdvice returns what to write instead of a command that was ended because it took too long, if it waits for
// changes and so never ends by itself: its own words or what it printed last show that. Else it returns "".
func WatchAdvice(command, printed string) string {
	single, watches := shell.Unwatched(command)
	switch {
	case watches && single != "":
		return "It waits for changes and never ends. Use `" + single + "`."
	case watches || waits().MatchString(printed):
		return "It waits for changes (watch mode) and never ends. Use the form that runs once, such as `vitest run`, `jest --watchAll=false`, or `tsc` without -w."
	}
	return ""
}

// SlowAdvice returns the advice for a command that took longer than its limit, which is the value of key.
func SlowAdvice(key, command, printed string) string {
	if advice := WatchAdvice(command, printed); advice != "" {
		return advice
	}
	return "Have it do less, or raise " + key + "."
}
