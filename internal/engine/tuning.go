package engine

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// tuning returns the server's dynamic configuration. The defaults are for clusters of many shards that share a
// database. Here one shard serves one machine from a local file.
func tuning(o Options) dynamicconfig.StaticClient {
	settings := dynamicconfig.StaticClient{
		// A step passes through the transfer queue twice. By default its reader may look 20 times a second, which
		// alone makes a step take 50 ms.
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   2000,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      2000,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): 200,

		// A worker that is killed while it runs workflow code blocks the task for this long; the default is 10 s.
		// Workflow code that needs two seconds is stuck.
		dynamicconfig.DefaultWorkflowTaskTimeout.Key(): 2 * time.Second,

		// With the default of four partitions, the polls of the only worker and the tasks reach different partitions
		// and meet through the forwarder.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// These are settings of the Temporal CLI's dev server. Its setting
		// system.forceSearchAttributesCacheRefreshOnRead is left out: it reads the cluster's metadata from the
		// database in every step, and SQL visibility never changes them, because search attributes are aliases in the
		// namespace's record.
		dynamicconfig.ForceNexusEndpointRefreshOnRead.Key(): true,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():       10000,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():        45000,
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key():    8096,

		// The default is 512 goroutines each, but the database executes one statement at a time. And there is no
		// other cluster to replicate to.
		dynamicconfig.TransferProcessorSchedulerWorkerCount.Key():               64,
		dynamicconfig.TimerProcessorSchedulerWorkerCount.Key():                  64,
		dynamicconfig.VisibilityProcessorSchedulerWorkerCount.Key():             64,
		dynamicconfig.ReplicationProcessorSchedulerWorkerCount.Key():            1,
		dynamicconfig.ReplicationLowPriorityProcessorSchedulerWorkerCount.Key(): 1,

		// Statistics about payloads that are kept outside the server. pawl has none, and they cost 3 % of the
		// processor time of a step.
		dynamicconfig.ExternalPayloadsEnabled.Key(): false,

		// Nothing that pawl contains calls home.
		dynamicconfig.EnableServerVersionCheck.Key(): false,

		// `temporal workflow pause` is off by default; people who know Temporal expect it.
		dynamicconfig.WorkflowPauseEnabled.Key(): true,

		// These system workers are for clusters: they look for rows that years of failures leave behind, and close
		// children by the thousand. The server closes a few children without such a worker. The workers are never
		// stopped, so each stop of the frontend waits a second for their polls.
		dynamicconfig.TaskQueueScannerEnabled.Key():       false,
		dynamicconfig.HistoryScannerEnabled.Key():         false,
		dynamicconfig.EnableParentClosePolicyWorker.Key(): false,
	}
	if o.LongHistory > 0 {
		settings[dynamicconfig.HistoryCountSuggestContinueAsNew.Key()] = o.LongHistory
	}
	return settings
}
