package oftest

import (
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// Driver is a controller of one switch that is a test's: it speaks OpenFlow 1.3 and
// keeps what the switch says.
type Driver struct {
	send      func(msg []byte)
	xid       uint32
	packetIns []flow.PacketIn
	refusals  int
}

// Drive connects a driver to a switch; detach ends the connection.
func Drive(d *Device) (c *Driver, detach func()) {
	c = &Driver{}
	c.send, detach = d.Attach(func(msg []byte) {
		switch h, _ := openflow.ParseHeader(msg); h.Type {
		case openflow.TypePacketIn:
			in := flow.PacketIn{Switch: d.DPID()}
			if openflow.V13.DecodePacketIn(msg, &in) == nil {
				in.Data = slices.Clone(in.Data)
				c.packetIns = append(c.packetIns, in)
			}
		case openflow.TypeError:
			c.refusals++
		}
	})
	c.send(openflow.V13.AppendHello(nil, 1, openflow.V13))
	return c, detach
}

// Flow sends a flow-mod for an entry.
func (c *Driver) Flow(command flow.Command, e flow.Entry) {
	c.say(openflow.V13.AppendFlowMod(nil, c.next(), &flow.Mod{Command: command, Entry: e, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}))
}

// Group sends a group-mod.
func (c *Driver) Group(command flow.Command, g flow.Group) {
	c.say(openflow.V13.AppendGroupMod(nil, c.next(), &flow.GroupMod{Command: command, Group: g}))
}

// Meter sends a meter-mod.
func (c *Driver) Meter(command flow.Command, m flow.Meter) {
	c.say(openflow.V13.AppendMeterMod(nil, c.next(), &flow.MeterMod{Command: command, Meter: m}))
}

// PacketIns returns the packet-ins since the last call.
func (c *Driver) PacketIns() []flow.PacketIn {
	list := c.packetIns
	c.packetIns = nil
	return list
}

// Refusals returns how many messages were no good: the switch has refused them, or
// OpenFlow 1.3 cannot say them.
func (c *Driver) Refusals() int { return c.refusals }

func (c *Driver) next() uint32 { c.xid++; return c.xid }

func (c *Driver) say(msg []byte, err error) {
	if err != nil {
		c.refusals++
		return
	}
	c.send(msg)
}
