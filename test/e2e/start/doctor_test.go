package start_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

type diagnosis struct {
	OK   bool
	Rows []struct{ Name, Status, What, Fix string }
}

func doctor(w *world.World, code int, env ...string) map[string]string {
	w.T.Helper()
	c := w.Prepare("doctor", "--json")
	c.Cmd.Env = append(c.Cmd.Env, env...)
	s := c.Begin().Wait()
	require.Equal(w.T, code, s.Code, s.Out+s.Err)
	var d diagnosis
	require.NoError(w.T, json.Unmarshal([]byte(s.Out), &d), s.Out)
	require.Equal(w.T, code == 0, d.OK)
	rows := map[string]string{}
	for _, r := range d.Rows {
		rows[r.Name] = r.Status + " " + r.What
		require.Equal(w.T, r.Status != "ok", r.Fix != "", r.Name)
	}
	return rows
}

func TestDoctorLooksAtTheEngineAndAtAService(t *testing.T) {
	w := world.New(t, world.Raises)
	rows := doctor(w, 0)
	require.Contains(t, rows["engine"], "ok runs in process")
	require.Contains(t, rows["engine's database"], "ok "+w.Home)
	require.Contains(t, rows["search attributes"], "ok all 7")
	require.Contains(t, rows["worker"], "ok pawl@")
	require.Contains(t, rows["host"], "its worker runs")

	var serving struct{ Address string }
	require.NoError(t, json.Unmarshal([]byte(world.ReadFile(w.Home+"/engine/engine.json")), &serving))
	rows = doctor(w, 0, "TEMPORAL_ADDRESS="+serving.Address)
	require.Contains(t, rows["Temporal"], "ok "+serving.Address+", server ")
	require.NotContains(t, rows, "engine")
	require.Equal(t, "ok agrees with this machine's", rows["clock of the server"], "asked for by a poll, on a real server")
	rows = doctor(w, 1, "TEMPORAL_ADDRESS="+serving.Address, "TEMPORAL_NAMESPACE=nowhere")
	require.Contains(t, rows["namespace"], "failed nowhere does not exist")
}

func TestDoctorWithoutAnEngineIsSoundAndStartsNone(t *testing.T) {
	w := world.Alone(t, world.Raises)
	rows := doctor(w, 0)
	require.Contains(t, rows["engine"], "note is not running")
	require.Contains(t, rows["engine's database"], "ok there is none yet")
	require.False(t, w.Exists("home/engine"))

	w.Write("home/engine/temporal.db", "no database")
	require.Contains(t, doctor(w, 0)["engine's database"], "is damaged")
	require.NoError(t, os.Chmod(w.Home, 0o755))
	require.Contains(t, doctor(w, 1, "TEMPORAL_ADDRESS=127.0.0.1:9")["Temporal"], "failed Temporal at 127.0.0.1:9 does not answer")
	s := w.Pawl("doctor")
	require.Equal(t, 1, s.Code)
	require.Contains(t, s.Out, "chmod 700 "+w.Home)
	world.Plain(t, s.Out)
}
