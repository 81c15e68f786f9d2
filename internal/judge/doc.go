// Package judge is the room for what judges a change besides its metric.
//
// Sub-rooms: evaluator (the files that judge the work, which an agent may not touch), testreport (which tests failed
// and why, from the output of test commands), canary (breaks source files on purpose, to see whether a guard
// notices).
//
// Start at evaluator.Find for seals, at testreport.Read for test results.
//
// Everything here is pure: it gets contents and outputs as values. It runs no test and reads no file
// (activities/command does), and what a verdict leads to is decided in internal/loop/rules.
package judge
