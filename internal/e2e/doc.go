// Package e2e kills pawl and looks whether anybody could tell. Its tests start real processes,
// engine and worker together or apart, run a scripted loop on them, end them with kill -9
// before and after every side effect, start them again and compare with a run that nobody
// disturbed. It also measures how long recovery takes and records the histories that
// workflows/testdata/histories holds for the replay test (go test ./internal/e2e -run Record
// -update).
//
// The processes are the program in node, built once per test run with the build tag crashtest:
// the tag is what arms internal/crash, and a program of its own means that the test binary need
// not link the server a second time. Start at crash_test.go, then world_test.go, which is what a
// test has to itself.
package e2e
