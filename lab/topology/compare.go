package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Difference is what a lab file has other than a lab.
type Difference struct {
	Lab     string `json:"lab"`
	Added   []Item `json:"added"`
	Deleted []Item `json:"deleted"`
	Changed []Edit `json:"changed"`
}

// Item is a part of a lab.
type Item struct {
	Kind string `json:"kind"` // "lab", "switch", "host" or "link"
	Name string `json:"name"` // of a link such as s1:2-s2:3
}

func (i Item) String() string { return i.Kind + " " + i.Name }

// Edit is a property of a part of a lab that is to become another.
type Edit struct {
	Item
	What string `json:"what"` // as in a lab file; "program NAME" for one of those of run
	From string `json:"from"` // Absent where it is not said
	To   string `json:"to"`
	// Anew, if not empty, is why the part is deleted and made anew for that.
	Anew string `json:"anew,omitempty"`
}

// Absent is what Edit says of what is not there: "none".
const Absent = "none"

func (e Edit) String() string {
	text := fmt.Sprintf("%s: %s from %s to %s", e.Item, e.What, e.From, e.To)
	if e.Anew != "" {
		text += ": made anew, for " + e.Anew
	}
	return text
}

// None reports whether nothing differs.
func (d *Difference) None() bool { return len(d.Added)+len(d.Deleted)+len(d.Changed) == 0 }

const (
	ItemLab    = "lab"
	ItemSwitch = "switch"
	ItemHost   = "host"
	ItemLink   = "link"
)

// Compare returns what leads from a completed topology to another. Switches and
// hosts are the same by their names, links by their ends with their ports.
func Compare(from, to *Topology) *Difference {
	d := &Difference{Lab: from.Name, Added: []Item{}, Deleted: []Item{}, Changed: []Edit{}}
	lab := Item{ItemLab, from.Name}
	d.compare(lab, properties(wholeLab(from)), properties(wholeLab(to)))
	compareAll(d, ItemSwitch, from.Switches, to.Switches, switchName)
	compareAll(d, ItemHost, from.Hosts, to.Hosts, hostName)
	d.sayAnew(from, to)
	compareAll(d, ItemLink, OrderEnds(from.Links), OrderEnds(to.Links), func(l *Link) string { return l.String() })
	return d
}

// wholeLab is a topology without its switches, hosts and links.
func wholeLab(t *Topology) any {
	return struct {
		Controllers []string `json:"controller"`
		Routing     Routing  `json:"routing,omitzero"`
		Control     Control  `json:"control,omitzero"`
		OVS         string   `json:"ovs,omitempty"`
		Names       []Name   `json:"names,omitempty"`
	}{t.Controllers, t.Routing, t.Control, t.OVS, t.Names}
}

// sayAnew says of switches which cannot become what they are to be.
func (d *Difference) sayAnew(from, to *Topology) {
	for i := range d.Changed {
		if e := &d.Changed[i]; e.Kind == ItemSwitch && e.What == "kind" {
			e.Anew = "a switch of another kind is another device"
		}
	}
	if from.OVS == to.OVS || !from.hasNodes() || !to.hasNodes() {
		return
	}
	for _, sw := range to.Switches {
		if old, ok := from.SwitchByName(sw.Name); ok && sw.Kind == KindHybrid && old.Kind == KindHybrid {
			d.Changed = append(d.Changed, Edit{Item{ItemSwitch, sw.Name}, "ovs", from.OVS, to.OVS, "it gets another Open vSwitch"})
		}
	}
}

// Anew is the switches that are made anew.
func (d *Difference) Anew() map[string]bool {
	names := map[string]bool{}
	for _, e := range d.Changed {
		if e.Anew != "" {
			names[e.Name] = true
		}
	}
	return names
}

// OrderEnds returns links whose ends are in order, so that one that is written
// the other way round is the same.
func OrderEnds(links []Link) []Link {
	links = slices.Clone(links)
	for i, l := range links {
		if l.A > l.B || l.A == l.B && l.APort > l.BPort {
			links[i].A, links[i].B, links[i].APort, links[i].BPort = l.B, l.A, l.BPort, l.APort
		}
	}
	return links
}

// byName returns the parts by their names.
func byName[T any](parts []T, name func(*T) string) map[string]*T {
	all := make(map[string]*T, len(parts))
	for i := range parts {
		all[name(&parts[i])] = &parts[i]
	}
	return all
}

func switchName(s *Switch) string { return s.Name }

func hostName(h *Host) string { return h.Name }

func compareAll[T any](d *Difference, kind string, from, to []T, name func(*T) string) {
	was := byName(from, name)
	for i := range to {
		item := Item{kind, name(&to[i])}
		if old := was[item.Name]; old != nil {
			d.compare(item, properties(old), properties(&to[i]))
			delete(was, item.Name)
		} else {
			d.Added = append(d.Added, item)
		}
	}
	for i := range from {
		if item := (Item{kind, name(&from[i])}); was[item.Name] != nil {
			d.Deleted = append(d.Deleted, item)
		}
	}
}

// compare adds what differs in the properties of a part.
func (d *Difference) compare(item Item, from, to []property) {
	what := func(p *property) string { return p.what }
	was, is := byName(from, what), byName(to, what)
	for _, p := range to {
		before := Absent
		if old := was[p.what]; old != nil {
			before = old.value
		}
		if before != p.value {
			d.Changed = append(d.Changed, Edit{Item: item, What: p.what, From: before, To: p.value})
		}
	}
	for _, p := range from {
		if is[p.what] == nil && p.value != Absent {
			d.Changed = append(d.Changed, Edit{Item: item, What: p.what, From: p.value, To: Absent})
		}
	}
}

type property struct{ what, value string }

// properties is what a part of a lab is encoded as, by key.
func properties(part any) (all []property) {
	b, err := json.Marshal(part)
	if err != nil {
		panic(fmt.Sprintf("lab: encode %T: %v", part, err)) // it has been read from such a text
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	_, _ = dec.Token()
	for dec.More() {
		key, _ := dec.Token()
		var value json.RawMessage
		_ = dec.Decode(&value)
		if key == "run" {
			all = append(all, programProperties(value)...)
			continue
		}
		text := asWritten(value)
		if key == "ipv4" && text == NoIPv4().String() || key == "ipv6" && text == NoIPv6().String() {
			text = Absent
		}
		all = append(all, property{fmt.Sprint(key), text})
	}
	return all
}

func programProperties(run json.RawMessage) (all []property) {
	var programs []Program
	_ = json.Unmarshal(run, &programs)
	for _, p := range programs {
		b, _ := json.Marshal(p)
		value := p.Command
		if len(p.Env) > 0 || p.Restart != RestartAlways {
			value = string(b)
		}
		all = append(all, property{"program " + p.Name, value})
	}
	return all
}

// asWritten is a value as people write it.
func asWritten(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var list []string
	if json.Unmarshal(value, &list) == nil {
		return strings.Join(list, ", ")
	}
	return string(value)
}
