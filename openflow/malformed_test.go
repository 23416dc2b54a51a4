package openflow

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// malformedMessage is a message of the kind that has brought controllers down;
// at is where the length lies that is zero, or wrong in another way.
type malformedMessage struct {
	codec string
	at    int
	msg   []byte
}

// spoil sets a 16-bit length in a message that was right.
func spoil(codec string, at int, length uint16, msg []byte, err error) malformedMessage {
	if err != nil {
		panic(err)
	}
	be.PutUint16(msg[at:], length)
	return malformedMessage{codec, at, msg}
}

func spoilReply(codec string, t MultipartType, at int, length uint16, body []byte, err error) malformedMessage {
	if err != nil {
		panic(err)
	}
	msg, err := V13.AppendMultipartReply(nil, 1, t, true, body)
	return spoil(codec, at, length, msg, err)
}

// malformedMessages is the messages by the advisory that reports them.
func malformedMessages() map[string]malformedMessage {
	hello, _ := hex.DecodeString("04000010000000130001000000000010")
	mod := add(flow.Match{}.WithInPort(1), flow.Output(2))
	stats := FlowStats{Entry: mod.Entry}
	group := flow.Group{ID: 1, Buckets: []flow.Bucket{{Actions: []flow.Action{flow.Output(1)}}}}
	queues := []Queue{{Port: 1, ID: 1, MinRate: 10, MaxRate: QueueRateNone}}
	modMsg := func() ([]byte, error) { return V13.AppendFlowMod(nil, 1, &mod) }
	statsBody := func() ([]byte, error) { return V13.AppendFlowStats(nil, &stats) }
	groupBody := func() ([]byte, error) { return V13.AppendGroupDesc(nil, &group) }
	queueMsg := func() ([]byte, error) { return V13.AppendQueueGetConfigReply(nil, 1, 1, queues) }
	table := fullTable()
	list := map[string]malformedMessage{
		"CVE-2024-34489": {"hello", 10, hello},
	}
	const match = 16 // a match on the port of entry
	b, err := statsBody()
	list["CVE-2024-34487"] = spoilReply("flow-stats", MultipartFlow, multipartLen+flowStatsLen+match+2, 0, b, err)
	b, err = groupBody()
	list["CVE-2024-34483"] = spoilReply("group-desc", MultipartGroupDesc, multipartLen+groupDescLen, 0, b, err)
	b, err = groupBody()
	list["CVE-2024-34484"] = spoilReply("group-desc", MultipartGroupDesc, multipartLen+groupDescLen+bucketLen+2, 0, b, err)
	b, err = queueMsg()
	list["CVE-2024-34486"] = spoil("queue-get-config-reply", 16+queueLen+2, 0, b, err)
	b, err = queueMsg()
	list["CVE-2020-35141"] = spoil("queue-get-config-reply", 16+8, 0, b, err)
	b, err = queueMsg()
	list["CVE-2017-9214"] = spoil("queue-get-config-reply", 16+8, 40, b, err)
	b, err = statsBody()
	list["CVE-2024-34488"] = spoilReply("flow-stats", MultipartFlow, multipartLen, 0, b, err)
	b, err = V13.AppendTableFeatures(nil, &table)
	list["ryu-196"] = spoilReply("table-features", MultipartTableFeatures, multipartLen+tableFeaturesLen+2, 0, b, err)
	b, err = modMsg()
	list["ryu-188"] = spoil("flow-mod", flowModLen+match+2, 0, b, err)
	b, err = modMsg()
	list["ryu-189"] = spoil("flow-mod", flowModLen+match+8+2, 0, b, err)
	b, err = modMsg()
	list["CVE-2024-28732"] = spoil("flow-mod", flowModLen+2, 0, b, err)
	return list
}

// refused checks that a message is refused, where its fault lies, and without
// being changed.
func refused(t *testing.T, advisory string) {
	t.Helper()
	m, ok := malformedMessages()[advisory]
	if !ok {
		t.Fatalf("no message for %s", advisory)
	}
	c := codecNamed(t, m.codec)
	before := bytes.Clone(m.msg)
	_, err := c.decode(V13, m.msg)
	var e *MalformedError
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want a *MalformedError", err)
	}
	if e.Offset < m.at-2 || e.Offset > m.at+2 || e.Reason == "" {
		t.Errorf("%v, want it at octet %d", e, m.at)
	}
	if !bytes.Equal(before, m.msg) {
		t.Error("the message was changed")
	}
}

