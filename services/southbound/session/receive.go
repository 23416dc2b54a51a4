package session

import (
	"errors"
	"fmt"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// enroll makes the connection one for packet-ins: as a slave, which gets
// packet-ins if it asks for them (OpenFlow 1.3.5 §6.3.6, §7.3.10), and with the
// receiver's number. A switch without such numbers sends it nothing, because the
// southbound gets its packets.
func (hs *handshake) enroll() error {
	if hs.Version != openflow.V13 {
		return fmt.Errorf("switch %v speaks %v here: packets are taken over connections with OpenFlow 1.3; set protocols=OpenFlow13 on the bridge, or leave this controller out", hs.DPID, hs.Version)
	}
	if err := hs.takeSlave(0); err != nil { // with the switch's generation, if it has one
		return err
	}
	hs.role.Mastered = true // nothing to wait for: it stays a slave
	xid := hs.xid.Add(1)    // of both messages: the answer is a refusal or the barrier reply
	msg, err := hs.Version.AppendSetControllerID(nil, xid, hs.shared.Receiver.Number)
	if err != nil {
		return err
	}
	err = hs.confirmMessage(xid, msg)
	var refused *openflow.Error
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	async := openflow.Async{}
	if refused == nil {
		async.PacketIn[0] = 1<<flow.ReasonNoMatch | 1<<flow.ReasonAction | 1<<flow.ReasonInvalidTTL
		async.PacketIn[1] = async.PacketIn[0]
	}
	xid = hs.xid.Add(1)
	if msg, err = hs.Version.AppendSetAsync(nil, xid, &async); err != nil {
		return err
	}
	if err := hs.confirmMessage(xid, msg); err != nil {
		return fmt.Errorf("switch %v: asynchronous configuration: %w", hs.DPID, err)
	}
	if refused != nil {
		hs.shared.Log.Warn("switch knows no numbers of controllers (Open vSwitch's controller id): the southbound gets its packets, and passes them on", "dpid", hs.DPID, "error", refused)
		return nil
	}
	hs.setRole = hs.shared.Receiver.Roles(hs.DPID)
	return nil
}

// confirmMessage sends a message and a barrier with the same xid, and waits until the
// switch answers one of them.
func (hs *handshake) confirmMessage(xid uint32, msg []byte) error {
	if err := hs.out.put(hs.Version.AppendBarrierRequest(msg, xid)); err != nil {
		return err
	}
	_, err := hs.reply(xid, openflow.TypeBarrierReply, "barrier reply")
	return err
}

// limit passes a flood limiter to the southbound, which confirms its meter
// before it writes the entries that use it.
func (r *Receiver) limit(sw flow.DPID, d *flow.Decision) {
	all := &flow.Decision{}
	for k, op := range d.Ops {
		switch op.Kind {
		case flow.OpMeter:
			all.Meter(op.Switch, d.Meters[op.Index])
		case flow.OpFlow:
			if k > 0 && d.Ops[k-1].Kind == flow.OpMeter {
				all.Fence()
			}
			all.Flow(op.Switch, d.Flows[op.Index])
		}
	}
	r.Carry(sw, all)
}
