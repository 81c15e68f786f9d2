// Package security tests what agents do that they should not. Start at escapes_test.go, whose table is
// docs/escapes.md.
package security
