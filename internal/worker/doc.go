// Package worker is this machine's worker: one process at a time, under a lock, with an identity that outlives the
// process. The programs worker/ and pawl itself run it.
//
// Start at RunWorker, which registers workflows and activities, then recover.go. Before it polls, it recovers what
// its predecessor left: it makes damaged records again (mend.go), hands activities back (recover.go), and starts
// loops again that the engine has lost (carry.go).
//
// It never decides anything about a loop, and does not link the Temporal server.
package worker
