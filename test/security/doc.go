// Package security tests what agents do that they should not. Start at escapes_test.go, whose table is
// docs/reference/escapes.md.
package security
