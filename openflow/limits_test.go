package openflow

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// TestWhatOpenFlow10CannotExpress: the error names what it is, and the buffer
// comes back as it was.
func TestWhatOpenFlow10CannotExpress(t *testing.T) {
	mod := func(change func(m *flow.Mod)) func(dst []byte) ([]byte, error) {
		m := add(flow.Match{}.WithInPort(1), flow.Output(2))
		change(&m)
		return func(dst []byte) ([]byte, error) { return V10.AppendFlowMod(dst, 1, &m) }
	}
	match := func(m flow.Match) func(dst []byte) ([]byte, error) {
		return mod(func(w *flow.Mod) { w.Entry.Match = m })
	}
	action := func(list ...flow.Action) func(dst []byte) ([]byte, error) {
		return mod(func(w *flow.Mod) { w.Entry.Apply = list })
	}
	request := func(r MultipartRequest) func(dst []byte) ([]byte, error) {
		return func(dst []byte) ([]byte, error) { return V10.AppendMultipartRequest(dst, 1, &r) }
	}
	for field, encode := range map[string]func(dst []byte) ([]byte, error){
		"goto-table":             mod(func(m *flow.Mod) { m.Entry.Goto = 1 }),
		"meter":                  mod(func(m *flow.Mod) { m.Entry.Meter = 1 }),
		"write-metadata":         mod(func(m *flow.Mod) { m.Entry.MetaMask = 1 }),
		"clear-actions":          mod(func(m *flow.Mod) { m.Entry.Clear = true }),
		"write-actions":          mod(func(m *flow.Mod) { m.Entry.HasWrite = true }),
		"table 3":                mod(func(m *flow.Mod) { m.Entry.Table = 3 }),
		"flags 0x8":              mod(func(m *flow.Mod) { m.Entry.Flags = flow.FlagNoPackets }),
		"cookie mask":            mod(func(m *flow.Mod) { m.CookieMask = 1 }),
		"out_group 5":            mod(func(m *flow.Mod) { m.Command, m.OutGroup = flow.Delete, 5 }),
		"port 70000":             mod(func(m *flow.Mod) { m.OutPort = 70000 }),
		"port 65281":             match(flow.Match{}.WithInPort(0xff01)),
		"ipv6_src":               match(flow.Match{}.WithIPv6Src(ip("2001:db8::/32"))),
		"metadata":               match(flow.Match{}.WithMetadata(1, 1)),
		"tunnel_id":              match(flow.Match{}.WithTunnelID(1)),
		"mpls_label":             match(flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSLabel(1)),
		"masked eth_dst":         match(flow.Match{}.WithEthDstMasked(flow.MAC{1}, flow.MAC{1})),
		"masked vlan_vid":        match(flow.Match{}.WithAnyVLAN()),
		"vlan_pcp without":       match(flow.Match{}.WithVLANPCP(1)),
		"no prefix":              match(masked(any4, flow.FieldIPv4Src, []byte{10, 0, 0, 1}, []byte{255, 0, 0, 255})),
		"tcp_dst, which needs":   match(exact(any4, flow.FieldTCPDst, 0, 80)),
		"ip_proto of IPv6":       match(flow.Match{}.WithEthType(flow.EthTypeIPv6).WithIPProto(6)),
		"sctp_dst":               match(any4.WithSCTPDst(5)),
		"arp_op over 255":        match(flow.Match{}.WithARPOp(256)),
		"action group":           action(flow.ToGroup(1)),
		"action push-vlan":       action(flow.PushVLAN(0x8100)),
		"action dec-nw-ttl":      action(kind(flow.ActionDecNwTTL, 0)),
		"set-field of ipv6_dst":  action(setTo(flow.FieldIPv6Dst, 1)),
		"set-queue without":      action(kind(flow.ActionSetQueue, 1)),
		"output to port 70000":   action(kind(flow.ActionOutput, 70000)),
		"port description":       request(MultipartRequest{Type: MultipartPortDesc}),
		"an output group":        request(MultipartRequest{Type: MultipartFlow, OutPort: flow.PortAny}),
		"roles":                  func(dst []byte) ([]byte, error) { return V10.AppendRoleRequest(dst, 1, RoleMaster, 1) },
		"asynchronous":           func(dst []byte) ([]byte, error) { return V10.AppendSetAsync(dst, 1, &Async{}) },
		"groups":                 func(dst []byte) ([]byte, error) { return V10.AppendGroupMod(dst, 1, &flow.GroupMod{}) },
		"meters":                 func(dst []byte) ([]byte, error) { return V10.AppendMeterMod(dst, 1, &flow.MeterMod{}) },
		"an experimenter type":   func(dst []byte) ([]byte, error) { return V10.AppendExperimenter(dst, 1, &Experimenter{Type: 1}) },
		"table configuration":    func(dst []byte) ([]byte, error) { return V10.AppendTableMod(dst, 1, &TableMod{}) },
		"queue properties other": func(dst []byte) ([]byte, error) { return V10.AppendQueueGetConfigReply(dst, 1, 1, []Queue{{}}) },
	} {
		refusedEncoding(t, V10, field, encode)
	}
}

