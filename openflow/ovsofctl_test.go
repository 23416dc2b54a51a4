package openflow

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
)

// ofctl runs an ovs-ofctl command against a switch that this test plays; SWITCH
// in args is its address. It returns the messages that came, those of the
// handshake and barriers left out, and what ovs-ofctl printed. answer answers every request.
func ofctl(t *testing.T, v Version, answer func(v Version, h Header, msg []byte) []byte, args ...string) (got [][]byte, printed string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(testwait.Limit))
			err = play(c, v, &got, answer)
		}
		done <- err
	}()
	options := []string{"-t", "10", "--no-names", "-O", "OpenFlow13"}
	if v == V10 {
		options = []string{"-t", "10", "--no-names", "-O", "OpenFlow10", "-F", "OpenFlow10"}
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "SWITCH", "tcp:"+l.Addr().String())
	}
	printed = run(t, "ovs-ofctl", append(options, args...)...)
	l.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return got, printed
}

// play is a switch that keeps what it is told.
func play(c net.Conn, v Version, got *[][]byte, answer func(v Version, h Header, msg []byte) []byte) error {
	r := bufio.NewReader(c)
	for {
		head, err := r.Peek(HeaderLen)
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		h, err := ParseHeader(head)
		if err != nil {
			return err
		}
		msg := make([]byte, h.Length)
		if _, err := io.ReadFull(r, msg); err != nil {
			return err
		}
		var out []byte
		switch h.Type {
		case TypeHello:
			if _, err := DecodeHello(msg); err != nil {
				return err
			}
			out = v.AppendHello(nil, h.Xid, v)
		case TypeEchoRequest:
			out, _ = v.AppendEchoReply(nil, h.Xid, msg[HeaderLen:])
		case TypeBarrierRequest:
			out = v.AppendBarrierReply(nil, h.Xid)
		case TypeFeaturesRequest:
			out, err = v.AppendFeaturesReply(nil, h.Xid, &Features{DPID: 0xa1, Tables: 254, Ports: []PortDesc{{No: 1, HWAddr: macA, Name: "eth1"}}})
		case TypeGetConfigRequest:
			out = v.AppendGetConfigReply(nil, h.Xid, FragNormal, 128)
		default:
			*got = append(*got, msg)
			out = answer(v, h, msg)
		}
		if err != nil {
			return err
		}
		if _, err := c.Write(out); err != nil {
			return err
		}
	}
}

