// Package fault is the one family of errors that people and programs meet: each has a code, says what happened and
// what to do. The table is the only place that knows the codes; the workflow failure type, update replies, the
// state's errorCode and the command's exit code all come from it (L11, E5).
//
// Sub-room: wire (faults as data between workflows, activities and clients).
//
// Start at Table. A new error code begins there.
//
// This package decides nothing and touches nothing; only wire knows Temporal.
package fault
