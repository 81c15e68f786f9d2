// Package evaluator finds the files that judge the work: those that the commands of a spec run, name or discover, and
// names of files that would change the judgement if somebody added them. An agent may never change them (P3).
//
// The package is pure: it gets the names of files from its callers, and the texts of files that its callers have
// read. It never runs what it reads. If it can't tell what a script runs, it says so (Set.Unread).
//
// Start reading at [Find]. The table of the programs that judge is in evaluator.go.
package evaluator