// flowFile writes flows for ovs-ofctl add-flows.
func flowFile(t *testing.T, lines []string) string {
	file := filepath.Join(t.TempDir(), "flows")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestReadsOpenVSwitchFlows has Open vSwitch encode flows, decodes them, and
// encodes them again to the same octets.
func TestReadsOpenVSwitchFlows(t *testing.T) {
	for _, ver := range versions {
		flows := ovsFlows
		if ver.v == V10 {
			flows = ovsFlows10
		}
		var lines []string
		for _, f := range flows {
			lines = append(lines, f.text)
		}
		got, _ := ofctl(t, ver.v, plainAnswer, "add-flows", "SWITCH", flowFile(t, lines))
		if len(got) != len(flows) {
			t.Fatalf("OpenFlow %s: %d messages for %d flows", ver.name, len(got), len(flows))
		}
		for i, f := range flows {
			var m flow.Mod
			if err := ver.v.DecodeFlowMod(got[i], &m); err != nil {
				t.Errorf("%s: %v", f.text, err)
				continue
			}
			if err := CheckMatch(&m.Entry.Match); err != nil {
				t.Errorf("%s: %v", f.text, err)
			}
			want := flow.Mod{BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}
			want.Entry.Priority = 32768
			f.want(&want)
			if !same(reflect.ValueOf(m), reflect.ValueOf(want)) {
				t.Errorf("%s:\ngot  %+v\nwant %+v", f.text, m, want)
			}
			h, _ := ParseHeader(got[i])
			again, err := ver.v.AppendFlowMod(nil, h.Xid, &m)
			if err != nil {
				t.Errorf("%s: %v", f.text, err)
			} else if a, b := canonical(ver.v, again), canonical(ver.v, got[i]); !bytes.Equal(a, b) {
				t.Errorf("%s: encoded\n%sinstead of\n%s", f.text, hexLines(a), hexLines(b))
			}
		}
	}
}

// TestOpenVSwitchEncodesTheSame encodes random flow-mods, has Open vSwitch
// write them as text and encode that text, and compares the octets.
func TestOpenVSwitchEncodesTheSame(t *testing.T) {
	for _, ver := range versions {
		r := rand.New(rand.NewPCG(3, uint64(ver.v)))
		var stream []byte
		var sent [][]byte
		for len(sent) < 300 {
			m := add(randomMatch(r, ver.v), flow.Output(flow.Port(1+r.IntN(100))))
			if ver.v == V13 {
				m.Entry.Goto, m.Entry.Meter, m.Entry.Clear = uint8(r.IntN(3)*7), uint32(r.IntN(2)*5), r.IntN(2) == 0
				m.Entry.MetaMask = uint64(r.IntN(2)) * r.Uint64()
				m.Entry.Metadata = r.Uint64() & m.Entry.MetaMask
			}
			m.Entry.Priority = uint16(r.IntN(1 << 16))
			m.Entry.Cookie = flow.Cookie(r.Uint64())
			k := &m.Entry.Match
			if k.Set&(flow.FieldInPhyPort.Bit()|flow.FieldPBBISID.Bit()|flow.FieldIPv6ExtHdr.Bit()) != 0 || k.Key.EthType == flow.EthTypePBB {
				continue // Open vSwitch does not know them
			}
			if k.Set.Has(flow.FieldInPort) && k.Key.InPort >= 0xff00 && k.Key.InPort != flow.PortLocal {
				continue // nor port numbers beyond 16 bits or reserved ports of entry
			}
			if k.Key.ARPOp > 0xff || k.Set.Has(flow.FieldICMPv6Code) && k.Key.ICMPCode != 0 {
				continue // nor ARP operations beyond 8 bits or neighbour discovery with a code
			}
			if k.Masked.Has(flow.FieldIPv6Src) && k.Mask.IPv6Src[0] < 0xa0 || k.Masked.Has(flow.FieldIPv6Dst) && k.Mask.IPv6Dst[0] < 0xa0 {
				continue // its text form of such a mask starts like the length of a prefix
			}
			msg, err := ver.v.AppendFlowMod(nil, 0x5eef, &m)
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, msg)
			stream = append(stream, msg...)
		}
		file := filepath.Join(t.TempDir(), "messages")
		if err := os.WriteFile(file, stream, 0o644); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, line := range splitAt(run(t, "ovs-ofctl", "ofp-parse", file), "OFPT_FLOW_MOD") {
			never(t, "flow-mod", line, "***")
			_, text, _ := strings.Cut(strings.TrimSpace(line), "ADD ")
			lines = append(lines, asFlow.ReplaceAllStringFunc(text, func(s string) string { return asFlowNames[s] }))
		}
		got, _ := ofctl(t, ver.v, plainAnswer, "add-flows", "SWITCH", flowFile(t, lines))
		if len(got) != len(sent) {
			t.Fatalf("%d messages for %d", len(got), len(sent))
		}
		for i := range sent {
			be.PutUint32(got[i][4:], 0x5eef)
			a, b := canonical(ver.v, sent[i]), canonical(ver.v, got[i])
			if !bytes.Equal(a, b) {
				t.Fatalf("OpenFlow %s, %s:\nours\n%stheirs\n%s", ver.name, lines[i], hexLines(a), hexLines(b))
			}
		}
	}
}

// asFlow finds what ofp-parse writes otherwise than add-flows reads it.
var asFlow = regexp.MustCompile(` (table|cookie|idle|hard):|^table:| actions=`)

var asFlowNames = map[string]string{" table:": ",table=", "table:": "table=", " cookie:": ",cookie=", " idle:": ",idle_timeout=", " hard:": ",hard_timeout=", " actions=": ",actions="}

// canonical is a flow-mod without what may differ between equal ones: the
// order of match fields, and in OpenFlow 1.0 how a whole address or the
// priority of an untagged frame is wildcarded.
func canonical(v Version, msg []byte) []byte {
	msg = bytes.Clone(msg)
	if v == V10 {
		w := be.Uint32(msg[8:])
		for _, shift := range []int{wildNwSrc, wildNwDst} {
			if w>>shift&wildNwBits > 32 {
				w = w&^(wildNwBits<<shift) | 32<<shift
			}
		}
		if be.Uint16(msg[26:]) == vlanNone10 {
			w |= wildPCP // a frame without a tag has no priority to look at
		}
		be.PutUint32(msg[8:], w)
		return msg
	}
	fields := msg[flowModLen+4 : flowModLen+int(be.Uint16(msg[flowModLen+2:]))]
	var list [][]byte
	for b := fields; len(b) > 0; b = b[4+int(b[3]):] {
		list = append(list, bytes.Clone(b[:4+int(b[3])]))
	}
	slices.SortFunc(list, bytes.Compare)
	copy(fields, bytes.Join(list, nil))
	return msg
}

