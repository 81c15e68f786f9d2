package worktree

// IndexRules calls the rules about times with an entry of an index and the stat data of its file, all in nanoseconds.
func IndexRules(ctime, mtime, size, nowCtime, nowMtime, nowSize, written int64) (unchanged, deceives bool) {
	was := stamp{Mode: 0o100644, Ino: 1, Size: size, Mtime: mtime, Ctime: ctime}
	now := stamp{Mode: 0o100644, Ino: 1, Size: nowSize, Mtime: nowMtime, Ctime: nowCtime}
	e := indexEntry{mode: 0o100644, stat: was.asIndexStat()}
	return e.unchanged(now, written), e.deceives(now, written)
}
