// Package config reads what people configure: the spec of a loop from its file, the environment
// and --set, and where Temporal is from Temporal's own settings (TEMPORAL_* and temporal.toml).
// It is the one place where a Temporal client is built.
//
// It never decides what a spec means (that is internal/spec), starts nothing, and never reads
// the repository. Start at Open, then Dial.
package config
