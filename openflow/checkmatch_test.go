package openflow

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

func TestCheckMatchAcceptsRandomMatches(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		m := randomMatch(r, V13)
		if err := CheckMatch(&m); err != nil {
			t.Fatalf("%s: %v", m, err)
		}
	}
}

func TestCheckMatchRefuses(t *testing.T) {
	ipv6 := flow.Match{}.WithEthType(flow.EthTypeIPv6)
	for _, c := range []struct {
		m      flow.Match
		field  flow.Field
		code   uint16
		reason string
	}{
		{exact(flow.Match{}, flow.FieldInPhyPort, 0, 0, 0, 1), flow.FieldInPhyPort, BadMatchBadPrereq, "in_port"},
		{exact(flow.Match{}, flow.FieldVLANPCP, 1), flow.FieldVLANPCP, BadMatchBadPrereq, "vlan_vid"},
		{exact(flow.Match{}.WithoutVLAN(), flow.FieldVLANPCP, 1), flow.FieldVLANPCP, BadMatchBadPrereq, "vlan_vid"},
		{exact(flow.Match{}, flow.FieldIPProto, 6), flow.FieldIPProto, BadMatchBadPrereq, "eth_type"},
		{exact(ipv6, flow.FieldIPv4Src, 10), flow.FieldIPv4Src, BadMatchBadPrereq, "0x0800"},
		{exact(any4, flow.FieldTCPDst, 0, 80), flow.FieldTCPDst, BadMatchBadPrereq, "ip_proto=6"},
		{exact(any4.WithIPProto(6), flow.FieldUDPDst, 0, 80), flow.FieldUDPDst, BadMatchBadPrereq, "ip_proto=17"},
		{exact(any4.WithIPProto(6), flow.FieldSCTPSrc, 0, 80), flow.FieldSCTPSrc, BadMatchBadPrereq, "ip_proto=132"},
		{exact(ipv6.WithIPProto(1), flow.FieldICMPv4Type, 8), flow.FieldICMPv4Type, BadMatchBadPrereq, "0x0800"},
		{exact(any4.WithIPProto(58), flow.FieldICMPv6Type, 8), flow.FieldICMPv6Type, BadMatchBadPrereq, "0x86dd"},
		{exact(any4, flow.FieldARPOp, 0, 1), flow.FieldARPOp, BadMatchBadPrereq, "0x0806"},
		{exact(any4, flow.FieldIPv6Dst, 1), flow.FieldIPv6Dst, BadMatchBadPrereq, "0x86dd"},
		{exact(flow.Match{}.WithICMPv6Type(128), flow.FieldNDTarget, 1), flow.FieldNDTarget, BadMatchBadPrereq, "135 or 136"},
		{exact(flow.Match{}.WithICMPv6Type(136), flow.FieldNDSLL, 1), flow.FieldNDSLL, BadMatchBadPrereq, "135"},
		{exact(flow.Match{}.WithICMPv6Type(135), flow.FieldNDTLL, 1), flow.FieldNDTLL, BadMatchBadPrereq, "136"},
		{exact(any4, flow.FieldMPLSLabel, 0, 0, 0, 1), flow.FieldMPLSLabel, BadMatchBadPrereq, "0x8847"},
		{exact(any4, flow.FieldPBBISID, 0, 0, 1), flow.FieldPBBISID, BadMatchBadPrereq, "0x88e7"},
		{masked(flow.Match{}, flow.FieldEthType, []byte{8, 0}, []byte{0xff, 0}), flow.FieldEthType, BadMatchBadMask, "masked"},
		{masked(any4, flow.FieldIPProto, []byte{6}, []byte{0x0f}), flow.FieldIPProto, BadMatchBadMask, "masked"},
		{exact(any4, flow.FieldIPDSCP, 64), flow.FieldIPDSCP, BadMatchBadValue, "6 bits"},
		{exact(any4, flow.FieldIPECN, 4), flow.FieldIPECN, BadMatchBadValue, "2 bits"},
		{exact(flow.Match{}, flow.FieldVLAN, 0x20, 1), flow.FieldVLAN, BadMatchBadValue, "13 bits"},
		{exact(flow.Match{}.WithVLAN(1), flow.FieldVLANPCP, 8), flow.FieldVLANPCP, BadMatchBadValue, "3 bits"},
		{exact(ipv6, flow.FieldIPv6FLabel, 0, 0x10, 0, 0), flow.FieldIPv6FLabel, BadMatchBadValue, "20 bits"},
		{exact(ipv6, flow.FieldIPv6ExtHdr, 2, 0), flow.FieldIPv6ExtHdr, BadMatchBadValue, "9 bits"},
		{exact(flow.Match{}.WithEthType(flow.EthTypeMPLS), flow.FieldMPLSBOS, 2), flow.FieldMPLSBOS, BadMatchBadValue, "1 bit"},
		{flow.Match{Set: 1 << 50}, 50, BadMatchBadField, "no such"},
	} {
		err := CheckMatch(&c.m)
		var e *MatchError
		if !errors.As(err, &e) || e.Field != c.field || e.Code != c.code || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("%s: %v (code %+v)", c.m, err, e)
			continue
		}
		if a := Answer(err, V13.AppendBarrierRequest(nil, 3)); a.Type != ErrBadMatch || a.Code != c.code || a.Xid != 3 {
			t.Errorf("answer %+v", a)
		}
	}
}
