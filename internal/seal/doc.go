// Package seal finds the files that judge the work: those that the commands of a spec run, name or discover, and the
// names by which they would judge otherwise. An agent may never change them (P3).
//
// It is pure: it decides on the names of files that others have listed, and on texts that others have read. It never runs
// what it reads, and where it can't tell what runs it says so.
//
// Start reading at [Find]. The table of the programs that judge is in evaluator.go.
package seal
