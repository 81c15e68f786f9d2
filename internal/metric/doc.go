// Package metric turns the output of commands into numbers and decisions. It reads the metric out of a verify
// command's output, decides whether a change is kept, writes the lines of loop-results.tsv, and keeps the bounded
// statistics that the agent gets in the review before every iteration (P1, P2, P6, P7, P9).
//
// Sub-rooms: stats (decisions under noise: how often to measure, whether to keep, what a loop may claim), reason (the
// words for why a change was not kept).
//
// Start at [Extract] (a number from output), then [Decide] (keep or discard), then [Analysis] (what the loop has
// learnt so far). [Decimal] is the number that all of them share.
//
// It is pure: values in, values out. It never reads a file, runs a command, reads a clock or knows about Temporal,
// and it knows no loop: internal/loop/rules asks it.
package metric