// TestWhatOpenFlow13CannotExpress is the same of OpenFlow 1.3.
func TestWhatOpenFlow13CannotExpress(t *testing.T) {
	action := func(a flow.Action) func(dst []byte) ([]byte, error) {
		m := add(flow.Match{}, flow.Output(1), a)
		return func(dst []byte) ([]byte, error) { return V13.AppendFlowMod(dst, 1, &m) }
	}
	for field, encode := range map[string]func(dst []byte) ([]byte, error){
		"field number 45": func(dst []byte) ([]byte, error) {
			return V13.AppendFlowMod(dst, 1, &flow.Mod{Entry: flow.Entry{Match: flow.Match{Set: 1 << 45}}})
		},
		"command 9":       func(dst []byte) ([]byte, error) { return V13.AppendFlowMod(dst, 1, &flow.Mod{Command: 9}) },
		"kind 40":         action(kind(40, 0)),
		"field number 63": action(flow.Action{Kind: flow.ActionSetField, Field: 63}),
		"0x12345":         action(kind(flow.ActionPushVLAN, 0x12345)),
		"TTL 256":         action(kind(flow.ActionSetNwTTL, 256)),
		"13 octets":       action(flow.Action{Kind: flow.ActionExperimenter, Data: "12345"}),
		"band of kind 9": func(dst []byte) ([]byte, error) {
			return V13.AppendMeterMod(dst, 1, &flow.MeterMod{Meter: flow.Meter{Bands: []flow.Band{{Kind: 9}}}})
		},
		"command 2": func(dst []byte) ([]byte, error) {
			return V13.AppendGroupMod(dst, 1, &flow.GroupMod{Command: flow.ModifyStrict})
		},
		"multipart type": func(dst []byte) ([]byte, error) { return V13.AppendMultipartReply(dst, 1, 99, false, nil) },
		"property 9":     func(dst []byte) ([]byte, error) { return V13.AppendTableFeatures(dst, &TableFeatures{Given: 1 << 9}) },
	} {
		refusedEncoding(t, V13, field, encode)
	}
}

// exact asks for a value of a field and nothing more.
func exact(m flow.Match, f flow.Field, octets ...byte) flow.Match {
	m.Put(f, setTo(f, octets...).Value)
	return m
}

func refusedEncoding(t *testing.T, v Version, field string, encode func(dst []byte) ([]byte, error)) {
	t.Helper()
	out, err := encode([]byte("before"))
	var u *UnsupportedError
	if !errors.As(err, &u) || u.Version != v || u.Op == "" || !strings.Contains(u.Field, field) {
		t.Errorf("%s: %v", field, err)
	}
	if string(out) != "before" {
		t.Errorf("%s: the buffer came back as %q", field, out)
	}
}

