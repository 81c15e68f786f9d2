// Package fsutil is the room for files and folders that pawl depends on.
//
// Sub-rooms: durable (one atomic writer, one lock), dirfd (folders that stay open, whatever is renamed above them),
// remove (removes what agents made, even if it is locked).
//
// Nothing here knows what a file is for.
package fsutil
