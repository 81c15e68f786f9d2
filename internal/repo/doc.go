// Package repo is everything of pawl that runs git: the store (a bare repository of pawl's own),
// the two trees of a loop (the desk, where the agent works, and the judge, where its work is
// judged) and the ledger (the loop's memory, one git ref).
//
// What it never does: work in the user's repository (it is fetched from and pushed to, nothing
// else); believe or execute anything that lies in a desk or a judge (their .git, hooks, config,
// attributes' drivers, symlinks); decide anything about a change (that is what the policies are
// for). It imports no other package of pawl.
//
// Start reading at Store (store.go), then Tree (tree.go) for the way from a commit to a
// directory and back, then Transact (transact.go) for how a commit and a ledger entry become
// durable together.
package repo
