// Package schema has the JSON Schema of spec files, for editors and for `pawl validate --schema`.
// The file beside this one is generated from the code that reads specs (internal/spec,
// internal/steward/charter) and the words of docs/reference/spec.md, by `go test ./test/docs -update`.
package schema

import _ "embed" // the schema

// JSON is the schema, draft 7.
//
//go:embed pawl.schema.json
var JSON []byte
