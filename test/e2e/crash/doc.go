// Package crash kills pawl and compares the outcome of its loops with an undisturbed run. Its tests start real processes,
// engine and worker together or apart, run a scripted loop on them, end them with kill -9 before and after every side
// effect, and start them again. It also measures how long recovery takes, and records the histories that
// workflows/loop/testdata/histories holds for the replay test (go test ./test/e2e/crash -run
// 'TestPaths|TestDeliveries|TestContinueAsNew' -update). Without -tags nightly it kills at some of the points and
// takes some of the paths; with -tags e2e it kills at each point once.
//
// The processes are the program in node, built with the build tag crashtest, which activates internal/lib/crashpoint. Because it
// is a program of its own, the test binary does not have to link the server a second time. Start at crash_test.go, then
// machine_test.go, which has what each test works with.
package crash
