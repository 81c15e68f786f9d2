package kind

import _ "embed" // the draft

//go:embed steward.yaml.tmpl
var stewardDraft string

// Steward is the supervisor (S): it takes tasks, plans them and runs loops for them. It has its own spec, states and
// commands (internal/steward/charter, internal/steward).
var Steward = Kind{Name: "steward", Workflow: "Steward", Draft: stewardDraft}
