// Package testflow makes the environment that tests run workflows in.
package testflow

import (
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

// Environment returns an environment that gives a workflow a minute where the SDK gives it a second or three, because
// the machine may be busy. Its log goes to logger, or to standard error if that is nil.
func Environment(logger log.Logger) *testsuite.TestWorkflowEnvironment {
	suite := testsuite.WorkflowTestSuite{}
	suite.SetLogger(logger)
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
	return env
}
