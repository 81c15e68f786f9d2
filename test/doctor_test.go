package test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

type diagnosis struct {
	OK   bool
	Rows []struct{ Name, Status, What, Fix string }
}

func (w *world) doctor(code int, env ...string) map[string]string {
	w.t.Helper()
	c := w.prepare("doctor", "--json")
	c.cmd.Env = append(c.cmd.Env, env...)
	s := c.begin().wait()
	require.Equal(w.t, code, s.code, s.out+s.err)
	var d diagnosis
	require.NoError(w.t, json.Unmarshal([]byte(s.out), &d), s.out)
	require.Equal(w.t, code == 0, d.OK)
	rows := map[string]string{}
	for _, r := range d.Rows {
		rows[r.Name] = r.Status + " " + r.What
		require.Equal(w.t, r.Status != "ok", r.Fix != "", r.Name)
	}
	return rows
}

func TestDoctorLooksAtTheEngineAndAtAService(t *testing.T) {
	w := newWorld(t, raises)
	rows := w.doctor(0)
	require.Contains(t, rows["engine"], "ok runs in process")
	require.Contains(t, rows["engine's database"], "ok "+w.home)
	require.Contains(t, rows["search attributes"], "ok all 7")
	require.Contains(t, rows["worker"], "ok pawl@")
	require.Contains(t, rows["host"], "its worker runs")

	var serving struct{ Address string }
	require.NoError(t, json.Unmarshal([]byte(readFile(w.home+"/engine/engine.json")), &serving))
	rows = w.doctor(0, "TEMPORAL_ADDRESS="+serving.Address)
	require.Contains(t, rows["Temporal"], "ok "+serving.Address+", server ")
	require.NotContains(t, rows, "engine")
	require.Equal(t, "ok agrees with this machine's", rows["clock of the server"], "asked for by a poll, on a real server")
	rows = w.doctor(1, "TEMPORAL_ADDRESS="+serving.Address, "TEMPORAL_NAMESPACE=nowhere")
	require.Contains(t, rows["namespace"], "failed nowhere does not exist")
}

func TestDoctorWithoutAnEngineIsSoundAndStartsNone(t *testing.T) {
	w := newWorldOfItsOwn(t, raises)
	rows := w.doctor(0)
	require.Contains(t, rows["engine"], "note does not run now")
	require.Contains(t, rows["engine's database"], "ok there is none yet")
	require.False(t, w.exists("home/engine"))

	w.write("home/engine/temporal.db", "no database")
	require.Contains(t, w.doctor(0)["engine's database"], "is damaged")
	require.NoError(t, os.Chmod(w.home, 0o755))
	require.Contains(t, w.doctor(1, "TEMPORAL_ADDRESS=127.0.0.1:9")["Temporal"], "failed Temporal at 127.0.0.1:9 does not answer")
	s := w.pawl("doctor")
	require.Equal(t, 1, s.code)
	require.Contains(t, s.out, "chmod 700 "+w.home)
	plain(t, s.out)
}
