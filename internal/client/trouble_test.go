package client_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/client"
	"pawl/internal/home"
	"pawl/internal/workspace"
)

// A loop that is being opened has a record before it has a store. Once it has recorded something, a store that is gone is
// damage, which is told by its path.
func TestALoopThatIsBeingOpenedIsInNoTrouble(t *testing.T) {
	t.Setenv("PAWL_HOME", t.TempDir())
	h, err := home.Open()
	require.NoError(t, err)
	r := workspace.Record{Loop: "hill", Ref: "hill", Ledger: "refs/pawl-ledger/hill", Store: filepath.Join(h.Dir, "stores", "x.git"), FirstRun: "first"}
	require.NoError(t, workspace.Write(h, r))
	c := &client.Client{Home: h}
	troubles, err := c.Troubles(t.Context())
	require.NoError(t, err)
	require.Empty(t, troubles)

	workspace.Note(h, "hill", map[string]string{r.Ledger: "1111111111111111111111111111111111111111"})
	troubles, err = c.Troubles(t.Context())
	require.NoError(t, err)
	require.Len(t, troubles, 1)
	require.Contains(t, troubles[0].What, "its ledger can't be read")
	require.Contains(t, troubles[0].What, r.Store)
}
