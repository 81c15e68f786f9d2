// Package evidence turns the output of commands into decisions. It reads the metric out of a verify command's output,
// decides whether a change is kept, writes the lines of loop-results.tsv, and keeps the bounded statistics that the
// agent gets in the review before every iteration (P1, P2, P6, P7, P9).
//
// It is pure: values in, values out. It never reads a file, runs a command, reads a clock or knows about Temporal. So
// tables and properties test every rule here, and workflow code may call it.
//
// Start reading at [Extract] (a number from output), then [Decide] (keep or discard), then [Analysis] (what the loop
// has learnt so far). [Decimal] is the number that all of them share.
package evidence
