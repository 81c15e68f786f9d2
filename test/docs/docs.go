// Package docs keeps the pages under docs/ in step with the code. It has no code, only tests: they compare the pages with
// the tables that the code runs on. Run them with -update to write the generated pages and tables again.
package docs
