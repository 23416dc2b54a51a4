package topology

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
)

// Kinds of containerlab's nodes that a lab has.
const (
	clabLinux     = "linux"
	clabBridge    = "bridge"
	clabOVSBridge = "ovs-bridge"
	clabHost      = "host" // the machine itself
)

// clab collects a topology of containerlab.
type clab struct {
	*draft
	answers  Answers
	used     map[string]bool // answers
	topology document.Value
	groups   map[string]document.Value
	kinds    map[string]document.Value
	nodes    []*clabNode
	named    map[string]*clabNode
	links    []clabLink
}

// clabNode is a node with what its group, kind and the defaults say of it.
type clabNode struct {
	id, kind, image string
	line            int
	raw             document.Value
	own             []document.Entry // of one that Loom wrote: as in a lab file
	role            StandIn          // empty until it is known
	name            string           // in the lab
	host            clabSettings
	links           int  // to other nodes
	attached        bool // of a host: to a switch
}

// draftClab reads a topology of containerlab, and returns which answers it used; nil if
// the text is none. Nodes of kind ovs-bridge and bridge are switches, linux nodes hosts,
// or routers if their image is FRR's. Addresses and routes that exec gives a host's
// interface are the host's. A link between two hosts becomes a bridge. Other kinds, and
// hosts with several links, are asked about: see Questions. Links that lead out of the
// lab are left out.
func draftClab(file string, text []byte, limits document.Limits, answers Answers) (*draft, map[string]bool, error) {
	docs, mistakes, ok := document.ReadAll(text, limits)
	if err := notTemplate(file, text); !ok && err != nil {
		return nil, nil, err
	}
	if !ok {
		return nil, nil, problemsOf(file, mistakes)
	}
	if len(docs) != 1 {
		return nil, nil, nil
	}
	topology, _ := docs[0].Get("topology")
	if nodes, _ := topology.Get("nodes"); topology.Kind != document.Mapping || nodes.Kind == document.List {
		return nil, nil, notOthers(file, docs[0])
	}
	if len(mistakes) > 0 {
		return nil, nil, problemsOf(file, mistakes)
	}
	name, _ := docs[0].Get("name")
	c := &clab{draft: newDraft(file, name.Text), answers: answers, used: map[string]bool{}, topology: topology, named: map[string]*clabNode{}}
	c.groups, c.kinds = byKey(topology, "groups"), byKey(topology, "kinds")
	for _, step := range []func() error{c.readNodes, c.readLinks, c.decide, c.build} {
		if err := step(); err != nil {
			return nil, nil, err
		}
	}
	return c.draft, c.used, nil
}

// problemsOf returns mistakes of a text as problems.
func problemsOf(file string, mistakes []document.Mistake) Problems {
	problems := Problems{}
	for _, m := range mistakes {
		problems = append(problems, Problem{File: file, Line: m.Line, What: m.Text})
	}
	return problems.first()
}

// notTemplate says that a text is a template, if that is why it cannot be read.
func notTemplate(file string, text []byte) error {
	line := 0
	for l := range strings.Lines(string(text)) {
		line++
		if code, _, _ := strings.Cut(l, "#"); strings.Contains(code, "{{") && strings.Contains(code, "}}") {
			return Problem{File: file, Line: line, What: "a template ({{ … }}): fill it in first, as containerlab does before it reads the file"}
		}
	}
	return nil
}

// notOthers says what a file of another tool is that is not read.
func notOthers(file string, v document.Value) error {
	_, gns3 := v.Get("project_id")
	nodes, netlab := v.Get("nodes")
	_, vertices := v.Get("vertices")
	switch {
	case v.Kind != document.Mapping || vertices:
	case gns3:
		return Problem{File: file, Line: v.Line, What: "a GNS3 project, which is not read; allowed: " + FileForms}
	case netlab:
		return Problem{File: file, Line: nodes.Line, What: "nodes at the top of the file, as netlab has them, which is not read; allowed: " + FileForms}
	}
	return nil
}

