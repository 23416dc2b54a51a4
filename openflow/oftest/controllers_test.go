package oftest

import (
	"slices"
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

func TestHello(t *testing.T) {
	for _, test := range []struct {
		name  string
		msg   []byte
		want  openflow.Version
		fails bool
	}{
		{"1.3", v13.AppendHello(nil, 1), v13, false},
		{"1.0", openflow.V10.AppendHello(nil, 1), openflow.V10, false},
		{"1.5 without a bitmap", []byte{6, 0, 0, 8, 0, 0, 0, 1}, v13, false},
		{"1.5 with a bitmap", openflow.Version(6).AppendHello(nil, 1, openflow.V10, 6), openflow.V10, false},
		{"1.4 alone", openflow.Version(5).AppendHello(nil, 1, 5), 0, true},
		{"another message", []byte{4, 5, 0, 8, 0, 0, 0, 1}, 0, true},
		{"malformed", []byte{4, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0}, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := New(Config{})
			id, e := s.Connect()
			if h, _ := openflow.ParseHeader(e.Messages[0].Data); h.Type != openflow.TypeHello || h.Version != v13 {
				t.Errorf("%+v comes first", h)
			}
			e = s.Message(id, test.msg)
			if !test.fails {
				if len(e.Messages) != 0 || s.conns[id].version != test.want {
					t.Errorf("%d messages, want none and %v", len(e.Messages), test.want)
				}
				return
			}
			x, err := v13.DecodeError(e.Messages[0].Data)
			if err != nil || x.Type != openflow.ErrHelloFailed || !slices.Equal(e.Closed, []int{id}) {
				t.Errorf("%+v, %v, closed %v", x, err, e.Closed)
			}
		})
	}
}

func (c *controller) role(r openflow.Role, generation uint64) Effects {
	c.t.Helper()
	return c.send(v13.AppendRoleRequest(nil, c.next(), r, generation))
}

