// Package cli tests what people tell a running loop, by commands and at a terminal, and how it answers.
package cli
