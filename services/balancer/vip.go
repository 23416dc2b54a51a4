package balancer

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

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
	again     again
	takeover  bool // connections of the shadowed host are reset, once they are idle
	lapse     bool // packets go through to the shadowed host while the controller is away
	sample    int  // packets of a connection or a pair that are copied in each sample; 0: there are none
	gates     map[flow.DPID]gate
	group     uint32 // number of its group, 0 if another VIP has it

	live    int // connections with an entry
	pairs   int // pairs with an entry
	refused uint64
	stuck   map[netip.Addr]stay
	leaving map[connKey]int64 // connections of the shadowed host that are reset until then
}

// again is what becomes of a pair that was idle.
type again uint8

const (
	anew      again = iota // its client gets a member chosen anew
	rebound                // it stays with its member
	indicated              // it stays if an answer has had a binding indication
)

// keeps reports whether a pair that was idle stays with its member; bound is whether it had a
// binding indication.
func (v *vip) keeps(bound bool) bool { return v.again == rebound || v.again == indicated && bound }

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
	retire
)

var wishes = [...]string{"up", "draining", "down", "retiring"}

// drains reports whether a member gets no new connections and keeps those that it has.
func (w wish) drains() bool { return w == drain || w == retire }

// member is one member of a pool.
type member struct {
	vip    *vip
	addr   place
	port   uint16
	weight int
	wish   wish
	tier   int // its priority; the lowest that serves is used
	health health

	retired int64 // when it began to retire; 0: long ago

	conns   map[*conn]struct{}
	live    int // those with an entry
	total   uint64
	current int // of the smooth round robin
}

// key identifies the member in its pool.
func (m *member) key() netip.AddrPort { return netip.AddrPortFrom(m.addr.Addr, m.port) }

// member returns the member with an address and port, nil if there is none.
func (v *vip) member(key netip.AddrPort) *member {
	for _, m := range v.pool {
		if m.key() == key {
			return m
		}
	}
	return nil
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

// memberAt returns the member that serves connections at an address and port.
func (v *vip) memberAt(to netip.AddrPort) *member {
	if m := v.member(to); m != nil || v.at.proto != 0 {
		return m
	}
	return v.member(netip.AddrPortFrom(to.Addr(), 0))
}
