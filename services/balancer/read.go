package balancer

import (
	"fmt"
	"hash/fnv"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// weightMax is the largest weight of a member: that of a bucket, and the largest
// capacity of 3GPP's profiles.
const weightMax = 65_535

// allowMax bounds the clients that a VIP names.
const allowMax = 10_000

// The words of per and again.
var (
	perNames   = [...]string{"connection", "pair"}
	againNames = [...]string{"balance", "bound", "indicated"}
)

// readVip returns the VIP that a message describes, with its pool, or an error
// that names the wrong field and says what it may be.
func readVip(m *api.Vip, cfg *Config) (v *vip, err error) {
	v = &vip{name: m.GetName(), stuck: map[netip.Addr]stay{}, gates: map[flow.DPID]gate{}}
	if err = api.CheckName("name", v.name); err != nil {
		return nil, err
	}
	if v.owner, err = wordOf[owner](owners[:], m.GetOwner()); err != nil {
		return nil, fmt.Errorf("owner %w", err)
	}
	addr, err := netip.ParseAddr(m.GetAddress())
	if addr = addr.Unmap(); err != nil || !usable(addr) {
		return nil, fmt.Errorf("address %q: want an IPv4 or IPv6 address of one host, such as 10.0.0.100 or fd00::100", m.GetAddress())
	}
	if m.GetVlan() > 4094 {
		return nil, fmt.Errorf("vlan %d: want 0 (untagged) to 4094", m.GetVlan())
	}
	v.at.host = object.In(addr, object.VLAN(m.GetVlan()))
	known := false
	for _, p := range protocols {
		if p.name == strings.ToLower(m.GetProtocol()) {
			v.at.proto, known = p.proto, true
		}
	}
	switch {
	case !known:
		return nil, fmt.Errorf("protocol %q: want tcp, udp or any", m.GetProtocol())
	case v.at.proto == 0 && m.GetPort() != 0:
		return nil, fmt.Errorf("port %d: protocol any takes all ports; leave the port out", m.GetPort())
	case v.at.proto != 0 && (m.GetPort() == 0 || m.GetPort() > 65535):
		return nil, fmt.Errorf("port %d: want 1 to 65535", m.GetPort())
	}
	v.at.port = uint16(m.GetPort())
	if v.policy, err = wordOf[policy](policies[:], m.GetPolicy()); err != nil {
		return nil, fmt.Errorf("policy %w", err)
	}
	if m.GetStickiness() > 7*24*3600 {
		return nil, fmt.Errorf("stickiness %d: want at most %d seconds", m.GetStickiness(), 7*24*3600)
	}
	v.sticky, v.stateless = time.Duration(m.GetStickiness())*time.Second, m.GetStateless()
	if v.allow, err = readAllow(m.GetAllow(), v); err != nil {
		return nil, err
	}
	if err = readRefuse(m.GetRefuse(), v); err != nil {
		return nil, err
	}
	if m.GetIdleTimeout() > idleMax {
		return nil, fmt.Errorf("idle_timeout %d: want at most %d seconds", m.GetIdleTimeout(), idleMax)
	}
	if v.idle = uint16(m.GetIdleTimeout()); v.idle == 0 {
		v.idle = uint16(cfg.IdleTimeout / time.Second)
	}
	mac := m.GetMac()
	if m.GetShadow() {
		mac = "" // it has its host's
	}
	if v.mac, err = macOf(mac, v.at.host, cfg); err != nil {
		return nil, err
	}
	if v.check, err = readCheck(m.GetHealth(), v.at); err != nil {
		return nil, fmt.Errorf("health: %w", err)
	}
	if err = v.readPair(m); err != nil {
		return nil, err
	}
	if err = v.readShadow(m); err != nil {
		return nil, err
	}
	switch v.sample = int(min(m.GetSample(), math.MaxInt32)); {
	case v.sample > api.MostSampled:
		return nil, fmt.Errorf("sample %d: want at most %d packets", m.GetSample(), api.MostSampled)
	case v.sample > 0 && (v.at.proto != flow.IPProtoTCP || v.stateless):
		return nil, fmt.Errorf("sample %d: requests are read of TCP, of a VIP that is not stateless", m.GetSample())
	}
	if len(m.GetPool()) > cfg.Members {
		return nil, fmt.Errorf("%d members: want at most %d (balancer.members)", len(m.GetPool()), cfg.Members)
	}
	for _, pm := range m.GetPool() {
		mb, err := readMember(pm, v)
		if err != nil {
			return nil, err
		}
		if v.member(mb.key()) != nil {
			return nil, fmt.Errorf("member %v: is in the pool twice", mb.key())
		}
		v.pool = append(v.pool, mb)
	}
	v.said = v.keep()
	return v, nil
}

// usable reports whether a single host can have an address.
func usable(a netip.Addr) bool {
	return a.IsValid() && a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && !a.IsLinkLocalUnicast() &&
		a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// wordOf returns the value of a word; the empty word stands for the first.
func wordOf[T ~uint8](words []string, word string) (T, error) {
	for i, w := range words {
		if w == strings.ToLower(word) || word == "" {
			return T(i), nil
		}
	}
	return 0, fmt.Errorf("%q: want one of %s", word, strings.Join(words, ", "))
}

// macOf returns the Ethernet address of a VIP: the given one, else one derived
// from its place, the same in every run.
func macOf(text string, at place, cfg *Config) (flow.MAC, error) {
	if text != "" {
		mac, err := flow.ParseMAC(text)
		if err == nil && (mac.Multicast() || mac == flow.MAC{}) {
			err = fmt.Errorf("mac %s: want an address that is no group's", text)
		}
		return mac, err
	}
	h := fnv.New32a()
	b, _ := at.Addr.MarshalBinary()
	h.Write(b)
	h.Write([]byte{byte(at.VLAN >> 8), byte(at.VLAN)})
	mac, n := cfg.prefix(), h.Sum32()
	mac[3], mac[4], mac[5] = byte(n>>16), byte(n>>8), byte(n)
	return mac, nil
}

// readMember returns the member that a message describes.
func readMember(m *api.PoolMember, v *vip) (*member, error) {
	out := &member{vip: v, weight: int(m.GetWeight()), tier: int(m.GetPriority()), conns: map[*conn]struct{}{}}
	addr, err := netip.ParseAddr(m.GetAddress())
	if addr = addr.Unmap(); err != nil || !usable(addr) {
		return nil, fmt.Errorf("member %q: want the IPv4 or IPv6 address of a host", m.GetAddress())
	}
	out.addr = object.In(addr, v.at.host.VLAN)
	switch {
	case addr.Is4() != v.at.host.Addr.Is4():
		return nil, fmt.Errorf("member %v: want an address of the family of %v", addr, v.at.host.Addr)
	case addr == v.at.host.Addr:
		return nil, fmt.Errorf("member %v: is the address of the VIP itself", addr)
	case m.GetPort() > 65535:
		return nil, fmt.Errorf("member %v: port %d: want at most 65535", addr, m.GetPort())
	case v.at.proto == 0 && m.GetPort() != 0:
		return nil, fmt.Errorf("member %v: port %d: with protocol any ports stay as they are; leave it out", addr, m.GetPort())
	case m.GetWeight() > weightMax:
		return nil, fmt.Errorf("member %v: weight %d: want 1 to %d", addr, m.GetWeight(), weightMax)
	case m.GetPriority() > 65535:
		return nil, fmt.Errorf("member %v: priority %d: want at most 65535", addr, m.GetPriority())
	}
	if out.port = uint16(m.GetPort()); out.port == 0 {
		out.port = v.at.port
	}
	if out.weight == 0 {
		out.weight = 1
	}
	if out.wish, err = wordOf[wish](wishes[:], m.GetState()); err != nil {
		return nil, fmt.Errorf("member %v: state %w", addr, err)
	}
	return out, nil
}

// readPair reads what has entries of its own.
func (v *vip) readPair(m *api.Vip) error {
	per, err := wordOf[uint8](perNames[:], m.GetPer())
	if err != nil {
		return fmt.Errorf("per %w", err)
	}
	if v.again, err = wordOf[again](againNames[:], m.GetAgain()); err != nil {
		return fmt.Errorf("again %w", err)
	}
	v.paired = per == 1
	switch {
	case !v.paired && m.GetAgain() != "":
		return fmt.Errorf("again %q: is only for per: pair", m.GetAgain())
	case v.paired && v.at.proto == 0:
		return fmt.Errorf("per pair: needs one protocol and port; the VIP has protocol any")
	case v.paired && v.stateless:
		return fmt.Errorf("per pair: a stateless VIP has no pairs")
	}
	return nil
}

func (v *vip) againText() string {
	if !v.paired {
		return ""
	}
	return againNames[v.again]
}

// readShadow reads whether a host has the address of the VIP.
func (v *vip) readShadow(m *api.Vip) error {
	if v.takeover, v.lapse = m.GetTakeover(), m.GetLapse(); !m.GetShadow() {
		switch {
		case v.takeover:
			return fmt.Errorf("takeover: is of a VIP at the address of a host: set shadow, too")
		case v.lapse:
			return fmt.Errorf("lapse: is of a VIP at the address of a host: set shadow, too")
		}
		return nil
	}
	switch {
	case v.stateless:
		return fmt.Errorf("shadow: a VIP at the address of a host cannot be stateless")
	case v.at.proto == 0:
		return fmt.Errorf("shadow: needs one protocol and port; the VIP has protocol any")
	case v.check.kind == checkICMP:
		return fmt.Errorf("shadow: the host itself would get the answers to checks of kind icmp; want tcp, arp or none")
	}
	v.host = &member{vip: v, addr: v.at.host, port: v.at.port, weight: 1, conns: map[*conn]struct{}{}}
	return nil
}
