// Package tier says how much of the tests is built into a test binary:
//
//	go test ./...                 the README's command: every kind of case, a few of each
//	make e2e                      (-tags e2e) a kill at each crash point, and every escape
//	make nightly                  (-tags nightly) every case
//
// A test that needs a tool skips without it, and fails if PAWL_TEST_ALL=1. That is no tier: CI sets it in each.
package tier
