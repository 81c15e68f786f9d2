// Package arch holds the house to its plan: what is pure stays pure, and the server is linked
// by the root program alone. It has no code, only tests.
package arch
