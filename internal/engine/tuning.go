package engine

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// tuning is the server's dynamic configuration. The defaults are made for clusters of many
// shards that share a database; here one shard serves one machine from a local file.
func tuning(o Options) dynamicconfig.StaticClient {
	settings := dynamicconfig.StaticClient{
		// A step passes the transfer queue twice. Its reader may look 20 times a second by default,
		// which alone makes a step 50 ms.
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   2000,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      2000,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): 200,

		// A worker that is killed while it runs workflow code holds the task for this long; the
		// default is 10 s. Workflow code that needs two seconds is stuck.
		dynamicconfig.DefaultWorkflowTaskTimeout.Key(): 2 * time.Second,

		// With the default of four partitions, the polls of the one worker and the tasks land on
		// different ones and meet through the forwarder.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// As the Temporal CLI's dev server has it. Of its settings,
		// system.forceSearchAttributesCacheRefreshOnRead is left out: it reads the cluster's
		// metadata from the database in every step, and with SQL visibility there is nothing new in it,
		// since search attributes are aliases in the namespace's record.
		dynamicconfig.ForceNexusEndpointRefreshOnRead.Key(): true,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():       10000,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():        45000,
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key():    8096,

		// 512 goroutines each by default, for a database that takes one statement at a time.
		// And there is no other cluster to replicate to.
		dynamicconfig.TransferProcessorSchedulerWorkerCount.Key():               64,
		dynamicconfig.TimerProcessorSchedulerWorkerCount.Key():                  64,
		dynamicconfig.VisibilityProcessorSchedulerWorkerCount.Key():             64,
		dynamicconfig.ReplicationProcessorSchedulerWorkerCount.Key():            1,
		dynamicconfig.ReplicationLowPriorityProcessorSchedulerWorkerCount.Key(): 1,

		// Statistics about payloads that are kept outside of the server, which pawl has none of: 3 % of
		// the processor time of a step.
		dynamicconfig.ExternalPayloadsEnabled.Key(): false,

		// Nothing that pawl brings calls home.
		dynamicconfig.EnableServerVersionCheck.Key(): false,

		// `temporal workflow pause` is off by default; a person who knows Temporal expects it.
		dynamicconfig.WorkflowPauseEnabled.Key(): true,

		// These system workers are made for clusters: they look for rows that years of failures
		// leave behind, and close children by the thousand (few children are closed without it). They
		// are never stopped, so that each stop of the frontend waits a second for their polls.
		dynamicconfig.TaskQueueScannerEnabled.Key():       false,
		dynamicconfig.HistoryScannerEnabled.Key():         false,
		dynamicconfig.EnableParentClosePolicyWorker.Key(): false,
	}
	if o.LongHistory > 0 {
		settings[dynamicconfig.HistoryCountSuggestContinueAsNew.Key()] = o.LongHistory
	}
	return settings
}
