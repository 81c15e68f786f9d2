// Package git runs git and parses its output: one process (Command), a conversation with cat-file (Batch), commits as
// objects, changes, patches, names of refs.
//
// Sub-rooms: store (pawl's own bare repository: branches, commits, ledger entries in one transaction), worktree (desk
// and judge: a commit into a folder and back), userrepo (everything that touches the user's repository).
//
// Start at Runner. Its constructor decides whose configuration counts. Hardened is for repositories that pawl made:
// no hook runs, no configuration names a program, and the caller's environment does not affect git. AsUser is for the
// user's repository, with the user's identity and credentials; no hooks run there either. If a path is below a held
// folder (internal/lib/fsutil/dirfd), git gets it by the folder's descriptor.
//
// Only this room runs git. It knows no loop, no phase and no Temporal, and this package never decides where a
// repository is: its sub-rooms do.
package git
