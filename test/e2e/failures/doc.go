// Package failures tests failures around a loop: processes that die, an engine that is lost, disks that fill up, a
// machine without git.
package failures
