// Package agents tests roles, agent programs by their streams, and Claude Code against a scripted model.
package agents
