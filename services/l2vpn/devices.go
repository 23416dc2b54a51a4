package l2vpn

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// ip is the payload of circuits that carry IPv4, ARP and IPv6 without the
// customer's Ethernet header (RFC 4447's IP Layer2 Transport). A label says which of them
// a packet is. Frames leave with the addresses of the two customers' devices, as far
// as they are known.
const ip = "ip"

// ip reports whether the circuit has that payload.
func (c *circuit) ip() bool { return c.Payload == ip }

// devices are the customers' devices at the ends of a circuit of payload ip, by
// end: one at each, as in RFC 6575. The last address that is heard at an end counts. What is
// known is stored with the circuit's record.
type devices map[end]*device

// A device is what is known of the customer's device at an end.
type device struct {
	mac   flow.MAC // zero: not known
	moves int
	since time.Time // of the first of them
	until time.Time // until then mac stays, and nothing is learnt; zero: it need not
	quiet time.Time // until then why holds
	why   string    // that there are two; empty if there are not
}

func (d *device) there() bool { return d.mac != flow.MAC{} }
func (d *device) held() bool  { return !d.until.IsZero() }

// of returns the address of the device at an end, or another if it is not known.
func (d devices) of(at end, or flow.MAC) flow.MAC {
	if x := d[at]; x != nil && x.there() {
		return x.mac
	}
	return or
}

// keep returns the devices of those ends that a circuit has; nil if its payload is
// another.
func (d devices) keep(c *circuit) devices {
	if !c.ip() {
		return nil
	}
	now := devices{}
	for _, e := range c.ends {
		if now[e] = d[e]; now[e] == nil {
			now[e] = &device{}
		}
	}
	return now
}

// learn follows that an address is heard at an end. It reports whether entries change
// by it. Of two that are heard in turn, more than flapMoves times in flapTime, the
// last stays for holdTime.
func (d devices) learn(at end, mac flow.MAC, now time.Time) bool {
	x := d[at]
	switch {
	case x == nil || mac.Multicast() || mac == flow.MAC{} || mac == x.mac || x.held():
		return false
	case !x.there():
		x.mac = mac
		return true
	case now.Sub(x.since) > flapTime:
		x.moves, x.since = 0, now
	}
	if x.moves++; x.moves > flapMoves {
		x.why = fmt.Sprintf("end %v has more than one device, %v and %v: a circuit of payload ip serves one; put a router there, or take payload ethernet", at, x.mac, mac)
		x.moves, x.until, x.quiet = 0, now.Add(holdTime), now.Add(holdTime+flapTime)
	}
	x.mac = mac
	return true
}

// pass lets time pass, and reports whether entries, or what is said of the circuit,
// change by it.
func (d devices) pass(now time.Time) (changed bool) {
	for _, x := range d {
		if x.held() && !now.Before(x.until) {
			x.until, changed = time.Time{}, true
		}
		if x.why != "" && !now.Before(x.quiet) {
			x.why, changed = "", true
		}
	}
	return changed
}

// crowded returns why an end has too many devices; empty if none has.
func (d devices) crowded() string {
	var list []string
	for _, x := range d {
		if x.why != "" {
			list = append(list, x.why)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return slices.Min(list)
}

// messages returns the devices that are known, as they are stored.
func (d devices) messages() (list []*api.CircuitDevice) {
	for at, x := range d {
		if x.there() {
			list = append(list, &api.CircuitDevice{End: at.String(), Mac: x.mac.String()})
		}
	}
	slices.SortFunc(list, func(a, b *api.CircuitDevice) int { return cmp.Compare(a.End, b.End) })
	return list
}

// recall takes over what an earlier run has stored.
func (d devices) recall(c *circuit, list []*api.CircuitDevice) {
	for _, m := range list {
		mac, err := flow.ParseMAC(m.Mac)
		at, err2 := parseEnd(m.End)
		if x := d[at]; err == nil && err2 == nil && x != nil && !mac.Multicast() {
			x.mac = mac
		}
	}
}

// hear follows that a frame has come in by the end with a label at a switch, from
// a sender that is not known there. Whom it is for is behind the other end: where that has
// not been heard, that is better than nothing, since Linux takes no TCP from a broadcast
// frame. It reports whether entries change by it.
func (s *status) hear(sw flow.DPID, label uint32, src, dst flow.MAC, now time.Time) (changed bool) {
	for i, e := range s.circuit.ends {
		if e.at.Switch != sw || s.circuit.Members[i].Label != label {
			continue
		}
		far := s.circuit.ends[1-i]
		learnt := s.devices.learn(e, src, now)
		if learnt && !s.devices[far].there() && dst != src {
			s.devices.learn(far, dst, now)
		}
		if learnt {
			s.record, changed = "", true
		}
	}
	return changed
}

// forgetDevices forgets the devices behind a port that is down: another may be plugged
// in. It reports whether any was known.
func (s *status) forgetDevices(at flow.Location) (gone bool) {
	for e, x := range s.devices {
		if e.at == at && x.there() {
			x.mac, gone = flow.MAC{}, true
			s.record = ""
		}
	}
	return gone
}