// fallback is a reference to the environment with what it is without it.
var fallback = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*:?[=-]([^{}]*)\}`)

// said returns a text of the file. Of the environment it takes the values in the file
// only.
func (c *clab) said(v document.Value) string {
	return strings.TrimSpace(fallback.ReplaceAllString(v.Text, "$1"))
}

// readNodes reads the nodes, with what they inherit.
func (c *clab) readNodes() error {
	nodes, _ := c.topology.Get("nodes")
	for _, e := range nodes.Entries {
		if e.Value.Kind != document.Mapping && e.Value.Kind != document.Null {
			return c.fail(e.Line, "the node %q is %s, not a mapping", e.Key, kind(e.Value))
		}
		n := &clabNode{id: e.Key, line: e.Line, raw: e.Value}
		n.kind = c.said(c.inherited(n, "kind"))
		n.image = c.said(c.inherited(n, "image"))
		if n.kind == "" {
			return c.fail(e.Line, "the node %q has no kind, and no group or default gives it one", e.Key)
		}
		var err error
		if n.own, err = c.loomLabel(e.Value); err != nil {
			return err
		}
		n.role = c.roleOf(n)
		c.nodes = append(c.nodes, n)
		c.named[n.id] = n
	}
	if len(c.nodes) == 0 {
		return c.fail(c.topology.Line, "a topology of containerlab without nodes")
	}
	return nil
}

// inherited returns what is said of a node by itself, its group, its kind or the
// defaults, in this order.
func (c *clab) inherited(n *clabNode, key string) document.Value {
	for _, of := range c.levels(n) {
		if v, ok := of.Get(key); ok && v.Kind != document.Null {
			return v
		}
	}
	return document.Value{}
}

// levels are where something is said of a node, the nearest first.
func (c *clab) levels(n *clabNode) []document.Value {
	defaults, _ := c.topology.Get("defaults")
	group, _ := n.raw.Get("group")
	for _, of := range []document.Value{c.kinds[n.kind], defaults} {
		if group.Text == "" {
			group, _ = of.Get("group")
		}
	}
	return []document.Value{n.raw, c.groups[c.said(group)], c.kinds[n.kind], defaults}
}

// byKey returns the mappings of one of the topology's mappings.
func byKey(topology document.Value, list string) map[string]document.Value {
	all, _ := topology.Get(list)
	m := map[string]document.Value{}
	for _, e := range all.Entries {
		m[e.Key] = e.Value
	}
	return m
}

// frr is an image of FRR.
var frr = regexp.MustCompile(`(^|/)frr(outing)?(/|:|@|$)`)

// roleOf returns what a node is in a lab, as it is answered or as its kind says; empty
// if that is to be asked.
func (c *clab) roleOf(n *clabNode) StandIn {
	if n.own != nil {
		return loomRole(document.Value{Kind: document.Mapping, Entries: n.own})
	}
	for _, what := range []string{n.id, n.kind} {
		if in, ok := c.answers[what]; ok {
			c.used[n.id], c.used[n.kind] = true, true
			return in
		}
	}
	switch {
	case n.kind == clabOVSBridge:
		return StandIn(KindOpenFlow)
	case n.kind == clabBridge:
		return StandIn(KindBridge)
	case n.kind == clabHost:
		return StandNone
	case n.kind == clabLinux && frr.MatchString(n.image):
		return StandIn(KindRouter)
	}
	return ""
}

// decide finds out what the linux nodes are, and asks about the other ones, and about
// Open vSwitch bridges where only a learning switch can be.
func (c *clab) decide() error {
	routed := map[*clabNode]bool{} // linked to a node that routes
	for _, l := range c.links {
		for i, e := range l.ends {
			other := l.ends[1-i].node
			if e.node == nil || other == nil || other == e.node || other.role == StandNone {
				continue
			}
			e.node.links++
			if other.role == StandIn(KindRouter) || other.role == StandIn(KindHybrid) {
				routed[e.node] = true
			}
		}
	}
	var q Questions
	asked := map[string]int{} // what an answer is of -> its question
	for _, n := range c.nodes {
		one := Question{Line: n.line, Kind: n.kind, Nodes: []string{n.id}, Why: "a lab cannot run it"}
		switch {
		case n.kind == clabOVSBridge && n.own == nil && routed[n] && !c.used[n.id] && !c.used[n.kind]:
			one.Why = "as an OpenFlow switch it has no links to routers, as a bridge it has"
		case n.role != "":
			continue
		case n.kind == clabLinux && n.links < 2:
			n.role = StandHost
			continue
		case n.kind == clabLinux:
			one.Why = fmt.Sprintf("it has %d links, and a host has one", n.links)
		}
		if i, ok := asked[one.Key()]; ok {
			q.List[i].Nodes = append(q.List[i].Nodes, n.id)
			continue
		}
		asked[one.Key()] = len(q.List)
		q.List = append(q.List, one)
	}
	if len(q.List) > 0 {
		q.File = c.file
		return &q
	}
	return nil
}

// build makes the lab's nodes and links.
func (c *clab) build() error {
	var none, left, unread []string
	defaults, _ := c.topology.Get("defaults")
	top, err := c.loomLabel(defaults)
	if err != nil {
		return err
	}
	if top != nil {
		c.top = without(top, "empty")
	}
	for _, n := range c.nodes {
		if n.own != nil {
			c.loomNode(n)
			continue
		}
		if n.role == StandNone {
			none = append(none, n.id)
			continue
		}
		n.name = c.names.of(n.id, fmt.Sprintf("n%d", n.line))
		if n.role == StandHost {
			if n.host = c.settings(n); n.host.unread {
				unread = append(unread, n.id)
			}
			continue
		}
		var e []document.Entry
		if n.role != StandIn(KindOpenFlow) {
			e = append(e, entry(n.line, "kind", string(n.role)))
		}
		c.switches = append(c.switches, mapping(n.line, slices.Concat([]document.Entry{entry(n.line, "name", n.name)}, e, c.placeOf(n))...))
	}
	for _, l := range c.links {
		if err := c.link(l); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if n.role == StandHost && !n.attached {
			left = append(left, n.id)
		}
	}
	if len(c.switches) == 0 {
		return c.fail(c.topology.Line, "no link joins two nodes that a lab has: nothing is left of the file")
	}
	if len(none) > 0 {
		c.remark("left out, with their links: %s", some(none))
	}
	if len(left) > 0 {
		c.remark("left out, because no link joins them to a node of the lab: %s", some(left))
	}
	if len(unread) > 0 {
		c.remark("commands of exec other than addresses and routes are not run: those of %s", some(unread))
	}
	return nil
}

// placeOf returns where a node stands on the drawing.
func (c *clab) placeOf(n *clabNode) []document.Entry {
	labels, _ := n.raw.Get("labels")
	x, _ := labels.Get("graph-posX")
	y, _ := labels.Get("graph-posY")
	if px, py, ok := coordinates(x.Text, y.Text); ok {
		return []document.Entry{place(n.line, px, py)}
	}
	return nil
}

// link makes a link of the lab, or attaches a host.
func (c *clab) link(l clabLink) error {
	a, b := l.ends[0], l.ends[1]
	said := func(e document.Entry) bool { return e.Key == "host" } // at the host
	switch {
	case slices.ContainsFunc(l.own, said):
		return nil
	case a.node == nil || b.node == nil || a.node.role == StandNone || b.node.role == StandNone:
		return nil
	case a.node == b.node:
		c.selfLoops = append(c.selfLoops, cmp.Or(a.node.name, a.node.id))
		return nil
	case a.node.role != StandHost && b.node.role != StandHost:
		fields := with(without(l.own, "made"), number(l.line, "mtu", c.mtu(l)))
		fields = with(with(fields, entry(l.line, "b", b.node.name)), entry(l.line, "a", a.node.name))
		c.draft.links = append(c.draft.links, mapping(l.line, fields...))
		return nil
	case a.node.role == StandHost && b.node.role == StandHost:
		if a.node.attached || b.node.attached {
			c.remark("a further link of the hosts %s and %s was left out", a.node.id, b.node.id)
			return nil
		}
		cable := c.names.of(a.node.name+"-"+b.node.name, "")
		c.switches = append(c.switches, mapping(l.line, entry(l.line, "name", cable), entry(l.line, "kind", string(KindBridge))))
		c.attach(a, cable, KindBridge, l)
		c.attach(b, cable, KindBridge, l)
		c.remark("the hosts %s and %s are joined by a bridge, %s: a lab's hosts are attached to switches", a.node.id, b.node.id, cable)
		return nil
	}
	if b.node.role == StandHost {
		a, b = b, a
	}
	if a.node.attached {
		c.remark("a further link of the host %s, to %s, was left out", a.node.id, b.node.id)
		return nil
	}
	c.attach(a, b.node.name, Kind(b.node.role), l)
	return nil
}

// attach adds a host.
func (c *clab) attach(e clabEnd, to string, kind Kind, l clabLink) {
	n := e.node
	n.attached = true
	h := n.host
	v4, v6 := cmp.Or(e.ipv4, h.address(e.port, 4)), cmp.Or(e.ipv6, h.address(e.port, 6))
	all := []document.Entry{entry(n.line, "name", n.name), entry(n.line, "switch", to), entry(n.line, "mac", cmp.Or(e.mac, h.mac[e.port])), entry(n.line, "ipv4", v4), entry(n.line, "ipv6", v6)}
	if kind == KindRouter || kind == KindHybrid {
		all = append(all, number(n.line, "gateway", "true"))
	}
	all = append(all, entry(n.line, "gateway4", h.gateway(v4)), entry(n.line, "gateway6", h.gateway(v6)), number(l.line, "mtu", c.mtu(l)))
	c.hosts = append(c.hosts, mapping(n.line, append(all, c.placeOf(n)...)...))
}

// mtu returns the MTU of a link, at most what a lab can have.
func (c *clab) mtu(l clabLink) string {
	if n, err := strconv.Atoi(l.mtu); err == nil && n > MaxMTU {
		c.remark("the MTU %d of a link is %d in a lab", n, MaxMTU)
		return strconv.Itoa(MaxMTU)
	}
	return l.mtu
}
