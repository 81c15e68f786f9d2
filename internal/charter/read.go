package charter

import "pawl/internal/spec"

// Parse reads a charter from one JSON object, the form of a workflow's input. It is spec.Parse for a steward.
func Parse(doc []byte) (Charter, error) {
	c := Defaults()
	if err := spec.Fill(doc, &c, func() spec.Problems { return c.check() }); err != nil {
		return Charter{}, err
	}
	return c, nil
}

// FromMap reads a charter from a document that is already parsed. It is spec.FromMap for a steward. If there are
// problems it also returns what it could read, so that the caller can check more.
func FromMap(doc map[string]any) (Charter, error) {
	c := Defaults()
	if problems := spec.FillMap(doc, &c, nil, func() spec.Problems { return c.check() }); len(problems) > 0 {
		return c, problems
	}
	return c, nil
}

// Keys returns all keys of the contract, dotted, in the order of its table.
func Keys() []string { return spec.KeysOf(Charter{}) }
