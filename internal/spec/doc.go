// Package spec has the spec of a loop: its types, its defaults, its validation, and what follows from a spec alone,
// for example which files are in scope (P0, P3).
//
// It is pure: its callers read the documents from disk. It never opens a file, runs a command, reads the environment
// or uses Temporal. config/ finds the file and merges environment and flags into it.
//
// Start reading at [Spec], then [FromMap], which is the only way from a document to a Spec. internal/seal finds the
// files that an agent may never touch.
package spec
