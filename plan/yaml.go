package plan

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/weft-sdn/weft/internal/document"
)

// YAML returns the plan as Parse reads it: keys in a fixed order, defaults of
// workers left out. Two plans that say the same have the same text.
func (p *Plan) YAML() ([]byte, error) {
	v, err := p.tree()
	if err != nil {
		return nil, err
	}
	return v.YAML(), nil
}

// MarshalJSON returns what YAML does, as JSON.
func (p *Plan) MarshalJSON() ([]byte, error) {
	v, err := p.tree()
	if err != nil {
		return nil, err
	}
	return v.JSON(), nil
}

// Equal reports whether two plans say the same, wherever they were written.
func (p *Plan) Equal(other *Plan) bool {
	a, err := p.YAML()
	b, err2 := other.YAML()
	return err == nil && err2 == nil && string(a) == string(b)
}

// builder puts a mapping together; what has no value is left out.
type builder struct{ document.Value }

func newBuilder() *builder { return &builder{document.Value{Kind: document.Mapping}} }

func (b *builder) add(key string, v document.Value) {
	if (v.Kind == document.Mapping && len(v.Entries) == 0) || (v.Kind == document.List && len(v.Items) == 0) {
		return
	}
	b.Entries = append(b.Entries, document.Entry{Key: key, Value: v})
}

func (b *builder) text(key, s string) {
	if s != "" {
		b.add(key, document.Value{Kind: document.Word, Text: s})
	}
}

// number adds a number unless it is the default.
func (b *builder) number(key string, n, standard int) {
	if n != standard {
		b.add(key, document.Value{Kind: document.Plain, Text: strconv.Itoa(n)})
	}
}

func texts(items []string) document.Value {
	v := document.Value{Kind: document.List}
	for _, s := range items {
		v.Items = append(v.Items, document.Value{Kind: document.Word, Text: s})
	}
	return v
}

// tree returns the plan as a value.
func (p *Plan) tree() (document.Value, error) {
	var errs []error
	sections := func(list []Section) document.Value {
		b := newBuilder()
		for _, s := range list {
			v, err := s.tree()
			errs = append(errs, err)
			b.add(s.Service, v)
		}
		return b.Value
	}
	root := newBuilder()
	root.text("name", p.Name)
	root.text("transport", p.Transport)
	root.text("events", p.Events)
	root.text("balance", p.Balance)
	if p.Partial {
		root.add("partial", document.Value{Kind: document.Plain, Text: "true"})
	}
	root.add("pipeline", texts(p.Pipeline))

	bus := newBuilder()
	bus.text("url", p.Bus.URL)
	bus.text("credentials", p.Bus.Credentials)
	bus.number("replicas", p.Bus.Replicas, 1)
	root.add("bus", bus.Value)

	partitions := newBuilder()
	for _, x := range p.Partitions {
		b := newBuilder()
		b.add("switches", texts(x.List()))
		partitions.add(x.Name, b.Value)
	}
	root.add("partitions", partitions.Value)

	workers := newBuilder()
	for i := range p.Workers {
		w := &p.Workers[i]
		b := newBuilder()
		b.add("services", texts(w.Services))
		b.number("replicas", w.Replicas, 1)
		b.add("autoscale", w.Autoscale.tree())
		b.number("standby", w.Standby, 0)
		if w.Balance != p.Balance {
			b.text("balance", w.Balance)
		}
		b.text("partition", w.Partition)
		b.text("class", w.Class)
		b.number("nice", w.Nice, 0)
		b.text("cpus", w.CPUs)
		if w.CPUQuota > 0 {
			b.add("cpu_quota", document.Value{Kind: document.Plain, Text: quota(w.CPUQuota)})
		}
		if w.Memory > 0 {
			b.text("memory", w.Memory.String())
		}
		if w.Listen != defaultListen {
			b.text("listen", w.Listen)
		}
		env := newBuilder()
		for _, name := range slices.Sorted(maps.Keys(w.Env)) {
			env.add(name, document.Value{Kind: document.Word, Text: w.Env[name]})
		}
		b.add("env", env.Value)
		b.text("machine", w.Machine)
		b.add("settings", sections(w.Settings))
		workers.add(w.Name, b.Value)
	}
	root.add("workers", workers.Value)

	apps := newBuilder()
	for _, a := range p.Apps {
		b := newBuilder()
		if a.Kind != AppStage {
			b.text("kind", a.Kind)
		}
		b.text("absent", a.Absent)
		b.text("timeout", a.Timeout.String())
		b.add("may", words(a.May))
		b.add("switches", words(a.Switches))
		tables := document.Value{Kind: document.List}
		for _, n := range a.Tables {
			tables.Items = append(tables.Items, document.Value{Kind: document.Plain, Text: strconv.Itoa(n)})
		}
		b.add("tables", tables)
		b.number("entries", a.Entries, defaultAppEntries)
		b.number("packets_per_s", a.PacketsPerS, defaultAppPackets)
		apps.add(a.Name, b.Value)
	}
	root.add("apps", apps.Value)

	links := document.Value{Kind: document.List}
	for _, l := range p.Links {
		b := newBuilder()
		b.text("from", l.From)
		b.text("to", l.To)
		b.text("transport", l.Transport)
		links.Items = append(links.Items, b.Value)
	}
	root.add("links", links)
	root.add("config", sections(p.Config))
	return root.Value, errors.Join(errs...)
}

// words returns a list of words.
func words(list []string) document.Value {
	v := document.Value{Kind: document.List}
	for _, s := range list {
		v.Items = append(v.Items, document.Value{Kind: document.Word, Text: s})
	}
	return v
}
