// Package spec is what people write for a loop: the spec, with its types, its defaults and its validation, and what
// follows from a spec alone, for example which files are in scope (P0, P3).
//
// Sub-rooms: kind (the kinds of workflows, each one value with its transition table), phase (the parts of such a
// table), agents (the table of agent programs), issue (a Markdown issue as a goal).
//
// Start at [Spec], then [FromMap], which is the only way from a document to a Spec.
//
// Nothing here opens a file, runs a command, reads the environment or uses Temporal: config/ finds the file and
// merges environment and flags into it. Nothing here decides about a running loop: internal/loop/rules does. A
// steward's spec is in internal/steward/charter.
package spec
