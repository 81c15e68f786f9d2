// Package test drives the built program from outside, as people and programs do: its
// commands, exit codes and words, what `pawl show --json` says, and what is in git afterwards.
// Start at world_test.go; badinput_test.go is what users get wrong, hostile_test.go what agents
// do, session_test.go what people do while a loop runs.
package test
