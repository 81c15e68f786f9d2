// Package spec is what a person asks of a loop: the types of the spec, its defaults and its
// validation, and what follows from a spec alone, such as which files are in scope (P0, P3).
//
// It is pure: it reads documents that others have read from disk. It never opens a file, runs a
// command, looks at the environment or knows about Temporal. Finding the file, and merging environment and flags into
// it, is what config/ does.
//
// Start reading at [Spec], then [FromMap], which is the one way from a document to a Spec.
// Which files an agent may never touch is found by internal/seal.
package spec
