package workspace

import (
	"pawl/internal/exec/sandbox"
	"pawl/internal/home/hostrecord"
)

// Surrounded returns what the sandbox of this host's loops knows about Temporal: the hosts that the proxy refuses,
// the files that are hidden, and whether the engine requires a token.
func Surrounded(a *Workspaces, of hostrecord.Record) (closed, secrets []string, asks bool) {
	r := (&Workspace{Machine: a.Machine, Record: of}).request(sandbox.Machine{})
	return r.Egress.Closed, r.Secrets, a.AsksToken()
}

// RoomIn returns a room of these bytes in a folder.
func RoomIn(dir string, most int64) *Room {
	return &Room{dirs: []string{dir}, most: most, home: dir, unnamed: func() int64 { return 0 }}
}
