package l2vpn

import (
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// emit appends the packet-out by which a frame of the controller's own leaves at an end.
func (e end) emit(d *flow.Decision, frame []byte) {
	d.PacketOut(e.at.Switch, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Data: e.tagged(frame), Actions: d.Actions(flow.Output(e.at.Port))})
}

// tagged returns a frame with the tags that frames have at an end.
func (e end) tagged(frame []byte) []byte {
	acts := leave(0, e)
	if e.list != "" {
		acts = []flow.Action{flow.PushVLAN(flow.EthTypeVLAN), flow.SetVLAN(e.list.ranges()[0].first)}
	}
	for _, act := range acts {
		if act.Kind != flow.ActionOutput {
			frame, _ = packet.Apply(frame, act)
		}
	}
	return frame
}