// TestReadsOpenVSwitchMessages has Open vSwitch encode every other message
// that ovs-ofctl sends.
func TestReadsOpenVSwitchMessages(t *testing.T) {
	bucket := func(weight uint16, watch flow.Port, actions ...flow.Action) flow.Bucket {
		return flow.Bucket{Weight: weight, WatchPort: watch, WatchGroup: flow.GroupAny, Actions: actions}
	}
	for _, c := range []struct {
		v     Version
		codec string
		args  string
		want  any
	}{
		{V13, "group-mod", "add-group SWITCH group_id=7,type=select,bucket=weight:3,actions=output:1,bucket=weight:4,actions=dec_ttl,output:2",
			flow.GroupMod{Group: flow.Group{Kind: flow.GroupKindSelect, ID: 7, Buckets: []flow.Bucket{
				bucket(3, flow.PortAny, flow.Output(1)), bucket(4, flow.PortAny, flow.Action{Kind: flow.ActionDecNwTTL}, flow.Output(2))}}}},
		{V13, "group-mod", "mod-group SWITCH group_id=8,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_port:2,actions=output:2",
			flow.GroupMod{Command: flow.Modify, Group: flow.Group{Kind: flow.GroupKindFastFailover, ID: 8, Buckets: []flow.Bucket{
				bucket(0, 1, flow.Output(1)), bucket(0, 2, flow.Output(2))}}}},
		{V13, "group-mod", "del-groups SWITCH group_id=8", flow.GroupMod{Command: flow.Delete, Group: flow.Group{ID: 8}}},
		{V13, "meter-mod", "add-meter SWITCH meter=5,kbps,burst,stats,band=type=drop,rate=20000,burst_size=2000",
			flow.MeterMod{Meter: flow.Meter{ID: 5, Flags: MeterFlagKbps | MeterFlagBurst | MeterFlagStats, Bands: []flow.Band{{Kind: flow.MeterDrop, Rate: 20000, BurstSize: 2000}}}}},
		{V13, "meter-mod", "mod-meter SWITCH meter=6,pktps,band=type=dscp_remark,rate=30,prec_level=2",
			flow.MeterMod{Command: flow.Modify, Meter: flow.Meter{ID: 6, Flags: MeterFlagPktps, Bands: []flow.Band{{Kind: flow.MeterDSCPRemark, Rate: 30, PrecLevel: 2}}}}},
		{V13, "meter-mod", "del-meter SWITCH meter=all", flow.MeterMod{Command: flow.Delete, Meter: flow.Meter{ID: flow.MeterAll}}},
		{V13, "packet-out", "packet-out SWITCH in_port=controller,packet=ffffffffffff02000000000a0800,actions=set_field:02:00:00:00:00:0b->eth_dst,output:3",
			flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: []flow.Action{flow.SetEthDst(macB), flow.Output(3)},
				Data: append(append(flow.Broadcast[:], macA[:]...), 8, 0)}},
		{V10, "packet-out", "packet-out SWITCH in_port=2,packet=ffffffffffff02000000000a0800,actions=mod_dl_dst:02:00:00:00:00:0b,enqueue:3:7",
			flow.PacketOut{BufferID: flow.BufferNone, InPort: 2, Actions: []flow.Action{flow.SetEthDst(macB), {Kind: flow.ActionSetQueue, Arg: 7}, {Kind: flow.ActionOutput, Arg: 3}},
				Data: append(append(flow.Broadcast[:], macA[:]...), 8, 0)}},
		{V13, "multipart-request", "dump-flows SWITCH table=3,cookie=0x10/0xf0,out_port=4,tcp", MultipartRequest{Type: MultipartFlow, Table: 3, OutPort: 4, OutGroup: flow.GroupAny,
			Cookie: 0x10, CookieMask: 0xf0, Match: flow.Match{}.WithEthType(flow.EthTypeIPv4).WithIPProto(flow.IPProtoTCP)}},
		{V13, "multipart-request", "dump-aggregate SWITCH", MultipartRequest{Type: MultipartAggregate, Table: flow.TableAll, OutPort: flow.PortAny, OutGroup: flow.GroupAny}},
		{V13, "multipart-request", "dump-ports SWITCH 3", MultipartRequest{Type: MultipartPortStats, Port: 3}},
		{V10, "multipart-request", "dump-ports SWITCH", MultipartRequest{Type: MultipartPortStats, Port: flow.PortAny}},
		{V13, "multipart-request", "queue-stats SWITCH 3 4", MultipartRequest{Type: MultipartQueue, Port: 3, Queue: 4}},
		{V10, "multipart-request", "queue-stats SWITCH ALL 4", MultipartRequest{Type: MultipartQueue, Port: flow.PortAny, Queue: 4}},
		{V13, "multipart-request", "dump-group-stats SWITCH group_id=6", MultipartRequest{Type: MultipartGroup, Group: 6}},
		{V13, "multipart-request", "dump-groups SWITCH", MultipartRequest{Type: MultipartGroupDesc}},
		{V13, "multipart-request", "dump-group-features SWITCH", MultipartRequest{Type: MultipartGroupFeatures}},
		{V13, "multipart-request", "meter-stats SWITCH meter=5", MultipartRequest{Type: MultipartMeter, Meter: 5}},
		{V13, "multipart-request", "dump-meter SWITCH meter=5", MultipartRequest{Type: MultipartMeterConfig, Meter: 5}},
		{V13, "multipart-request", "meter-features SWITCH", MultipartRequest{Type: MultipartMeterFeatures}},
		{V13, "multipart-request", "dump-desc SWITCH", MultipartRequest{Type: MultipartDesc}},
		{V13, "multipart-request", "dump-tables SWITCH", MultipartRequest{Type: MultipartTable}},
		{V13, "multipart-request", "dump-table-features SWITCH", MultipartRequest{Type: MultipartTableFeatures}},
		{V13, "multipart-request", "dump-ports-desc SWITCH", MultipartRequest{Type: MultipartPortDesc}},
		{V13, "queue-get-config-request", "queue-get-config SWITCH 3", flow.Port(3)},
	} {
		t.Run(c.v.String()+" "+c.args, func(t *testing.T) {
			codec := codecNamed(t, c.codec)
			found := false
			got, _ := ofctl(t, c.v, plainAnswer, strings.Fields(c.args)...)
			for _, msg := range got {
				x, err := codec.decode(c.v, msg)
				if err != nil {
					continue // of another kind
				}
				h, _ := ParseHeader(msg)
				if again, err := codec.encode(c.v, nil, h.Xid, x); err != nil || !bytes.Equal(again, msg) {
					t.Errorf("second encoding: %v\n%sinstead of\n%s", err, hexLines(again), hexLines(msg))
				}
				if found = same(reflect.ValueOf(x), reflect.ValueOf(c.want)); found {
					return
				}
				t.Errorf("got  %+v\nwant %+v", x, c.want)
			}
			if !found {
				t.Errorf("not among the %d messages that came: %x", len(got), got)
			}
		})
	}
}

