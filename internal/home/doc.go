// Package home has the paths under $PAWL_HOME: engine, stores, loops, logs. It makes folders (mode 0700) and keeps
// this host's random ID.
//
// Sub-rooms: hostrecord (what this host has of a loop or a steward: workflow, store, trees), repairlog (what was
// damaged here and has been repaired).
//
// Start at Open. To find a loop's folder by its ID, start at hostrecord.
//
// It knows no content of the folders but these two. It uses no git and no Temporal.
package home