func TestRoles(t *testing.T) {
	s := New(Config{})
	a, b := connect(t, s, v13), connect(t, s, v13)
	want := func(e Effects, r openflow.Role, generation uint64) {
		t.Helper()
		if len(e.Messages) != 1 {
			t.Fatalf("%d messages", len(e.Messages))
		}
		if got, g, err := v13.DecodeRoleReply(e.Messages[0].Data); err != nil || got != r || g != generation {
			t.Fatalf("%v %d %v, want %v %d", got, g, err, r, generation)
		}
	}
	want(a.role(openflow.RoleNoChange, 0), openflow.RoleEqual, ^uint64(0))
	want(a.role(openflow.RoleMaster, 5), openflow.RoleMaster, 5)
	want(b.role(openflow.RoleMaster, 6), openflow.RoleMaster, 6)
	want(a.role(openflow.RoleNoChange, 0), openflow.RoleSlave, 6) // demoted
	a.wantError(a.role(openflow.RoleMaster, 5), openflow.ErrRoleRequestFailed, openflow.RoleRequestFailedStale)
	a.wantError(a.role(openflow.RoleSlave, 5), openflow.ErrRoleRequestFailed, openflow.RoleRequestFailedStale)
	want(a.role(openflow.RoleSlave, 6), openflow.RoleSlave, 6)

	// A slave reads, and does not write.
	slave := func(e Effects) {
		t.Helper()
		a.wantError(e, openflow.ErrBadRequest, openflow.BadRequestIsSlave)
	}
	slave(a.mod(flow.Mod{Entry: flow.Entry{Apply: out(1)}}))
	slave(a.group(flow.Add, flow.Group{ID: 1}))
	slave(a.meter(flow.Add, flow.Meter{ID: 1}))
	slave(a.send(v13.AppendPacketOut(nil, 1, &flow.PacketOut{BufferID: flow.BufferNone, InPort: 1, Data: udp(1, 2)})))
	slave(a.send(v13.AppendPortMod(nil, 1, &openflow.PortMod{Port: 1})))
	slave(a.send(v13.AppendTableMod(nil, 1, &openflow.TableMod{})))
	slave(a.send(v13.AppendMultipartRequest(nil, 1, &openflow.MultipartRequest{Type: openflow.MultipartTableFeatures, Features: make([]openflow.TableFeatures, 1)})))
	a.multipart(openflow.MultipartRequest{Type: openflow.MultipartFlow})

	// It hears of ports only, unless it asks for more.
	b.add(flow.Entry{Flags: flow.FlagSendRem, Apply: out(flow.PortController)})
	e := s.Receive(1, udp(1, 2))
	if len(a.packetIns(e)) != 0 || len(b.packetIns(e)) != 1 {
		t.Errorf("%d packet-ins to the slave, %d to the master", len(a.packetIns(e)), len(b.packetIns(e)))
	}
	e = s.SetLink(1, false)
	if !slices.Equal(a.types(e), []openflow.Type{openflow.TypePortStatus}) || !slices.Equal(b.types(e), []openflow.Type{openflow.TypePortStatus}) {
		t.Errorf("port-status: %v to the slave, %v to the master", a.types(e), b.types(e))
	}
	async := openflow.Async{PacketIn: [2]uint32{0, 1 << flow.ReasonNoMatch}}
	a.fine(a.send(v13.AppendSetAsync(nil, a.next(), &async)))
	reply := a.send(v13.AppendGetAsyncRequest(nil, a.next()))
	if got, err := v13.DecodeGetAsync(reply.Messages[0].Data); err != nil || got != async {
		t.Errorf("%+v, %v", got, err)
	}
	if e := s.Receive(2, udp(1, 2)); len(a.packetIns(e)) != 1 {
		t.Error("the slave is not sent what it asked for")
	}
	if e := s.SetLink(1, true); len(a.types(e)) != 0 {
		t.Error("the slave is sent what it asked not to be")
	}
	if r := b.mod(flow.Mod{Command: flow.Delete, Entry: flow.Entry{Table: flow.TableAll}}); len(a.removed(r)) != 0 || len(b.removed(r)) != 1 {
		t.Error("flow-removed goes to the master only")
	}
	s.Disconnect(b.id)
	want(a.role(openflow.RoleMaster, 7), openflow.RoleMaster, 7)
	if s.Role(a.id) != openflow.RoleMaster || s.Role(b.id) != openflow.RoleNoChange {
		t.Error("roles are not as they were given")
	}
}

func TestAnswers(t *testing.T) {
	for _, v := range []openflow.Version{v13, openflow.V10} {
		s := New(Config{DPID: 0x42, Buffers: 7})
		c := connect(t, s, v)
		e := c.send(v.AppendEchoRequest(nil, 9, []byte("hello?")))
		if h, _ := openflow.ParseHeader(e.Messages[0].Data); h.Type != openflow.TypeEchoReply || h.Xid != 9 || string(e.Messages[0].Data[8:]) != "hello?" {
			t.Errorf("%v: %x", v, e.Messages)
		}
		f, err := v.DecodeFeaturesReply(c.send(v.AppendFeaturesRequest(nil, 9), nil).Messages[0].Data)
		if err != nil || f.DPID != 0x42 || f.Buffers != 7 || f.Tables != 254 || v == openflow.V10 && len(f.Ports) != 4 {
			t.Errorf("%v: %+v, %v", v, f, err)
		}
		c.fine(c.send(v.AppendSetConfig(nil, 9, openflow.FragDrop, 99), nil))
		flags, miss, err := v.DecodeConfig(c.send(v.AppendGetConfigRequest(nil, 9), nil).Messages[0].Data)
		if err != nil || flags != openflow.FragDrop || miss != 99 {
			t.Errorf("%v: flags %d, miss_send_len %d, %v", v, flags, miss, err)
		}
		if got := c.types(c.send(v.AppendBarrierRequest(nil, 9), nil)); !slices.Equal(got, []openflow.Type{openflow.TypeBarrierReply}) {
			t.Errorf("%v: barrier: %v", v, got)
		}
		p, queues, err := v.DecodeQueueGetConfigReply(must2(v.AppendQueueGetConfigRequest(nil, 9, 1))(c))
		if err != nil || p != 1 || len(queues) != 0 {
			t.Errorf("%v: queues %v of port %v, %v", v, queues, p, err)
		}
	}
}

