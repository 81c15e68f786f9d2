// Package engine is the embedded Temporal server and its UI on a SQLite file, for people who have no Temporal of
// their own. It starts one engine per directory and shares it between the processes that ask for it. When its owner
// exits, another process takes it over.
//
// Sub-rooms: auth (the token and certificate of an engine that requires them), headroom (lets the program start
// without collecting garbage).
//
// Start at Share, then server.go (what it starts), tuning.go (why a step takes 5 ms and not 50) and database.go (what
// happens to a file of another version).
//
// Only main.go links this package, because it makes a binary 200 MB larger; auth is for all. It never runs workflows
// or activities, never deletes a database, never ends the process, writes nothing to stdout or stderr, and listens on
// the loopback interface only.
package engine
