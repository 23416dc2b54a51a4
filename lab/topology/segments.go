package topology

import (
	"fmt"
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// InternalPorts is what is added to a port's number for that of its internal port.
const InternalPorts = flow.InternalPorts

// Segment is bridges that are joined, with the links that lead to others.
type Segment struct {
	bridges []string
	Has     map[string]bool // its bridges
	inner   int             // links between its bridges
	Links   []int           // to others, as indices in Topology.Links
}

// Segments returns the segments of bridges.
func (t *Topology) Segments() []Segment {
	bridge := map[string]bool{}
	near := map[string][]string{}
	for _, s := range t.Switches {
		bridge[s.Name] = s.Kind == KindBridge
	}
	for _, l := range t.Links {
		if bridge[l.A] && bridge[l.B] {
			near[l.A], near[l.B] = append(near[l.A], l.B), append(near[l.B], l.A)
		}
	}
	of := map[string]int{} // bridge -> its segment, from 1
	var all []Segment
	for _, s := range t.Switches {
		if !bridge[s.Name] || of[s.Name] > 0 {
			continue
		}
		part := []string{s.Name}
		of[s.Name] = len(all) + 1
		for i := 0; i < len(part); i++ {
			for _, n := range near[part[i]] {
				if of[n] == 0 {
					of[n] = len(all) + 1
					part = append(part, n)
				}
			}
		}
		has := make(map[string]bool, len(part))
		for _, b := range part {
			has[b] = true
		}
		all = append(all, Segment{bridges: part, Has: has})
	}
	for i, l := range t.Links {
		a, b := of[l.A], of[l.B]
		switch {
		case a > 0 && b > 0:
			all[a-1].inner++
		case a > 0 || b > 0:
			all[max(a, b)-1].Links = append(all[max(a, b)-1].Links, i)
		}
	}
	return all
}

// Other returns the end of a link that is not one of the segment's bridges.
func (g *Segment) Other(l *Link) string {
	if g.Has[l.A] {
		return l.B
	}
	return l.A
}

// Network is one that hybrid nodes and routers have between them, as a lab numbers it.
type Network struct {
	Of         string // what it is, for messages
	IPv4, IPv6 netip.Prefix
}

// networks returns the networks of a topology that is laid out for the first time.
func (t *Topology) networks() (all []Network) {
	routes := map[string]bool{}
	for i := range t.Switches {
		routes[t.Switches[i].Name] = t.Switches[i].Routes()
	}
	add := func(of string, v4, v6 netip.Prefix) {
		if t.Routing.IPv4Only {
			v6 = netip.Prefix{}
		}
		all = append(all, Network{of, v4, v6})
	}
	number := 0
	for _, l := range t.Links {
		if routes[l.A] && routes[l.B] {
			v4, v6 := LinkPrefixes(number)
			add(fmt.Sprintf("the link %s:%d to %s:%d", l.A, l.APort, l.B, l.BPort), v4, v6)
			number++
		}
	}
	for number, g := range t.Segments() {
		for _, i := range g.Links {
			if routes[g.Other(&t.Links[i])] {
				v4, v6 := SegmentPrefixes(number)
				add(BridgesNetwork, v4, v6)
				break
			}
		}
	}
	return all
}

// BridgesNetwork is Network.Of of a segment of bridges.
const BridgesNetwork = "a network of bridges"
