package qos

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The flags of a meter (OpenFlow 1.3.5 §7.3.4.4, OFPMF_*).
const (
	meterKbps  = 1
	meterPktps = 2
	meterBurst = 4
	meterStats = 8
)

// policy is one parsed and checked policy.
type policy struct {
	said  *api.QosPolicy // as stored and listed; read-only
	match []flow.Match   // what it asks of packets but for host, switch and port: one of these holds
	host  hostName       // whose packets; the zero value: anybody's
	sw    flow.DPID      // where sited
	port  flow.Port      // 0: all
	sited bool           // on sw only
}

// hostName names a host by one of its addresses.
type hostName struct {
	mac flow.MAC
	ip  netip.Addr // valid: by this
}

func (h hostName) given() bool { return h != hostName{} }

// readPolicy reads and checks a policy. It returns one form of what the policy
// says, so that equal policies are equal messages; it keeps the meter.
func readPolicy(m *api.QosPolicy) (*policy, error) {
	m = proto.CloneOf(m)
	p := &policy{said: m}
	for _, read := range []func(*api.QosPolicy) error{p.readMatch, p.readPlace, p.readActions} {
		if err := read(m); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// readMatch reads the fields and the class.
func (p *policy) readMatch(m *api.QosPolicy) error {
	match, err := flow.ParseMatch(m.Match)
	if err != nil {
		return err
	}
	match.Normalize()
	if err := match.Check(); err != nil {
		return err
	}
	for _, f := range []flow.Field{flow.FieldInPort, flow.FieldInPhyPort} {
		if match.Set.Has(f) {
			return fmt.Errorf("match %v: say it by dpid and port", f)
		}
	}
	if match.Set.Has(flow.FieldMetadata) {
		return fmt.Errorf("match metadata: it belongs to the tables of the switch; leave it out")
	}
	m.Match = match.Text()
	p.match = []flow.Match{match}
	if m.Class == nil {
		return nil
	}
	classes, err := readClass(m.Class)
	if err != nil {
		return fmt.Errorf("class: %w", err)
	}
	p.match = nil
	for i := range classes {
		if both, ok := intersect(&match, &classes[i]); ok {
			p.match = append(p.match, both)
		}
	}
	if len(p.match) == 0 {
		return fmt.Errorf("class: no packet meets it together with match %v", match)
	}
	return nil
}

// readClass returns the matches of a class for IPv4 and for IPv6.
func readClass(c *api.QosClass) ([]flow.Match, error) {
	if c.Dscp == nil && c.Protocol == "" {
		return nil, fmt.Errorf("want dscp or protocol")
	}
	if c.GetDscp() > 63 {
		return nil, fmt.Errorf("dscp %d: want 0 to 63", c.GetDscp())
	}
	var list []flow.Match
	for _, eth := range []uint16{flow.EthTypeIPv4, flow.EthTypeIPv6} {
		m := flow.Match{}.WithEthType(eth)
		if c.Dscp != nil {
			m = m.WithIPDSCP(uint8(c.GetDscp()))
		}
		proto, err := protocolOf(c.Protocol, eth)
		if err != nil {
			return nil, err
		}
		if c.Protocol != "" {
			m = m.WithIPProto(proto)
		}
		for _, port := range []struct {
			key           string
			number        uint32
			tcp, udp, sct func(flow.Match, uint16) flow.Match
		}{
			{"src_port", c.SrcPort, flow.Match.WithTCPSrc, flow.Match.WithUDPSrc, flow.Match.WithSCTPSrc},
			{"dst_port", c.DstPort, flow.Match.WithTCPDst, flow.Match.WithUDPDst, flow.Match.WithSCTPDst},
		} {
			switch {
			case port.number == 0:
			case port.number > 65535:
				return nil, fmt.Errorf("%s %d: want 1 to 65535", port.key, port.number)
			case proto == flow.IPProtoTCP:
				m = port.tcp(m, uint16(port.number))
			case proto == flow.IPProtoUDP:
				m = port.udp(m, uint16(port.number))
			case proto == flow.IPProtoSCTP:
				m = port.sct(m, uint16(port.number))
			default:
				return nil, fmt.Errorf("%s %d: needs protocol tcp, udp or sctp", port.key, port.number)
			}
		}
		list = append(list, m)
	}
	return list, nil
}

// protocolOf returns the number of a protocol over IPv4 or IPv6.
func protocolOf(name string, eth uint16) (uint8, error) {
	switch strings.ToLower(name) {
	case "":
		return 0, nil
	case "tcp":
		return flow.IPProtoTCP, nil
	case "udp":
		return flow.IPProtoUDP, nil
	case "sctp":
		return flow.IPProtoSCTP, nil
	case "icmp":
		if eth == flow.EthTypeIPv6 {
			return flow.IPProtoICMPv6, nil
		}
		return flow.IPProtoICMP, nil
	}
	n, err := strconv.ParseUint(name, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("protocol %q: want tcp, udp, sctp, icmp or a number from 0 to 255", name)
	}
	return uint8(n), nil
}

// readPlace reads host, switch and port.
func (p *policy) readPlace(m *api.QosPolicy) error {
	if m.Host != "" {
		if ip, err := netip.ParseAddr(m.Host); err == nil {
			p.host.ip = ip.Unmap().WithZone("")
			m.Host = p.host.ip.String()
		} else if mac, err := flow.ParseMAC(strings.ToLower(m.Host)); err == nil && !mac.Multicast() && mac != (flow.MAC{}) {
			p.host.mac = mac
			m.Host = mac.String()
		} else {
			return fmt.Errorf("host %q: want the Ethernet, IPv4 or IPv6 address of a host", m.Host)
		}
		if m.Port != 0 {
			return fmt.Errorf("port %d: a policy is for a host or for a port; leave one out", m.Port)
		}
	} else if m.ToHost {
		return fmt.Errorf("to_host: needs host")
	}
	if m.Dpid != "" {
		sw, err := flow.ParseDPID(m.Dpid)
		if err != nil {
			return err
		}
		p.sw, p.sited, m.Dpid = sw, true, sw.String()
	}
	if m.Port != 0 {
		p.port = flow.Port(m.Port)
		if !p.sited {
			return fmt.Errorf("port %d: needs dpid, its switch", m.Port)
		}
		if !p.port.Physical() && p.port != flow.PortLocal {
			return fmt.Errorf("port %d: want 1 to %d", m.Port, uint32(flow.PortMax))
		}
	}
	return nil
}

// readActions reads limit, mark and queue.
func (p *policy) readActions(m *api.QosPolicy) error {
	if m.Limit == nil && m.MarkDscp == nil && m.Queue == nil {
		return fmt.Errorf("does nothing: want a limit, mark_dscp or queue")
	}
	if l := m.Limit; l != nil {
		if (l.RateKbps == 0) == (l.RatePps == 0) {
			return fmt.Errorf("limit: want rate_kbps or rate_pps, one of them")
		}
		if l.Remark > 2 {
			return fmt.Errorf("limit: remark %d: want 0 to 2, by how much the drop precedence (RFC 2597) grows", l.Remark)
		}
	}
	if m.GetMarkDscp() > 63 {
		return fmt.Errorf("mark_dscp %d: want 0 to 63", m.GetMarkDscp())
	}
	if q := m.GetQueue(); q > queueMax {
		return fmt.Errorf("queue %d: want 0 to %d", q, queueMax)
	}
	if m.MarkDscp != nil && len(onlyIP(p.match)) == 0 {
		return fmt.Errorf("mark_dscp: the policy meets no IP packets")
	}
	return nil
}

// meter returns the meter of a policy with a limit.
func (p *policy) meter() flow.Meter {
	l := p.said.Limit
	m := flow.Meter{ID: p.said.Meter, Flags: meterKbps | meterStats}
	b := flow.Band{Kind: flow.MeterDrop, Rate: l.RateKbps, BurstSize: l.Burst}
	if l.RatePps != 0 {
		m.Flags, b.Rate = meterPktps|meterStats, l.RatePps
	}
	if l.Burst != 0 {
		m.Flags |= meterBurst
	}
	if l.Remark != 0 {
		b.Kind, b.PrecLevel = flow.MeterDSCPRemark, uint8(l.Remark)
	}
	m.Bands = []flow.Band{b}
	return m
}

// before orders policies by precedence.
func before(a, b *policy) int {
	return cmp.Or(cmp.Compare(a.said.Order, b.said.Order), cmp.Compare(a.said.Name, b.said.Name))
}
