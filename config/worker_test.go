package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/config"
)

func TestAWorkerThatNobodyToldAnything(t *testing.T) {
	w, err := config.LoadWorker(nil)
	require.NoError(t, err)
	require.Equal(t, config.DefaultWorker(), w)
	require.Empty(t, w.Deployment, "no versioning: a versioned worker gets nothing until its version is current")
}

func TestFlagsOverrideVariablesOfAWorker(t *testing.T) {
	for name, value := range map[string]string{
		"PAWL_WORKER_AGENTS": "3", "PAWL_WORKER_ACTIVITIES": "7", "PAWL_WORKER_CACHE": "0", "PAWL_WORKER_STOP_TIMEOUT": "1m", "PAWL_WORKER_MOVE_AFTER": "0",
		"PAWL_WORKER_DEPLOYMENT": "pawl", "PAWL_WORKER_BUILD_ID": "", "PAWL_WORKER_TRIGGERS": "off",
	} {
		t.Setenv(name, value)
	}
	w, err := config.LoadWorker(map[string]string{"agents": "4", "build-id": "b7"})
	require.NoError(t, err)
	require.Equal(t, config.Worker{Agents: 4, Activities: 7, Cache: 0, StopTimeout: time.Minute, MoveAfter: 0, Triggers: "off", Deployment: "pawl", BuildID: "b7"}, w)
}

func TestEverySettingOfAWorkerHasAVariableAFlagAndADefaultThatItTakes(t *testing.T) {
	for _, s := range config.WorkerSettings {
		require.NotEmpty(t, s.Usage)
		if s.Default == "" {
			continue
		}
		w, err := config.LoadWorker(map[string]string{s.Flag: s.Default})
		require.NoError(t, err, s.Flag)
		require.Equal(t, config.DefaultWorker(), w)
	}
}

func TestAllThatIsWrongWithAWorkersSettingsIsSaid(t *testing.T) {
	for name, value := range map[string]string{
		"PAWL_WORKER_AGENTS": "many", "PAWL_WORKER_ACTIVITIES": "0", "PAWL_WORKER_AGNETS": "3", "PAWL_WORKER_DEPLOYMENT": "pawl",
		"PAWL_WORKER_MOVE_AFTER": "0.5s", "PAWL_WORKER_TRIGGERS": "8280",
	} {
		t.Setenv(name, value)
	}
	_, err := config.LoadWorker(map[string]string{"stop-timeout": "20"})
	require.EqualError(t, err, `--stop-timeout is "20"; it may be a duration of at least a second, such as 20s
PAWL_WORKER_ACTIVITIES is "0"; it may be a number from 1 to 100000
PAWL_WORKER_AGENTS is "many"; it may be a number from 0 to 100000
PAWL_WORKER_AGNETS is not a setting of a worker
PAWL_WORKER_MOVE_AFTER is "0.5s"; it may be 0, or a duration of at least a second, such as 2m
PAWL_WORKER_TRIGGERS is "8280"; it may be an address such as 127.0.0.1:8280, or off
deployment and build-id belong together, but only pawl is given`)
}
