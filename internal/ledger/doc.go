// Package ledger is the record of a loop or a steward. It is one git ref, a chain of commits. The parents of an
// entry's commit are the entry before and the code head. Its tree has the state, the entry's events and the other
// files of its kind.
//
// Start at Book.Entry, then read Ledger (for loops) and Steward (for stewards). Verify checks that the state in each
// entry is the fold of all events up to it (A9).
//
// It converts events to files and back, and folds them. It makes no commit (internal/git/store does) and decides
// nothing: activities/record says when an entry is appended.
package ledger
