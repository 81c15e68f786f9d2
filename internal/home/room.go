package home

import (
	"fmt"

	"golang.org/x/sys/unix"

	"pawl/internal/held"
)

// tooLittle is the number of free bytes below which the engine and git may fail to write.
const tooLittle = 1 << 20

// Full returns, in words, what the disk of pawl's files lacks, "" if there is room. If the file system gives no
// answer, it returns "".
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
