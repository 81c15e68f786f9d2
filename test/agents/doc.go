// Package agents tests roles, agent programs by their streams, and real agent programs against scripted models.
package agents
