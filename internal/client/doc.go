// Package client is the layer between Temporal and the code that deals with loops. It starts loops, reads them, sends
// messages to them and works on their proposals, and does the same for stewards. It returns plain data and typed
// faults.
//
// Sub-room: launch (the data between pawl and Temporal about a workflow: ID, type, memo, search attributes, answers
// to queries; pure).
//
// Start at Client, then Snapshot and Send.
//
// It can read loops while no worker runs: what the loop itself can't answer comes from Temporal's list and from the
// ledger on this host. It prints nothing, asks nobody, does not know the command line (activities use it too), and
// makes none of the decisions of internal/loop/rules.
package client
