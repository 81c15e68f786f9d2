package charter

import "pawl/internal/spec"

// Parse reads a charter from one JSON object, as a workflow gets it: spec.Parse for a steward.
func Parse(doc []byte) (Charter, error) {
	c := Defaults()
	if err := spec.Fill(doc, &c, func() spec.Problems { return c.check() }); err != nil {
		return Charter{}, err
	}
	return c, nil
}

// FromMap reads a charter from a document that was parsed already: spec.FromMap for a steward. With
// problems it returns what could be read, for whoever has more to check.
func FromMap(doc map[string]any) (Charter, error) {
	c := Defaults()
	if problems := spec.FillMap(doc, &c, nil, func() spec.Problems { return c.check() }); len(problems) > 0 {
		return c, problems
	}
	return c, nil
}

// Keys are all keys of the contract, dotted, in the order of its table.
func Keys() []string { return spec.KeysOf(Charter{}) }
