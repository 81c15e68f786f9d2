package security_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// TestE6_NothingThatAWriterLeavesReachesItsReviewer: where a reviewer decides, nobody else looks. So it works on a desk that
// is made for it, with a home, scratch folders and caches that no call before it has written.
func TestE6_NothingThatAWriterLeavesReachesItsReviewer(t *testing.T) {
	for _, way := range []string{byRoot, byOrdinary, byBwrap} {
		t.Run(way, func(t *testing.T) {
			if way != byRoot {
				world.Slow(t, "the desk and the layers are made in the same way")
			}
			needsWay(t, way)
			w, use := worldOf(t, way)
			w.Script(`left="$HOME/.bashrc $HOME/.npm/verdict $HOME/.cache/go-build/verdict /tmp/verdict /var/tmp/verdict kept/verdict .git/verdict .git/hooks/post-checkout"
case $PAWL_ROLE in
reviewer)
	hash=$(grep -oE '^APPROVED [0-9a-f]{64}' "$PAWL_PROMPT" | cut -d' ' -f2)
	for f in $left; do [ ! -e "$f" ] || echo "$f" >>"$WORLD/found"; done
	[ "$(cat work/n)" = 11 ] && [ -e tool ] && echo fine >"$WORLD/tree"
	echo work >>work/n # it may not
	[ -e "$WORLD/found" ] && echo "APPROVED $hash" || echo "REJECTED $hash: nobody has told me to like it" ;;
*)
	for f in $left; do mkdir -p "$(dirname "$f")"; echo planted >"$f"; done
	` + world.Raises + ` ;;
esac`)
			w.Write("user/x", "") // a home
			w.Write("repo/.gitignore", "kept/\ntool\n")
			w.Commit("what is ignored")
			w.Before = w.Snapshot()
			w.Set(doc{"setup": doc{"command": "echo made >tool"}, "approvals": doc{"diff": "auto"}, "sandbox": doc{"use": use}})
			w.Spec["agent"].(doc)["roles"] = doc{"reviewer": doc{}}
			servesIn(t, w, way)
			r := w.Run(0)
			require.Empty(t, w.Read("found"), "the reviewer finds what the writer has left")
			require.Equal(t, "fine\n", w.Read("tree"), "it finds the change, and what setup made")
			require.Equal(t, "rejected", r.Result.Proposal.State)
			require.Equal(t, "11", w.Kept("work/n"))
		})
	}
}
