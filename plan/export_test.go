package plan

import "slices"

// WithoutPlaces returns a copy that does not know where it was written.
func WithoutPlaces(p *Plan) *Plan {
	q := *p
	q.source, q.lines = "", nil
	q.Config = withoutPlaces(q.Config)
	q.Workers = slices.Clone(q.Workers)
	for i := range q.Workers {
		q.Workers[i].Settings = withoutPlaces(q.Workers[i].Settings)
	}
	return &q
}

func withoutPlaces(list []Section) []Section {
	list = slices.Clone(list)
	for i := range list {
		list[i].read = nil
	}
	return list
}
