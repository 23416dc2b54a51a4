package plan

import (
	"fmt"
)

// Section are the settings of one service, not read yet: which keys it has, its
// Spec's Config says.
type Section struct {
	Service string
	Text    []byte // YAML, keys with values; never empty

	read *value // what Parse read, with its lines; nil of what it did not
}

// Located returns the section's text such that its values stand on the lines
// on which they stood in what Parse read, for messages about them.
func (s Section) Located() []byte {
	if s.read == nil {
		return s.Text
	}
	return s.read.located()
}

// section turns a value into a Section, nil if it sets nothing.
func (r *reader) section(path, service string, v value) *Section {
	switch {
	case v.kind == null || v.kind == mapping && len(v.entries) == 0:
		return nil
	case v.kind != mapping:
		r.fail(v.line, "%s: want keys with values, those that service %s has, not %s", path, service, v.kind)
		return nil
	}
	return &Section{Service: service, Text: v.yaml(), read: &v}
}

// tree returns the settings as a value.
func (s Section) tree() (value, error) {
	v, mistakes, _ := document(s.Text)
	if len(mistakes) > 0 {
		return v, fmt.Errorf("settings of service %s, line %d: %s", s.Service, mistakes[0].line, mistakes[0].text)
	}
	if v.kind != mapping {
		return v, fmt.Errorf("settings of service %s: want keys with values, not %s", s.Service, v.kind)
	}
	return v, nil
}