// must2 sends a message and returns the first answer.
func must2(msg []byte, err error) func(*controller) []byte {
	return func(c *controller) []byte { return c.send(msg, err).Messages[0].Data }
}

func TestPorts(t *testing.T) {
	s := New(Config{Ports: 2})
	c := connect(t, s, v13)
	c.add(flow.Entry{Apply: []flow.Action{flow.Output(1), flow.Output(flow.PortController)}})
	status := func(e Effects, reason openflow.PortReason, no flow.Port, up bool) {
		t.Helper()
		if len(e.Messages) != 1 {
			t.Fatalf("%d messages", len(e.Messages))
		}
		r, p, err := v13.DecodePortStatus(e.Messages[0].Data)
		if err != nil || r != reason || p.No != no || p.Up() != up || (p.State&openflow.PortStateLive != 0) != up {
			t.Fatalf("%v %+v %v", r, p, err)
		}
	}
	status(s.SetLink(1, false), openflow.PortModified, 1, false)
	if e := s.SetLink(1, false); len(e.Messages) != 0 {
		t.Error("a port that stays down is told of")
	}
	wantPorts(t, s.Receive(2, udp(1, 2)))
	if e := s.Receive(1, udp(1, 2)); len(e.Messages) != 0 {
		t.Error("a port that is down receives")
	}
	status(s.SetLink(1, true), openflow.PortModified, 1, true)
	wantPorts(t, s.Receive(2, udp(1, 2)), 1)
	status(s.AddPort(9), openflow.PortAdded, 9, true)
	status(s.RemovePort(9), openflow.PortDeleted, 9, true)

	p, _ := s.Port(1)
	config := func(bits uint32) Effects {
		return c.send(v13.AppendPortMod(nil, c.next(), &openflow.PortMod{Port: 1, HWAddr: p.HWAddr, Config: bits, Mask: 0x65}))
	}
	status(config(openflow.PortConfigDown), openflow.PortModified, 1, false)
	wantPorts(t, s.Receive(2, udp(1, 2)))
	status(config(openflow.PortConfigNoFwd), openflow.PortModified, 1, true)
	wantPorts(t, s.Receive(2, udp(1, 2)))
	config(openflow.PortConfigNoRecv)
	if e := s.Receive(1, udp(1, 2)); len(e.Messages) != 0 {
		t.Error("a port that is to drop what comes in does not")
	}
	config(openflow.PortConfigNoPacketIn)
	if e := s.Receive(1, udp(1, 2)); len(e.Messages) != 0 {
		t.Error("a packet-in for a port that is to cause none")
	}
	c.wantError(c.send(v13.AppendPortMod(nil, c.next(), &openflow.PortMod{Port: 1, HWAddr: p.HWAddr, Mask: openflow.PortConfigNoFlood})),
		openflow.ErrPortModFailed, openflow.PortModFailedBadConfig)
	var stats []openflow.PortStats
	for _, b := range c.multipart(openflow.MultipartRequest{Type: openflow.MultipartPortStats, Port: 1}) {
		stats, _ = v13.DecodePortStats(b, stats)
	}
	if len(stats) != 1 || stats[0].RxPackets != 2 || stats[0].RxDropped != 1 || stats[0].TxPackets != 1 || stats[0].TxDropped != 3 || stats[0].TxBytes != 60 {
		t.Errorf("%+v", stats)
	}
}
