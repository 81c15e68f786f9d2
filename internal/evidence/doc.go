// Package evidence turns what commands print into decisions: it reads the metric out of a
// verify command's output, decides whether a change is kept, writes and reads the lines of
// loop-results.tsv, and keeps the bounded statistics that the review before every iteration
// hands to the agent (P1, P2, P6, P7, P9).
//
// It is pure: values in, values out. It never reads a file, runs a command, looks at a clock
// or knows about Temporal, so every rule here is tested by tables and properties and may be
// called from workflow code.
//
// Start reading at [Extract] (a number out of output), then [Decide] (keep or discard), then
// [Analysis] (what the loop has learnt so far). [Decimal] is the number that all of them share.
package evidence
