// Package arch tests the architecture: pure packages stay pure, and only the root program links the server. It has no
// code, only tests.
package arch
