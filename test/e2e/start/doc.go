// Package start tests what pawl says before a loop runs: about specs, repositories and commands that are not ready, in
// pawl validate and in pawl doctor.
package start
