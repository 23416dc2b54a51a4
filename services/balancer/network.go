package balancer

import (
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
)

// place is the address of a host, station is where it is.
type (
	place   = object.Address
	station = object.Station
	hostKey = object.HostKey
)

// network is what is known of hosts and switches, and how frames get to hosts. The
// balancer's mu guards it, but for tagging, which needs none.
type network struct {
	tagging  flow.Tagging
	view     nib.Snapshot
	hosts    *object.Hosts
	switches map[flow.DPID]*datapath
	places   int // grows with every edge port and switch that comes
}

func newNetwork() *network {
	return &network{hosts: object.NewHosts(), switches: map[flow.DPID]*datapath{}}
}

// session is a connection of a switch.
type session struct{ since, address string }

// datapath is what the stage needs of a switch, and what is known of its entries.
type datapath struct {
	connected bool
	info      *api.Switch // read-only
	rewrites  bool        // has the table in which addresses are translated
	away      int64
	now, read session // it is connected by, and its entries were last reported of
	told      bool    // read is known
	again     int64   // when it is to report once more, 1 for at once; 0: it need not
	doubts    int     // how many reports in turn were too early to tell
}

// changed follows a change of switches and roles; it reports whether there was one.
func (n *network) changed(c nib.Change, now int64) (changed bool) {
	n.view = c.Is
	for _, s := range c.Switches() {
		if s.Is != nil {
			n.switchChanged(s.Is, now)
			changed = true
		}
	}
	for _, r := range c.Roles() {
		was, is := isEdge(r.Was), isEdge(r.Is)
		if is {
			n.places++
		}
		changed = changed || was != is
	}
	return changed
}

func isEdge(r *nib.Role) bool { return r != nil && r.Is.Role == flow.RoleEdge.String() }

// switchChanged follows a change of a switch.
func (n *network) switchChanged(s *nib.Switch, now int64) {
	d, is := n.datapath(s.Key), s.Is.Switch
	d.now, d.info = session{is.Since, is.Address}, is
	if d.connected = is.Connected; !d.connected {
		d.away = now
		return
	}
	n.places++
	d.rewrites = is.Lack(api.NeedTables) == ""
}

// datapath returns what is known of a switch.
func (n *network) datapath(sw flow.DPID) *datapath {
	d := n.switches[sw]
	if d == nil {
		d = &datapath{}
		n.switches[sw] = d
	}
	return d
}

// unread returns the connected switches that have not reported the balancer's
// entries since they connected, or since this run began, and those whose report was too
// early to tell.
func (n *network) unread(now int64) (list []string) {
	for sw, d := range n.switches {
		if d.connected && (!d.told || d.read != d.now || d.again != 0 && now >= d.again) {
			list = append(list, sw.String())
		}
	}
	return list
}

// rewrites reports whether a switch has the table in which addresses are translated.
func (n *network) rewrites(sw flow.DPID) bool {
	d := n.switches[sw]
	return d != nil && d.rewrites
}

// find returns the host with an address, false if its place is unknown.
func (n *network) find(p place) (station, bool) {
	s, known := n.hosts.Station(p)
	return s, known && s.At != flow.Location{}
}

// reach returns where a member is; false if that is not known or its switch
// cannot rewrite its answers.
func (n *network) reach(m *member) (station, bool) {
	s, ok := n.find(m.addr)
	if !ok {
		return s, false
	}
	sw := n.switches[s.At.Switch]
	return s, sw != nil && sw.connected && sw.rewrites
}

// ether returns the Ethernet address of a VIP: that of the host that it shadows, of
// which false says that it is not known.
func (n *network) ether(v *vip) (flow.MAC, bool) {
	if v.host == nil {
		return v.mac, true
	}
	s, ok := n.find(v.at.host)
	return s.MAC, ok
}

// open reports whether packets for a shadow go through to the host: no member
// serves.
func (n *network) open(v *vip) bool {
	return v.host != nil && !slices.ContainsFunc(v.pool, func(m *member) bool {
		_, ok := n.reach(m)
		return ok && m.serves()
	})
}

// intercepts returns an error if packets for a shadowed host would get past the VIP at a
// connected switch: along routes, which a switch with one table cannot put it before.
func (n *network) intercepts(v *vip) error {
	var list []*api.Switch
	for _, d := range n.switches {
		list = append(list, d.info)
	}
	return api.CheckNeeds("the shadow of vip "+v.name, "give the VIP an address that no host has", slices.Values(list), api.NeedTables)
}

// refuse appends the TCP reset for a client that no member serves, so that it
// need not wait.
func (n *network) refuse(in *flow.PacketIn, d *flow.Decision) {
	t, ok := packet.ParseTCP(in.Data)
	if !ok || t.Flags()&packet.TCPRst != 0 {
		return
	}
	k := &in.Key
	ip := packet.IP{Src: netip.AddrFrom4(k.IPv4Dst), Dst: netip.AddrFrom4(k.IPv4Src)}
	if k.EthType == flow.EthTypeIPv6 {
		ip = packet.IP{Src: netip.AddrFrom16(k.IPv6Dst), Dst: netip.AddrFrom16(k.IPv6Src)}
	}
	f := packet.TCPFields{SrcPort: t.DstPort(), DstPort: t.SrcPort(), Flags: packet.TCPRst | packet.TCPAck, Ack: t.Seq() + 1}
	if t.Flags()&packet.TCPAck != 0 {
		f.Flags, f.Seq, f.Ack = packet.TCPRst, t.Ack(), 0
	}
	n.reply(d, in, packet.AppendTCP(nil, packet.Ether{Dst: k.EthSrc, Src: k.EthDst, VLAN: k.VLAN}, ip, f, nil))
}

// reply sends a frame back to where a packet came from.
func (n *network) reply(d *flow.Decision, in *flow.PacketIn, frame []byte) {
	n.deliver(d, frame, in.Key.VLAN, flow.Location{Switch: in.Switch, Port: in.Key.InPort})
}

// deliver appends the packet-out of a frame of a VLAN at a port.
func (n *network) deliver(d *flow.Decision, frame []byte, vlan uint16, at flow.Location) {
	tag, ok := n.tagging.Egress(at, vlan)
	if !ok {
		return
	}
	actions := append(append(make([]flow.Action, 0, 4), tag...), flow.Output(at.Port))
	d.PacketOut(at.Switch, flow.PacketOut{
		BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Actions(actions...), Data: frame,
	})
}
