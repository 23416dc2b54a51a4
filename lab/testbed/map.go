package testbed

import (
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/plan/partition"
)

// Mapping says where the nodes of a lab run. The same lab and machines have the
// same mapping.
type Mapping struct {
	Nodes   []Placed `json:"mapping"` // switches first, each in the order of the lab file
	Tunnels []Tunnel `json:"tunnels"`
	Loads   []Load   `json:"loads"` // in the order of the resource file
}

// Placed is a node and its machine.
type Placed struct {
	Node    string `json:"node"`
	Machine string `json:"machine"`
	ByHand  bool   `json:"by_hand"` // the resource file says so
}

// Tunnel is a link between two machines.
type Tunnel struct {
	Link     string    `json:"link"` // its ends: "s1:2-s2:3" or "s1:1-h1"
	VNI      uint32    `json:"vni"`  // the network identifier of VXLAN
	Machines [2]string `json:"machines"`

	link, host int // index of the link, or of the host that it attaches; else -1
}

// Load is what a machine gets.
type Load struct {
	Machine string `json:"machine"`
	Nodes   int    `json:"nodes"`
	Cut     int    `json:"links_cut"` // links to other machines
}

// MachineOf returns the machine of a node; empty if the lab has no such node.
func (m *Mapping) MachineOf(node string) string {
	for _, p := range m.Nodes {
		if p.Node == node {
			return p.Machine
		}
	}
	return ""
}

// cutTolerance is by how much a machine may get more than its share, if fewer links are
// cut so.
const cutTolerance = 0.1

// Map places the nodes of a completed topology on machines: those that the
// resource file places by hand there, the others so that few links are cut and
// machines get nodes by their cores, hosts beside their switches. What cannot be
// is returned as lab.Problems.
func Map(t *topology.Topology, m *Machines) (*Mapping, error) {
	p := placing{t: t, m: m, at: map[string]int{}, index: map[string]int{}}
	for i, k := range m.List {
		for _, node := range k.Nodes {
			p.at[node] = i
		}
	}
	p.check()
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	if err := p.place(); err != nil {
		return nil, err
	}
	return p.mapping(), nil
}

type placing struct {
	t        *topology.Topology
	m        *Machines
	at       map[string]int // by hand
	index    map[string]int // of a node among the vertices of the graph
	of       []int          // by vertex: its machine
	problems topology.Problems
}

func (p *placing) add(line int, format string, args ...any) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, topology.Problem{Line: line, What: document.Wording(format, args...)})
	}
}

// check says what can be placed nowhere, or not so.
func (p *placing) check() {
	known := map[string]bool{}
	for _, l := range p.t.Links {
		if l.Tunnel != nil {
			p.add(0, "the link %s has a tunnel: a part of a lab cannot be spread again", l)
			return
		}
	}
	for _, s := range p.t.Switches {
		known[s.Name] = true
		if (s.Kind == topology.KindHybrid || s.Kind == topology.KindRouter) && len(p.m.List) > 1 {
			p.add(0, "switch %s is %s: nodes that route share the routing and control of one machine, and a lab with them cannot be spread: bring it up on one machine", s.Name, s.Kind)
			return
		}
	}
	for _, h := range p.t.Hosts {
		known[h.Name] = true
		if h.Tunnel != nil {
			p.add(0, "host %s has a tunnel: a part of a lab cannot be spread again", h.Name)
			return
		}
		if h.Eth1 == nil {
			continue
		}
		for _, sw := range []string{h.Switch, h.Eth1.Switch} {
			host, byHand := p.at[h.Name]
			if there, ok := p.at[sw]; ok && byHand && there != host {
				p.add(p.m.List[host].line, "host %s with eth1 has to be on the machine of switch %s, which is %s", h.Name, sw, p.m.List[there].Name)
			}
		}
	}
	for _, k := range p.m.List {
		for _, node := range k.Nodes {
			if !known[node] {
				p.add(k.line, "machine %s: lab %s has no node %q", k.Name, p.t.Name, node)
			}
		}
	}
}

