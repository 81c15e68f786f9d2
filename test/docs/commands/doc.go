// Package commands tests the documents: it runs each command that a page shows, and compares the output.
package commands
