package plan

import (
	"fmt"

	"github.com/weft-sdn/weft/internal/document"
)

// Section are the settings of one service, not read yet: which keys it has, its
// Spec's Config says.
type Section struct {
	Service string
	Text    []byte // YAML, keys with values; never empty

	read *document.Value // what Parse read, with its lines; nil of what it did not
}

// Located returns the section's text such that its values stand on the lines
// on which they stood in what Parse read, for messages about them.
func (s Section) Located() []byte {
	if s.read == nil {
		return s.Text
	}
	return s.read.Located()
}

// section turns a value into a Section, nil if it sets nothing.
func (r *reader) section(path, service string, v document.Value) *Section {
	switch {
	case v.Kind == document.Null || v.Kind == document.Mapping && len(v.Entries) == 0:
		return nil
	case v.Kind != document.Mapping:
		r.fail(v.Line, "%s: want keys with values, those that service %s has, not %s", path, service, v.Kind)
		return nil
	}
	return &Section{Service: service, Text: v.YAML(), read: &v}
}

// Keys returns the section's keys with what they are set to.
func (s Section) Keys() (map[string]document.Value, error) {
	v, err := s.tree()
	keys := map[string]document.Value{}
	for _, e := range v.Entries {
		keys[e.Key] = e.Value
	}
	return keys, err
}

// tree returns the settings as a value.
func (s Section) tree() (document.Value, error) {
	v, mistakes, _ := document.Read(s.Text, limits("section"))
	if len(mistakes) > 0 {
		return v, fmt.Errorf("settings of service %s, line %d: %s", s.Service, mistakes[0].Line, mistakes[0].Text)
	}
	if v.Kind != document.Mapping {
		return v, fmt.Errorf("settings of service %s: want keys with values, not %s", s.Service, v.Kind)
	}
	return v, nil
}
