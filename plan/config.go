package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
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
	v, mistakes, ok := document.Read(text, limits("configuration"))
	r.mistakes = mistakes
	switch {
	case !ok || v.Kind == document.Null:
	case v.Kind != document.Mapping:
		r.fail(v.Line, "want keys with values: services, pipeline, or the name of a service")
	default:
		for _, e := range v.Entries {
			d.lines[e.Key] = e.Line
			switch e.Key {
			case servicesKey:
				d.Services = e.Value.Flow()
			case pipelineKey:
				d.Pipeline = e.Value.Flow()
			default:
				if e.Value.Kind != document.Null && e.Value.Kind != document.Mapping {
					// The text says what it is, for whoever knows the section's keys.
					d.Sections = append(d.Sections, Section{Service: e.Key, Text: []byte(e.Value.Flow() + "\n"), read: &e.Value})
				} else if s := r.section(e.Key, e.Key, e.Value); s != nil {
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
		h.Write([]byte(s.Service + ": " + v.Sorted().Flow() + "\n"))
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
	return b.YAML(), nil
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
			list[i].Text, list[i].read = masked(v).YAML(), nil
		}
	}
	return list
}

func masked(v document.Value) document.Value {
	c := v
	c.Entries = slices.Clone(v.Entries)
	for i := range c.Entries {
		if e := &c.Entries[i]; isSecret(e.Key) && e.Value.Kind != document.Mapping {
			e.Value = document.Value{Kind: document.Word, Text: Secret}
		} else {
			e.Value = masked(e.Value)
		}
	}
	c.Items = slices.Clone(v.Items)
	for i := range c.Items {
		c.Items[i] = masked(c.Items[i])
	}
	return c
}

// Masked returns the keys of sections whose value is Secret: somebody has
// applied what was shown.
func Masked(sections []Section) (keys []string) {
	var walk func(path string, v document.Value)
	walk = func(path string, v document.Value) {
		if v.Kind == document.Word && v.Text == Secret {
			keys = append(keys, path)
		}
		for _, e := range v.Entries {
			walk(path+"."+e.Key, e.Value)
		}
		for _, i := range v.Items {
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
		i := slices.IndexFunc(v.Entries, func(e document.Entry) bool { return e.Key == name })
		if i < 0 {
			return false
		}
		v = v.Entries[i].Value
	}
	return true
}
