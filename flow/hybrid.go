package flow

import (
	"fmt"
	"strconv"
	"strings"
)

// A Hybrid describes the ports of a switch that is part of a hybrid node: the
// node routes IP by itself, beside Weft (OSHI §III). Ports that are in none of
// the lists may become links.
//
// A node describes itself by the datapath description of its switch (OpenFlow
// 1.3.5 §7.3.5.1, dp_desc; in Open vSwitch other_config:dp-desc of the bridge):
//
//	hybrid name=pe1 access=3,4 internal=101-199 tunnel=200-299
type Hybrid struct {
	Name     string   // what whoever runs it calls it; nothing depends on it
	Access   PortList // customers are attached there, or nobody
	Internal PortList // lead to the node's own routing
	Tunnel   PortList // tunnels over the node's own routing: VXLAN, GRE
}

// The numbers of the tunnel ports that nodes make on demand.
const (
	TunnelPorts     Port = 20001
	TunnelPortsLast Port = 29999
)

// InternalPorts is what a port that a node routes has less than its internal port,
// where nodes are as labs make them.
const InternalPorts = 10000

// IsTunnelPort reports whether a number is one of those.
func IsTunnelPort(p Port) bool { return p >= TunnelPorts && p <= TunnelPortsLast }

// A PortList is a list of ranges of ports.
type PortList [][2]Port

// Has reports whether a port is in the list.
func (l PortList) Has(p Port) bool {
	for _, r := range l {
		if r[0] <= p && p <= r[1] {
			return true
		}
	}
	return false
}

// String returns the list in the form that ParseHybrid takes.
func (l PortList) String() string {
	var parts []string
	for _, r := range l {
		if r[0] == r[1] {
			parts = append(parts, fmt.Sprint(uint32(r[0])))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", uint32(r[0]), uint32(r[1])))
		}
	}
	return strings.Join(parts, ",")
}

// String returns the description in the form that ParseHybrid takes.
func (h *Hybrid) String() string {
	text := hybridWord
	if h.Name != "" {
		text += " name=" + h.Name
	}
	for _, l := range h.lists() {
		if len(*l.list) > 0 {
			text += " " + l.name + "=" + l.list.String()
		}
	}
	return text
}

const hybridWord = "hybrid"

type hybridList struct {
	name string
	list *PortList
}

func (h *Hybrid) lists() []hybridList {
	return []hybridList{{"access", &h.Access}, {"internal", &h.Internal}, {"tunnel", &h.Tunnel}}
}

// Role returns the role of a port by its list; RoleUnsettled if it is in none.
func (h *Hybrid) Role(p Port) PortRole {
	switch {
	case h.Internal.Has(p):
		return RoleInternal
	case h.Tunnel.Has(p):
		return RoleTunnel
	case h.Access.Has(p):
		return RoleAccess
	}
	return RoleUnsettled
}

// ParseHybrid parses a datapath description. It returns nil if that is not of a
// hybrid node. If it is of one and malformed, it returns an error and a node all
// whose ports may become links.
func ParseHybrid(text string) (*Hybrid, error) {
	words := strings.Fields(text)
	if len(words) == 0 || words[0] != hybridWord {
		return nil, nil
	}
	h := &Hybrid{}
	if err := h.parse(words[1:]); err != nil {
		return &Hybrid{}, fmt.Errorf("hybrid node %.260q: %w", text, err)
	}
	return h, nil
}

func (h *Hybrid) parse(words []string) error {
	for _, w := range words {
		name, ports, _ := strings.Cut(w, "=")
		if name == "name" && h.Name == "" && ports != "" {
			h.Name = ports
			continue
		}
		var list *PortList
		for _, l := range h.lists() {
			if l.name == name {
				list = l.list
			}
		}
		if list == nil || len(*list) > 0 {
			return fmt.Errorf("%.80q: want name=, access=, internal= and tunnel=, each once at most", w)
		}
		for _, part := range strings.Split(ports, ",") {
			low, high, ranged := strings.Cut(part, "-")
			if !ranged {
				high = low
			}
			a, err1 := strconv.ParseUint(low, 10, 32)
			b, err2 := strconv.ParseUint(high, 10, 32)
			if first, last := Port(a), Port(b); err1 != nil || err2 != nil || !first.Physical() || !last.Physical() || first > last {
				return fmt.Errorf("%.80q: want ports, such as %s=3,101-199", w, name)
			} else if *list = append(*list, [2]Port{first, last}); len(*list) > 256 {
				return fmt.Errorf("%.80q: more than 256 ranges", w)
			}
		}
	}
	for i, l := range h.lists() {
		for _, o := range h.lists()[i+1:] {
			if a, b, both := l.list.overlap(*o.list); both {
				return fmt.Errorf("ports %s are in %s= and in %s=", PortList{{a, b}}, l.name, o.name)
			}
		}
	}
	return nil
}

// overlap returns ports that are in both lists.
func (l PortList) overlap(o PortList) (first, last Port, both bool) {
	for _, r := range l {
		for _, s := range o {
			if first, last = max(r[0], s[0]), min(r[1], s[1]); first <= last {
				return first, last, true
			}
		}
	}
	return 0, 0, false
}
