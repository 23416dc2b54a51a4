package oftest

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

func loc(sw flow.DPID, p flow.Port) flow.Location { return flow.Location{Switch: sw, Port: p} }

// program connects a controller that is a function to a device, and returns
// what sends to it and what has come from it.
func program(t *testing.T, d *Device) (send func(msg []byte, err error), got *[][]byte) {
	t.Helper()
	got = new([][]byte)
	raw, detach := d.Attach(func(msg []byte) { *got = append(*got, msg) })
	t.Cleanup(detach)
	send = func(msg []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		raw(msg)
	}
	send(v13.AppendHello(nil, 1, v13), nil)
	return send, got
}

func add(e flow.Entry) ([]byte, error) {
	return v13.AppendFlowMod(nil, 1, &flow.Mod{Entry: e, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny})
}

// ring joins n switches, ports 1 and 2, in a ring, with a host at port 3 of each.
func ring(t *testing.T, n int) (*Network, []*Device, []*Host) {
	net := NewNetwork(nil)
	var devices []*Device
	var hosts []*Host
	for i := range n {
		devices = append(devices, net.Add(Config{DPID: flow.DPID(i + 1)}))
		hosts = append(hosts, net.Host(loc(flow.DPID(i+1), 3), nil))
	}
	for i := range n {
		net.Link(loc(flow.DPID(i+1), 1), loc(flow.DPID((i+1)%n+1), 2))
	}
	return net, devices, hosts
}

func TestNetworkForwards(t *testing.T) {
	net, devices, hosts := ring(t, 3)
	for i, d := range devices { // clockwise, from switch 1 to the host at switch 3
		send, _ := program(t, d)
		to := flow.Port(1)
		if i == 2 {
			to = 3
		}
		send(add(flow.Entry{Apply: out(to)}))
	}
	frame := udp(1, 2)
	hosts[0].Send(frame)
	if got := hosts[2].Received(); len(got) != 1 || !slices.Equal(got[0], frame) {
		t.Errorf("%d frames at the far end", len(got))
	}
	if hosts[2].Received() != nil {
		t.Error("what was received is given twice")
	}
	hosts[2].Move(loc(3, 4))
	hosts[0].Send(frame)
	if got := hosts[2].Received(); len(got) != 0 {
		t.Error("received where it no longer is")
	}
	if l := net.Loops(); len(l) != 0 {
		t.Errorf("loops: %v", l)
	}
	if at, n := net.Busiest(); n != 2 {
		t.Errorf("%d times at %v, want 2", n, at)
	}
}

// TestNetworkFindsLoops: flooding in a ring comes back to where it was.
func TestNetworkFindsLoops(t *testing.T) {
	net, devices, hosts := ring(t, 4)
	for _, d := range devices {
		send, _ := program(t, d)
		send(add(flow.Entry{Apply: out(flow.PortFlood)}))
	}
	hosts[0].Send(udp(1, 2))
	loops := net.Loops()
	if len(loops) == 0 {
		t.Fatal("no loop found")
	}
	p := loops[0].Path
	if first := slices.Index(p, p[len(p)-1]); first == len(p)-1 {
		t.Errorf("%v: the last place is no earlier one", loops[0])
	}
	net.Cut(loc(1, 1))
	net.Forget()
	hosts[0].Send(udp(1, 2))
	if l := net.Loops(); len(l) != 0 {
		t.Errorf("a ring that is cut has no loop: %v", l)
	}
	for i, h := range hosts[1:] {
		if got := h.Received(); len(got) != 1 {
			t.Errorf("host %d received %d frames, want 1", i+1, len(got))
		}
	}
	net.Mend(loc(1, 1))
	hosts[0].Send(udp(1, 2))
	if len(net.Loops()) == 0 {
		t.Error("no loop found in a ring that is whole again")
	}
}

// TestNetworkBoundsHops: a loop that changes the frame on its way ends too.
func TestNetworkBoundsHops(t *testing.T) {
	net, devices, hosts := ring(t, 2)
	for i, d := range devices {
		send, _ := program(t, d)
		apply := out(1)
		if i == 0 {
			apply = []flow.Action{flow.PushVLAN(flow.EthTypeVLAN), flow.Output(1)}
		}
		send(add(flow.Entry{Apply: apply}))
	}
	hosts[0].Send(udp(1, 2))
	if l := net.Loops(); len(l) != 1 || len(l[0].Path) != MaxHops+2 {
		t.Errorf("%d loops", len(l))
	}
}

func TestNetworkLinks(t *testing.T) {
	net, devices, hosts := ring(t, 2)
	var got [2]*[][]byte
	for i, d := range devices {
		var send func([]byte, error)
		send, got[i] = program(t, d)
		send(add(flow.Entry{Match: flow.Match{}.WithInPort(3), Apply: out(1)}))
		send(add(flow.Entry{Match: flow.Match{}.WithInPort(2), Apply: out(3)}))
		*got[i] = nil
	}
	net.Cut(loc(1, 1))
	for i, port := range []flow.Port{1, 2} {
		if len(*got[i]) != 1 {
			t.Fatalf("switch %d: %d messages, want one port-status", i+1, len(*got[i]))
		}
		if _, p, err := v13.DecodePortStatus((*got[i])[0]); err != nil || p.No != port || p.Up() {
			t.Errorf("switch %d: %+v, %v", i+1, p, err)
		}
	}
	hosts[0].Send(udp(1, 2))
	if len(hosts[1].Received()) != 0 {
		t.Error("a frame came over a link that is cut")
	}
	net.Mend(loc(1, 1))
	net.Mute(loc(1, 1))
	hosts[0].Send(udp(1, 2))
	if len(hosts[1].Received()) != 0 {
		t.Error("a frame came over a link that is mute")
	}
	if p, ok := devices[0].sw.Port(1); !ok || !p.Up() {
		t.Error("a mute link shows")
	}
	net.Unmute(loc(1, 1))
	hosts[0].Send(udp(1, 2))
	if len(hosts[1].Received()) != 1 {
		t.Error("no frame came over a link that is mute no more")
	}
}

// TestNetworkTime: entries time out when the network's clock is advanced.
func TestNetworkTime(t *testing.T) {
	net, devices, _ := ring(t, 2)
	send, got := program(t, devices[0])
	send(add(flow.Entry{HardTimeout: 5, Flags: flow.FlagSendRem, Apply: out(1)}))
	net.Advance(at(5 * time.Second))
	h, err := openflow.ParseHeader((*got)[len(*got)-1])
	if err != nil || h.Type != openflow.TypeFlowRemoved || len(devices[0].Flows()) != 0 {
		t.Errorf("%v, %v", h.Type, err)
	}
}

// TestHostAnswers: a host that is a function takes part.
func TestHostAnswers(t *testing.T) {
	net := NewNetwork(nil)
	d := net.Add(Config{DPID: 1})
	send, _ := program(t, d)
	send(add(flow.Entry{Apply: out(flow.PortFlood)}))
	a := net.Host(loc(1, 1), nil)
	net.Host(loc(1, 2), func(frame []byte) [][]byte { return [][]byte{udp(2, 1)} })
	a.Send(udp(1, 2))
	if got := a.Received(); len(got) != 1 || !slices.Equal(got[0], udp(2, 1)) {
		t.Errorf("%x", got)
	}
	if net.Device(1) != d || net.Device(2) != nil {
		t.Error("Device returns another")
	}
}
