package flow

import "slices"

// Reason says why a packet was sent to the controller (OpenFlow 1.3.5 §7.4.1).
type Reason uint8

// The reasons.
const (
	ReasonNoMatch Reason = iota
	ReasonAction
	ReasonInvalidTTL
)

// PortRole is what discovery knows about the far end of a port.
type PortRole uint8

// The roles. Traffic is taken from, and flooded to, edge ports and the tree of
// links only; a port whose role is not settled yet carries neither. The last
// three are those of hybrid nodes, which have no edge ports.
const (
	RoleUnsettled PortRole = iota // just up; a neighbour may still answer a probe
	RoleEdge                      // no switch behind it: hosts live here
	RoleLink                      // a switch of ours is at the far end
	RoleBlocked                   // taken out of use, for example by anti-flap
	RoleAccess                    // of a hybrid node: a customer's, or nobody's
	RoleInternal                  // of a hybrid node: leads to its own routing
	RoleTunnel                    // of a hybrid node: a tunnel over its own routing
)

// roles are their names.
var roles = [...]string{"unsettled", "edge", "link", "blocked", "access", "internal", "tunnel"}

// String returns the role in lower case.
func (r PortRole) String() string {
	return roles[min(int(r), len(roles)-1)]
}

// ParsePortRole returns the role of a name; false if there is none.
func ParsePortRole(name string) (PortRole, bool) {
	i := slices.Index(roles[:], name)
	return PortRole(max(i, 0)), i >= 0
}

// OfHybrid reports whether only ports of hybrid nodes have the role.
func (r PortRole) OfHybrid() bool { return r >= RoleAccess }

// PacketIn is one packet on its way through the pipeline. Data, and whatever
// points into it, is valid only during the call that receives it. Each stage adds
// what it knows for the stages after it.
type PacketIn struct {
	Switch   DPID
	Time     int64 // nanoseconds since 1970, taken once per batch
	BufferID uint32
	TotalLen uint16
	Reason   Reason
	Table    uint8
	Cookie   Cookie
	Parsed   bool // Key holds all header fields; else only ports and those of Ethernet: packet.Headers reads the rest
	Key      Key  // InPort is where it came in
	Data     []byte

	Role   PortRole // by discovery: the role of the ingress port
	Src    Location // by hosts: where the sender is attached; zero is not known
	Dst    Location // by hosts: where the destination is attached; zero is not known
	DstMAC MAC      // by hosts: the address of the host at Dst

	// By hosts: Unapproved says that a stage holds the sender or the destination
	// and has not approved it, or that there was no room to remember the sender, so
	// that no entry may be made for its packets.
	// HeldBy are the stages that do and have not let this packet pass; nobody
	// writes to the list.
	Unapproved bool
	HeldBy     []string

	// Following is, for a packet out of several, frames that come soon after it,
	// as far as they have been read, so that a stage can fetch what it will need
	// for all of them at once. It says nothing else: they need not reach the
	// stage.
	Following [][]byte

	Trace uint64 // number of the trace that records its stages; 0: not traced
}

// MaxHolds is the most stages that may hold hosts at once.
const MaxHolds = 8

// Pass removes a stage from HeldBy: it has seen the packet and returned Next.
func (p *PacketIn) Pass(stage string) {
	if i := slices.Index(p.HeldBy, stage); i >= 0 {
		p.HeldBy = slices.Concat(p.HeldBy[:i], p.HeldBy[i+1:])
	}
}

// Verdict is a stage's verdict on a packet-in.
type Verdict uint8

// The verdicts.
const (
	Next Verdict = iota // the following stage sees the packet too
	Done                // it is dealt with; later stages do not see it
	Drop                // it is refused; the decision's operations so far still count
	Away                // the rest of its pipeline is in another process; the decision comes later
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	return [...]string{"next", "done", "drop", "away"}[min(v, Away)]
}
