package home

import (
	"fmt"

	"golang.org/x/sys/unix"

	"pawl/internal/held"
)

// tooLittle is the room in bytes at which neither the engine nor git can be relied on to write.
const tooLittle = 1 << 20

// Full says in words of what there is too little where pawl's files are, "" where there is room. A
// file system that does not say has room.
func (h Home) Full() string {
	var st unix.Statfs_t
	if unix.Statfs(held.At(h.Dir), &st) != nil {
		return ""
	}
	switch free := int64(st.Bavail) * int64(st.Bsize); {
	case free < tooLittle:
		return fmt.Sprintf("%d KB are free at %s", free>>10, h.Dir)
	case st.Files > 0 && st.Ffree == 0:
		return "no more files can be made at " + h.Dir
	}
	return ""
}