func TestCVE_2024_34489_HelloElementLengthZero(t *testing.T)          { refused(t, "CVE-2024-34489") }
func TestCVE_2024_34487_FlowStatsInstructionLengthZero(t *testing.T)  { refused(t, "CVE-2024-34487") }
func TestCVE_2024_34483_GroupDescBucketLengthZero(t *testing.T)       { refused(t, "CVE-2024-34483") }
func TestCVE_2024_34484_BucketActionLengthZero(t *testing.T)          { refused(t, "CVE-2024-34484") }
func TestCVE_2024_34486_PacketQueuePropertyLengthZero(t *testing.T)   { refused(t, "CVE-2024-34486") }
func TestCVE_2024_34488_MultipartReplyElementLengthZero(t *testing.T) { refused(t, "CVE-2024-34488") }
func TestRyu196_TableFeaturesPropertyLengthZero(t *testing.T)         { refused(t, "ryu-196") }
func TestRyu188_FlowModInstructionLengthZero(t *testing.T)            { refused(t, "ryu-188") }
func TestRyu189_InstructionActionsLengthZero(t *testing.T)            { refused(t, "ryu-189") }
func TestCVE_2024_28732_MatchLengthZero(t *testing.T)                 { refused(t, "CVE-2024-28732") }
func TestCVE_2020_35141_QueueGetConfigReplyLengthZero(t *testing.T)   { refused(t, "CVE-2020-35141") }
func TestCVE_2017_9214_QueueLongerThanItsReply(t *testing.T)          { refused(t, "CVE-2017-9214") }

// TestPortsOfTwoProtocols: a match has the ports, or the ICMP type and code, of
// one protocol only; the last one given would stand for all.
func TestPortsOfTwoProtocols(t *testing.T) {
	for _, fields := range [][2]flow.Field{
		{flow.FieldTCPSrc, flow.FieldSCTPSrc}, {flow.FieldUDPDst, flow.FieldTCPDst},
		{flow.FieldICMPv4Type, flow.FieldICMPv6Type}, {flow.FieldICMPv4Code, flow.FieldICMPv6Code},
	} {
		mod := add(flow.Match{Set: fields[0].Bit() | fields[1].Bit()})
		msg, err := V13.AppendFlowMod(nil, 1, &mod)
		if err != nil {
			t.Fatal(err)
		}
		var m *MalformedError
		if err := V13.DecodeFlowMod(msg, new(flow.Mod)); !errors.As(err, &m) || m.answer != badMatchPrereq {
			t.Errorf("%v: %v, want a *MalformedError", fields, err)
		}
	}
}

// TestCVE_2020_35139_BundleControlLengthZero: bundles are experimenter
// messages in OpenFlow 1.3, whose body nobody here walks.
func TestCVE_2020_35139_BundleControlLengthZero(t *testing.T) {
	const onf, bundleControl = 0x4f4e4600, 2300
	msg, err := V13.AppendExperimenter(nil, 1, &Experimenter{ID: onf, Type: bundleControl, Data: make([]byte, 16)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := V13.DecodeExperimenter(msg)
	if err != nil || e.ID != onf || e.Type != bundleControl || len(e.Data) != 16 {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestCVE_2014_2304_MalformedFeaturesReply cuts features replies short
// everywhere: none but those that end with a whole port may pass.
func TestCVE_2014_2304_MalformedFeaturesReply(t *testing.T) {
	for _, ver := range versions {
		msg, err := ver.v.AppendFeaturesReply(nil, 1, &Features{DPID: 1, Ports: []PortDesc{{No: 1}, {No: 2}}})
		if err != nil {
			t.Fatal(err)
		}
		for n := range msg {
			_, err := ver.v.DecodeFeaturesReply(msg[:n])
			whole := n >= featuresLen && (n-featuresLen)%portLen10 == 0
			if (err == nil) != whole {
				t.Errorf("OpenFlow %s, %d octets: %v", ver.name, n, err)
			}
		}
	}
}

// TestCVE_2015_7516_PacketInAnyEthertype: the packet is passed on as it is,
// whatever its ethertype says (0x8870, jumbo frames, brought a controller down).
func TestCVE_2015_7516_PacketInAnyEthertype(t *testing.T) {
	for _, ver := range versions {
		for ethertype := range 1 << 16 {
			in := flow.PacketIn{Data: append(make([]byte, 12), byte(ethertype>>8), byte(ethertype))}
			msg, err := ver.v.AppendPacketIn(nil, 1, &in)
			if err != nil {
				t.Fatal(err)
			}
			var got flow.PacketIn
			if err := ver.v.DecodePacketIn(msg, &got); err != nil || !bytes.Equal(got.Data, in.Data) {
				t.Fatalf("ethertype %#04x: %x, %v", ethertype, got.Data, err)
			}
		}
	}
}

// TestCVE_2017_13763_DeclaredLengthTakesNoMemory: a header that announces 64
// KiB makes nobody reserve them.
func TestCVE_2017_13763_DeclaredLengthTakesNoMemory(t *testing.T) {
	head := []byte{4, 10, 0xff, 0xff, 0, 0, 0, 1, 2, 3}
	if n := testing.AllocsPerRun(100, func() {
		if msg, rest, err := Next(head); msg != nil || len(rest) != len(head) || err != nil {
			t.Fatal(msg, rest, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestNextStopsAtShortLength: a length below that of the header would never end.
func TestNextStopsAtShortLength(t *testing.T) {
	for n := range byte(HeaderLen) {
		if msg, _, err := Next([]byte{4, 0, 0, n, 0, 0, 0, 1}); err == nil || msg != nil {
			t.Errorf("length %d: %v, %v", n, msg, err)
		}
		if _, err := ParseHeader([]byte{4, 0, 0, n, 0, 0, 0, 1}); err == nil {
			t.Errorf("length %d: no error", n)
		}
	}
}
