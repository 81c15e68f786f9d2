// Package messages tests what people say to a loop that runs, by command and at a terminal, and what answers them.
package messages
