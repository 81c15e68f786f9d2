// Package docs keeps the pages under docs/ in step with the code: what can be generated is
// generated from the tables that the code runs on. It has no code, only tests; run them with
// -update to write the pages anew.
package docs