// TestTooLong: what does not fit 65535 octets is refused as a whole.
func TestTooLong(t *testing.T) {
	long := make([]byte, MaxLen)
	actions := make([]flow.Action, 5000)
	for i := range actions {
		actions[i] = flow.Output(1)
	}
	for _, ver := range versions {
		v := ver.v
		mod := add(flow.Match{}, actions...)
		for what, encode := range map[string]func(dst []byte) ([]byte, error){
			"echo request": func(dst []byte) ([]byte, error) { return v.AppendEchoRequest(dst, 1, long) },
			"echo reply":   func(dst []byte) ([]byte, error) { return v.AppendEchoReply(dst, 1, long[:MaxLen-HeaderLen+1]) },
			"packet-in":    func(dst []byte) ([]byte, error) { return v.AppendPacketIn(dst, 1, &flow.PacketIn{Data: long}) },
			"packet-out": func(dst []byte) ([]byte, error) {
				return v.AppendPacketOut(dst, 1, &flow.PacketOut{BufferID: flow.BufferNone, Data: long})
			},
			"experimenter": func(dst []byte) ([]byte, error) { return v.AppendExperimenter(dst, 1, &Experimenter{Data: long}) },
			"reply":        func(dst []byte) ([]byte, error) { return v.AppendMultipartReply(dst, 1, MultipartDesc, false, long) },
			"features": func(dst []byte) ([]byte, error) {
				return V10.AppendFeaturesReply(dst, 1, &Features{Ports: make([]PortDesc, 1400)})
			},
			"queues": func(dst []byte) ([]byte, error) { return V13.AppendQueueGetConfigReply(dst, 1, 1, make([]Queue, 1400)) },
			"group-mod": func(dst []byte) ([]byte, error) {
				return V13.AppendGroupMod(dst, 1, &flow.GroupMod{Group: flow.Group{Buckets: []flow.Bucket{{Actions: actions}}}})
			},
			"flow-mod": func(dst []byte) ([]byte, error) {
				m := mod
				m.Entry.Apply = append(actions, actions...)
				return v.AppendFlowMod(dst, 1, &m)
			},
			"flow stats": func(dst []byte) ([]byte, error) { return V13.AppendFlowStats(dst, &FlowStats{Entry: mod.Entry}) },
			"group stats": func(dst []byte) ([]byte, error) {
				return V13.AppendGroupStats(dst, &GroupStats{Buckets: make([]Counter, 5000)})
			},
			"table feature": func(dst []byte) ([]byte, error) {
				return V13.AppendTableFeatures(dst, &TableFeatures{Experimenters: []TableExperimenter{{Data: long}}})
			},
		} {
			out, err := encode([]byte("before"))
			var e *TooLongError
			if !errors.As(err, &e) || e.Length <= MaxLen {
				t.Errorf("%s: %v", what, err)
			}
			if string(out) != "before" {
				t.Errorf("%s: the buffer came back with %d octets", what, len(out))
			}
		}
		if out, err := v.AppendEchoRequest(nil, 1, long[:MaxLen-HeaderLen]); err != nil || len(out) != MaxLen {
			t.Errorf("the longest echo: %d octets, %v", len(out), err)
		}
		e := Error{Data: long}
		if out := v.AppendError(nil, 1, &e); len(out) != MaxLen || !bytes.Equal(out[2:4], []byte{0xff, 0xff}) {
			t.Errorf("the longest error: %d octets", len(out))
		}
	}
}

// TestPortNumbers: reserved ports keep their meaning between 16 and 32 bits.
func TestPortNumbers(t *testing.T) {
	for p := flow.PortIn; p != 0; p++ {
		n, ok := port10(p)
		if !ok || n != uint16(p) || portFrom10(n) != p {
			t.Errorf("%s: %#x, %t, %s", p, n, ok, portFrom10(n))
		}
	}
	for _, p := range []flow.Port{0, 1, 0xfeff} {
		if n, ok := port10(p); !ok || portFrom10(n) != p {
			t.Errorf("%s: %#x, %t", p, n, ok)
		}
	}
	for _, p := range []flow.Port{0xff00, 0xfffd, 0x10000, flow.PortMax} {
		if n, ok := port10(p); ok {
			t.Errorf("%s: %#x", p, n)
		}
	}
}
