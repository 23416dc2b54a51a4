package discovery

import (
	"sync/atomic"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A datapath is a switch.
type datapath struct {
	id        flow.DPID
	connected bool
	since     int64 // of the connection
	returned  int64 // when it last connected after it had been away
	trapped   int64 // when the switch confirmed the LLDP trap; 0: not yet
	doubt     int64 // 0, or until when it may have gone with the southbound
	ports     []*port
	low       []*port // by number, those below lowPorts
	high      map[flow.Port]*port
	hybrid    *flow.Hybrid // nil: it is not of a hybrid node
	customers map[flow.Port]customer
	checkAt   int64 // when to check the links that leave it
	settle    int64 // when to check the roles of its ports; math.MaxInt64: not by time
	view      *view
	echo      echo
	answered  int64       // when the last echo that it has answered was asked for
	flight    atomic.Bool // probes of the switch are being sent
	schedule
}

// A port is a port of a switch. Its record stays while it is down, so that a
// port cannot shed its past by going down for a moment.
type port struct {
	at       flow.Location
	dp       *datapath
	up       bool
	removed  bool
	changed  int64 // when it last went up or down
	role     flow.PortRole
	edge     bool          // it has settled as an edge port
	hosts    int64         // since when it is one, ignoring short downs; 0 if it is none
	was      flow.Location // the far end that it had as a link
	judged   bool          // that link was no longer on trial
	silent   int64         // since when that far end is silent, or expected
	proved   bool          // a probe of a link of the port has arrived since its switch connected
	unproved bool          // that far end is silent, and none of it had
	until    int64         // the port waits for it until then, at most
	presumed int64         // a link of an earlier run until then, its far end not connected yet
	saved    bool          // that hosts are there is saved
	rival    flow.Location // whose probes were refused because of hosts
	rivalAt  int64
	blocked  int64 // out of use until then: two switches, or its own, are heard on it
	out, in  *link
	trial    *trial // of the link that leaves it
	tried    *trial // of the link that ends at it
	newest   int64  // time of its newest probe that has arrived
	speed    uint32 // kilobits per second
	mac      flow.MAC
	view     *portView
	place    *api.Location
	again    int64 // when time alone may change its role; 0: never
	shown    bool  // its role was published, and not since that it is gone
	refusing refusing
	prober
}

// maxPorts bounds the handled ports of one switch.
const maxPorts = 16384

// port returns a port by its number, nil if there is none.
func (dp *datapath) port(n flow.Port) *port {
	if n < lowPorts {
		if int(n) < len(dp.low) {
			return dp.low[n]
		}
		return nil
	}
	return dp.high[n]
}

// put stores a port under its number; nil removes it.
func (dp *datapath) put(n flow.Port, p *port) {
	switch {
	case n >= lowPorts && p == nil:
		delete(dp.high, n)
	case n >= lowPorts:
		dp.high[n] = p
	default:
		for len(dp.low) <= int(n) {
			dp.low = append(dp.low, nil)
		}
		dp.low[n] = p
	}
}

// silenceCountsFrom returns the time from which missing probes of a switch's
// neighbours count: when the switch confirmed the LLDP trap, or should have.
func (dp *datapath) silenceCountsFrom() int64 {
	if dp.trapped == 0 {
		return dp.since + trapGrace
	}
	return dp.trapped
}

// listedRole returns the role that a hybrid node, or a circuit, gives a port, or RoleUnsettled if
// none does.
func (p *port) listedRole() flow.PortRole {
	switch {
	case p.dp.hybrid != nil:
		return p.dp.hybrid.Role(p.at.Port)
	case p.isCustomers():
		return flow.RoleEdge
	}
	return flow.RoleUnsettled
}

// isProbed reports whether probes are sent out of a port. They are not if the port
// cannot have a link, or is a customer's of circuits who does not want them.
func (p *port) isProbed() bool {
	switch p.listedRole() {
	case flow.RoleInternal, flow.RoleTunnel:
		return false
	case flow.RoleAccess, flow.RoleEdge: // who has VLANs of a node's access port has all that is there
		return !p.dp.customers[p.at.Port].quiet()
	}
	return true
}

// isUp reports whether a port is up, on a switch that is connected.
func (p *port) isUp() bool { return p.up && p.dp.connected }

// neighbour returns the port at the far end, as heard in either direction, nil
// if there is none. A cable has two ends, so there is at most one.
func (p *port) neighbour() *port {
	switch {
	case p.out != nil:
		return p.out.dst
	case p.in != nil:
		return p.in.src
	}
	return nil
}

// onTrial reports whether a link of a port waits, or is held.
func (p *port) onTrial() (waits, isHeld bool) {
	for _, tr := range []*trial{p.trial, p.tried} {
		if tr != nil && !tr.onProbation() {
			waits, isHeld = true, isHeld || tr.held
		}
	}
	return waits, isHeld
}

// location returns the port's place in the form of messages, which share it.
func (p *port) location() *api.Location {
	if p.place == nil {
		p.place = api.NewLocation(p.at)
	}
	return p.place
}

func (p *port) message() *api.PortRole {
	return &api.PortRole{At: p.location(), Role: p.role.String(), Refused: p.view.refused.Load()}
}

// heldTrial returns the trial of a held link at the port.
func (p *port) heldTrial() *trial {
	if p.trial != nil && p.trial.held {
		return p.trial
	}
	return p.tried
}

// macOf returns the Ethernet address of a port, zero if it has none.
func macOf(msg *api.Port) flow.MAC {
	mac, _ := flow.ParseMAC(msg.GetMac())
	return mac
}

// delay returns the time that a probe took without the control channels.
func delay(took int64, from, to *port) int64 {
	return max(0, took-(from.dp.echo.least+to.dp.echo.least)/2)
}

// An echo is the shortest recent round trip to a switch.
type echo struct {
	least int64 // nanoseconds; 0 if not measured
	n     int
	at    int64
}
