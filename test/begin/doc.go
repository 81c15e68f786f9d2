// Package begin tests what is said before a loop runs: specs, repositories and commands that are not ready,
// pawl validate and pawl doctor.
package begin
