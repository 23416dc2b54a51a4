package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Document is a configuration by itself: what weft up --config reads, weft
// config apply brings into force, and a plan has below config.
type Document struct {
	Sections []Section // of the services that it sets something of; sorted by service
	// Services and Pipeline are texts of the keys that a controller of one
	// process has besides; empty if they are left out.
	Services, Pipeline string

	lines map[string]int
}

// The keys of a document that are no sections.
const (
	servicesKey = "services"
	pipelineKey = "pipeline"
)

// ParseConfig reads a configuration. What its sections may have is for package
// deploy to say; all other mistakes are reported, each on a line of its own as
// SOURCE:LINE: what is wrong. Anchors and aliases are refused, so no text is
// larger than it looks.
func ParseConfig(source string, text []byte) (*Document, error) {
	d := &Document{lines: map[string]int{}}
	r := &reader{plan: &Plan{source: source, lines: d.lines, unread: map[string]bool{}}}
	v, mistakes, ok := documentOf("configuration", text)
	r.mistakes = mistakes
	switch {
	case !ok || v.kind == null:
	case v.kind != mapping:
		r.fail(v.line, "want keys with values: services, pipeline, or the name of a service")
	default:
		for _, e := range v.entries {
			d.lines[e.key] = e.line
			switch e.key {
			case servicesKey:
				d.Services = e.value.flow()
			case pipelineKey:
				d.Pipeline = e.value.flow()
			default:
				if e.value.kind != null && e.value.kind != mapping {
					// The text says what it is, for whoever knows the section's keys.
					d.Sections = append(d.Sections, Section{Service: e.key, Text: []byte(e.value.flow() + "\n"), read: &e.value})
				} else if s := r.section(e.key, e.key, e.value); s != nil {
					d.Sections = append(d.Sections, *s)
				}
			}
		}
		slices.SortFunc(d.Sections, func(a, b Section) int { return strings.Compare(a.Service, b.Service) })
	}
	if err := r.plan.report(r.mistakes); err != nil {
		return nil, err
	}
	return d, nil
}

// Line returns the line of a key of the document, 0 if it has none.
func (d *Document) Line(key string) int { return d.lines[key] }

// WithConfig returns a copy of the plan with other settings for services
// wherever they run.
func (p *Plan) WithConfig(sections []Section) *Plan {
	c := *p
	c.Config, c.lines = sections, map[string]int{}
	for key, line := range p.lines {
		if key != "config" && !strings.HasPrefix(key, "config.") { // those were elsewhere
			c.lines[key] = line
		}
	}
	return &c
}

// Hash returns sixteen hexadecimal digits that are the same for sections that
// say the same, whatever their order, comments and way of writing.
func Hash(sections []Section) string {
	h := sha256.New()
	sorted := slices.SortedFunc(slices.Values(sections), func(a, b Section) int { return strings.Compare(a.Service, b.Service) })
	for _, s := range sorted {
		v, err := s.tree()
		if err != nil {
			h.Write(s.Text) // of no use to anybody
			continue
		}
		h.Write([]byte(s.Service + ": " + v.sorted().flow() + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// ConfigYAML returns sections as a document that ParseConfig reads, keys in the
// order in which they were written.
func ConfigYAML(sections []Section) ([]byte, error) {
	b := newBuilder()
	for _, s := range sections {
		v, err := s.tree()
		if err != nil {
			return nil, err
		}
		b.add(s.Service, v)
	}
	return b.yaml(), nil
}

// sorted returns a value with the keys of all its mappings in order.
func (v value) sorted() value {
	c := v
	c.items, c.entries = nil, nil
	for _, i := range v.items {
		c.items = append(c.items, i.sorted())
	}
	for _, e := range v.entries {
		e.value = e.value.sorted()
		c.entries = append(c.entries, e)
	}
	slices.SortFunc(c.entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	return c
}

// Secret is what stands for a secret where configurations are shown.
const Secret = "<secret>"

// isSecret reports whether the values of a key are not shown.
func isSecret(key string) bool {
	for _, word := range []string{"token", "key", "secret", "password", "tokens", "secrets"} {
		if key == word || strings.HasSuffix(key, "_"+word) {
			return true
		}
	}
	return false
}

// IsSecret reports whether the values of a key, such as gateway.token, are not
// shown to people.
func IsSecret(key string) bool {
	return slices.ContainsFunc(strings.Split(key, "."), isSecret)
}

// Mask returns sections with Secret in place of secrets.
func Mask(sections []Section) []Section {
	list := make([]Section, len(sections))
	for i, s := range sections {
		list[i] = s
		if v, err := s.tree(); err == nil {
			list[i].Text, list[i].read = v.masked().yaml(), nil
		}
	}
	return list
}

func (v value) masked() value {
	c := v
	c.entries = slices.Clone(v.entries)
	for i := range c.entries {
		if e := &c.entries[i]; isSecret(e.key) && e.value.kind != mapping {
			e.value = value{kind: word, text: Secret}
		} else {
			e.value = e.value.masked()
		}
	}
	c.items = slices.Clone(v.items)
	for i := range c.items {
		c.items[i] = c.items[i].masked()
	}
	return c
}

// Masked returns the keys of sections whose value is Secret: somebody has
// applied what was shown.
func Masked(sections []Section) (keys []string) {
	var walk func(path string, v value)
	walk = func(path string, v value) {
		if v.kind == word && v.text == Secret {
			keys = append(keys, path)
		}
		for _, e := range v.entries {
			walk(path+"."+e.key, e.value)
		}
		for _, i := range v.items {
			walk(path, i)
		}
	}
	for _, s := range sections {
		if v, err := s.tree(); err == nil {
			walk(s.Service, v)
		}
	}
	return keys
}

// Sets reports whether a section sets a key, such as probe.interval, or any
// below it.
func (s Section) Sets(key string) bool {
	v, err := s.tree()
	if err != nil {
		return false
	}
	for _, name := range strings.Split(key, ".") {
		i := slices.IndexFunc(v.entries, func(e entry) bool { return e.key == name })
		if i < 0 {
			return false
		}
		v = v.entries[i].value
	}
	return true
}