// plainAnswer answers a request with as little as ovs-ofctl is content with.
func plainAnswer(v Version, h Header, msg []byte) []byte {
	var out []byte
	switch h.Type {
	case TypeMultipartRequest:
		var r MultipartRequest
		if v.DecodeMultipartRequest(msg, &r) != nil {
			return nil
		}
		var body []byte
		switch r.Type {
		case MultipartTableFeatures:
			f := fullTable()
			body, _ = v.AppendTableFeatures(nil, &f)
		case MultipartTable:
			body = v.AppendTableStats(nil, &TableStats{Name: "t0"})
		case MultipartPortDesc:
			body, _ = v.AppendPortDesc(nil, &PortDesc{No: 1, HWAddr: macA, Name: "eth1"})
		case MultipartAggregate:
			body = v.AppendAggregate(nil, &Aggregate{})
		case MultipartDesc:
			body = v.AppendDesc(nil, &Desc{})
		case MultipartGroupFeatures:
			body = v.AppendGroupFeatures(nil, &GroupFeatures{})
		case MultipartMeterFeatures:
			body = v.AppendMeterFeatures(nil, &MeterFeatures{})
		}
		out, _ = v.AppendMultipartReply(nil, h.Xid, r.Type, false, body)
	case TypeQueueGetConfigRequest:
		out, _ = v.AppendQueueGetConfigReply(nil, h.Xid, 3, nil)
	}
	return out
}

// TestOpenVSwitchReadsOurStatistics plays a switch whose statistics ovs-ofctl
// asks for and prints.
func TestOpenVSwitchReadsOurStatistics(t *testing.T) {
	for _, ver := range versions {
		v := ver.v
		_, printed := ofctl(t, v, func(v Version, h Header, msg []byte) []byte {
			if h.Type != TypeMultipartRequest || MultipartType(be.Uint16(msg[8:])) != MultipartFlow {
				return plainAnswer(v, h, msg)
			}
			var body []byte
			for i := range 3 {
				s := FlowStats{Entry: add(flow.Match{}.WithInPort(flow.Port(i+1)), flow.Output(9)).Entry, Packets: uint64(10 * i)}
				body, _ = v.AppendFlowStats(body, &s)
			}
			first, _ := v.AppendMultipartReply(nil, h.Xid, MultipartFlow, true, body)
			out, _ := v.AppendMultipartReply(first, h.Xid, MultipartFlow, false, body)
			return out
		}, "dump-flows", "SWITCH")
		if n := strings.Count(printed, fmt.Sprintf("in_port=%d actions=output:9", 3)); n != 2 || strings.Count(printed, "n_packets=20") != 2 {
			t.Errorf("OpenFlow %s: %s", ver.name, printed)
		}
	}
}
