// Command corpus runs a hundred scripted loops and stewards with a built pawl, and keeps what came of each of them, so that
// two builds can be compared:
//
//	go run ./test/corpus -pawl OLD -keep before
//	go run ./test/corpus -pawl NEW -keep after
//	diff -r before after
//
// It uses nothing of pawl but the program, so it can compare builds whose code has nothing in common. What differs between
// two runs of one build (times, commits, ports) is replaced by a placeholder; trees of commits are not.
//
// Start reading in case.go: a case is a spec, an agent that is a shell script, and what a person does. The cases are tables in
// loops.go, deliveries.go and stewards.go. course.go takes one case to its end, record.go keeps what came of it.
package main
