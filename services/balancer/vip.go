package balancer

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// idleMax bounds idle timeouts, in seconds: the way back has twice as long, and
// that must fit into an entry's timeout.
const idleMax = 32_000

// weightMax is the largest weight of a member: that of a bucket, and the largest
// capacity of 3GPP's profiles.
const weightMax = 65_535

// policy is how a member is chosen for a new connection.
type policy uint8

const (
	weighted policy = iota // round robin by weight
	least                  // the fewest connections for its weight
	hashed                 // by the client's address
)

var policies = [...]string{"weighted", "least", "hash"}

func (p policy) String() string { return policies[p] }

// Protocols by name; 0 is any.
var protocols = [...]struct {
	name  string
	proto uint8
}{{"tcp", flow.IPProtoTCP}, {"udp", flow.IPProtoUDP}, {"any", 0}}

func protocolName(proto uint8) string {
	for _, p := range protocols {
		if p.proto == proto {
			return p.name
		}
	}
	return fmt.Sprint(proto)
}

// service is the address, protocol and port of a VIP: with protocol any, port and
// proto are 0.
type service struct {
	host  place
	port  uint16
	proto uint8
}

// vip is one virtual IP. The balancer's mu guards what clients and users may
// change; the rest does not change: SetVip makes a new one.
type vip struct {
	said      *api.Vip // as stored
	name      string
	owner     owner
	at        service
	mac       flow.MAC
	policy    policy
	sticky    time.Duration
	stateless bool
	idle      uint16 // seconds
	check     check
	pool      []*member
	allow     *allowed
	refuse    refusal
	responder *member // with refuseTo
	host      *member // that a shadow stands before; nil: no host has the address
	closed    int64   // since when packets for it are led to members; 0: they are not
	paired    bool    // pairs of client and member have entries, not connections
	rebind    bool    // an idle pair stays with its member
	takeover  bool    // connections of the shadowed host are reset, once they are idle
	lapse     bool    // packets go through to the shadowed host while the controller is away
	gates     map[flow.DPID]gate
	group     uint32 // number of its group, 0 if another VIP has it

	live    int // connections with an entry
	pairs   int // pairs with an entry
	refused uint64
	stuck   map[netip.Addr]stay
	leaving map[connKey]int64 // connections of the shadowed host that are reset until then
}

// stay is a client that stays with a member for a while.
type stay struct {
	m     *member
	until int64
}

// wish is what the user wants a member to do.
type wish uint8

const (
	serve wish = iota
	drain
	rest
)

var wishes = [...]string{"up", "draining", "down"}

// member is one member of a pool.
type member struct {
	vip    *vip
	addr   place
	port   uint16
	weight int
	wish   wish
	tier   int // its priority; the lowest that serves is used
	health health

	conns   map[*conn]struct{}
	live    int // those with an entry
	total   uint64
	current int // of the smooth round robin
}

// key identifies the member in its pool.
func (m *member) key() netip.AddrPort { return netip.AddrPortFrom(m.addr.Addr, m.port) }

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

// member returns the member with an address and port, nil if there is none.
func (v *vip) member(key netip.AddrPort) *member {
	for _, m := range v.pool {
		if m.key() == key {
			return m
		}
	}
	return nil
}

// keep returns the message to store for a VIP: what users give, completed.
func (v *vip) keep() *api.Vip {
	m := &api.Vip{
		Name: v.name, Address: v.at.host.Addr.String(), Protocol: protocolName(v.at.proto), Port: uint32(v.at.port),
		Vlan: uint32(v.at.host.VLAN &^ flow.VLANPresent), Policy: v.policy.String(), Stickiness: uint32(v.sticky / time.Second),
		Stateless: v.stateless, IdleTimeout: uint32(v.idle), Mac: v.mac.String(), Health: v.check.message(),
		Owner: owners[v.owner], Allow: v.allow.message(), Refuse: v.refusalText(), Shadow: v.host != nil,
		Per: perNames[btoi(v.paired)], Again: v.againText(), Takeover: v.takeover, Lapse: v.lapse,
	}
	for _, p := range v.pool {
		m.Pool = append(m.Pool, &api.PoolMember{
			Address: p.addr.Addr.String(), Port: uint32(p.port), Weight: uint32(p.weight), State: wishes[p.wish], Priority: uint32(p.tier),
		})
	}
	return m
}

// number returns the number of a VIP's group, the same in every run.
func number(name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return flow.BalancerGroups | h.Sum32()&0x0fffffff
}

// A VIP takes over the connections of the host that it shadows. Each continues with the
// host until it has been idle, so that no request is cut; then both ends are reset.
const (
	takeoverIdle   = 5                      // seconds without packets
	takeoverTime   = int64(5 * time.Minute) // after it, connections do not continue
	takeoverAnswer = int64(2 * time.Second) // for a client to answer the segment that provokes its sequence number
)

// gate is what is known of the entry of a switch by which a VIP that lapses is in force there.
type gate struct {
	in          session // the connection of the switch in which it was first sent
	since, sent int64   // when it was first sent in that, and last
	before      int64   // when it was sent the time before
}

// table returns the table of the entries that take packets to members.
func (v *vip) table() uint8 {
	if v.lapse {
		return flow.TableProxy
	}
	return flow.TableTranslate
}

// goesOn reports whether a connection of the shadowed host continues with the host. It is
// called with the balancer's mu held.
func (v *vip) goesOn(key connKey, now int64) bool {
	return key.proto == flow.IPProtoTCP && (v.closed == 0 || now-v.closed < takeoverTime) && now >= v.leaving[key]
}

// leaves marks an idle connection of the shadowed host for a reset, and reports whether
// its client has to be provoked to send its sequence number. It is called with the
// balancer's mu held.
func (v *vip) leaves(key connKey, now int64) bool {
	if !v.takeover || v.closed == 0 || key.proto != flow.IPProtoTCP {
		return false
	}
	for k, until := range v.leaving {
		if now >= until {
			delete(v.leaving, k)
		}
	}
	if v.leaving == nil {
		v.leaving = map[connKey]int64{}
	}
	v.leaving[key] = now + takeoverAnswer
	return true
}