// place finds the machine of each vertex: switches, and hosts that are placed by hand
// or have two switches. Other hosts go with their switch. A weight on each machine,
// which is placed there, stands for what its cores are fewer than those of others.
func (p *placing) place() error {
	var vertices []partition.Switch
	add := func(name string, load int64) flow.DPID {
		id := flow.DPID(len(vertices) + 1)
		vertices = append(vertices, partition.Switch{DPID: id, Name: name, Load: load})
		return id
	}
	cores := 0
	o := partition.Options{Partitions: len(p.m.List), Fixed: map[flow.DPID]string{}, Tolerance: cutTolerance, Method: partition.ByCut}
	for _, k := range p.m.List {
		o.Names = append(o.Names, k.Name)
		cores += k.Cores
	}
	unit := int64(cores) // of load, so that shares are whole
	for _, s := range p.t.Switches {
		p.index[s.Name] = int(add(s.Name, unit)) - 1
	}
	var links []partition.Link
	for _, h := range p.t.Hosts {
		sw := p.index[h.Switch]
		_, byHand := p.at[h.Name]
		switch {
		case h.Eth1 != nil:
			id := add(h.Name, unit)
			p.index[h.Name] = int(id) - 1
			o.Together = append(o.Together, []flow.DPID{id, flow.DPID(sw + 1), flow.DPID(p.index[h.Eth1.Switch] + 1)})
		case byHand:
			p.index[h.Name] = int(add(h.Name, unit)) - 1
			links = append(links, partition.Link{A: sw, B: p.index[h.Name], Weight: 1})
		default:
			p.index[h.Name] = sw
			vertices[sw].Load += unit
		}
	}
	for _, l := range p.t.Links {
		links = append(links, partition.Link{A: p.index[l.A], B: p.index[l.B], Weight: 1})
	}
	for node, machine := range p.at {
		o.Fixed[flow.DPID(p.index[node]+1)] = p.m.List[machine].Name
	}
	nodes, most := int64(len(p.t.Switches)+len(p.t.Hosts)), 0
	for _, k := range p.m.List {
		most = max(most, k.Cores)
	}
	for i, k := range p.m.List {
		o.Fixed[add("", nodes*int64(most-k.Cores))] = p.m.List[i].Name
	}
	g, err := partition.New(vertices, links)
	if err != nil {
		return err
	}
	r, err := partition.Partition(g, o)
	if no := (*partition.Infeasible)(nil); errors.As(err, &no) && no.Constraint == "balance" { // by hand, it need not be even
		o.Tolerance = 1e6
		r, err = partition.Partition(g, o)
	}
	if err != nil {
		return topology.Problems{{What: "the nodes cannot be placed so: " + err.Error()}}
	}
	p.of = r.Of // vertices are numbered by their ids
	return nil
}

func (p *placing) mapping() *Mapping {
	m := &Mapping{Nodes: []Placed{}, Tunnels: []Tunnel{}, Loads: []Load{}}
	for _, k := range p.m.List {
		m.Loads = append(m.Loads, Load{Machine: k.Name})
	}
	put := func(node string) {
		_, byHand := p.at[node]
		at := p.of[p.index[node]]
		m.Nodes = append(m.Nodes, Placed{Node: node, Machine: p.m.List[at].Name, ByHand: byHand})
		m.Loads[at].Nodes++
	}
	cut := func(name, a, b string, link, host int) {
		at, to := p.of[p.index[a]], p.of[p.index[b]]
		if at == to {
			return
		}
		m.Tunnels = append(m.Tunnels, Tunnel{Link: name, Machines: [2]string{p.m.List[at].Name, p.m.List[to].Name}, link: link, host: host})
		m.Loads[at].Cut++
		m.Loads[to].Cut++
	}
	for _, s := range p.t.Switches {
		put(s.Name)
	}
	for i, h := range p.t.Hosts {
		put(h.Name)
		cut(fmt.Sprintf("%s:%d-%s", h.Switch, h.Port, h.Name), h.Switch, h.Name, -1, i)
	}
	for i, l := range p.t.Links {
		cut(l.String(), l.A, l.B, i, -1)
	}
	m.number(p.t.Name, nil)
	return m
}

// number gives each tunnel a network identifier that is not in use, the same for the
// same lab as far as may be.
func (m *Mapping) number(name string, used map[uint32]bool) {
	const most = 1<<24 - 1
	mine := map[uint32]bool{}
	for i := range m.Tunnels {
		h := fnv.New32a()
		fmt.Fprintf(h, "%s %s", name, m.Tunnels[i].Link)
		vni := h.Sum32()%most + 1
		for used[vni] || mine[vni] {
			vni = vni%most + 1
		}
		m.Tunnels[i].VNI, mine[vni] = vni, true
	}
}
