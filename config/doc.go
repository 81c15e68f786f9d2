// Package config reads what people configure: the spec of a loop from its file, the environment and --set, and the
// address of Temporal from Temporal's own settings (TEMPORAL_* and temporal.toml). Temporal clients are built only
// here.
//
// It never decides what a spec means (internal/spec does), starts nothing, and never reads the repository. Start at
// Open, then Dial.
package config
