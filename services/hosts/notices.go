package hosts

import (
	"net/netip"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// notices holds the addresses whose Ethernet address has changed. Other hosts
// in the segment get the new one: by a gratuitous ARP (RFC 5227 §2.3) or an
// unsolicited neighbour advertisement (RFC 4861 §7.2.6). Otherwise they would
// use the old one until it expires. table.mu guards it.
type notices struct {
	places    *places // the table's, as questions
	questions *questions
	due       map[formerKey]*notice
	tokens    float64 // notices that may be sent now
	filled    int64   // when tokens was last computed
	dropped   uint64
	sent      uint64
}

// notice is one address.
type notice struct {
	host *host
	next int64 // not before this time
	left int   // how often it is still to be sent; 0: it only keeps the interval
}

const (
	noticeTimes     = 2    // how often each is sent
	noticesMost     = 4096 // addresses that wait
	noticesInSecond = 20   // in all
)

// portsAtOnce keeps a packet-out below the length of an OpenFlow message.
const portsAtOnce = 1000

// noticeInterval is the least time between two notices for one address.
const noticeInterval = int64(time.Second)

// queue queues notices to other hosts that an address now has another
// Ethernet address.
func (n *notices) queue(now int64, h *host, ip netip.Addr) {
	key := formerKey{ip, h.id.vlan()}
	one := n.due[key]
	if one == nil {
		if len(n.due) >= noticesMost {
			n.dropped++
			return
		}
		one = &notice{next: now}
		n.due[key] = one
	}
	one.host, one.left = h, noticeTimes
}

// send appends the notices that are due to d.
func (n *notices) send(now int64, d *flow.Decision) {
	if len(n.due) == 0 {
		return
	}
	n.tokens = min(noticesInSecond, n.tokens+float64(now-n.filled)/1e9*noticesInSecond)
	n.filled = now
	for key, one := range n.due {
		switch {
		case one.next > now:
		case one.left == 0, one.host.gone.Load(), one.host.has(key.ip) == nil:
			delete(n.due, key)
		case n.tokens < 1:
			return
		default:
			n.tokens--
			n.sent++
			one.left--
			one.next = now + noticeInterval
			n.notifyAll(one.host, key.ip, d)
		}
	}
}

// notifyAll appends to d the packet-outs that announce a host's address at all
// ports with other hosts.
func (n *notices) notifyAll(h *host, ip netip.Addr, d *flow.Decision) {
	frame := gratuitous(h, ip)
	if frame == nil {
		return
	}
	own := h.at.Load().Location
	var ports []flow.Port
	for sw, a := range n.places.switches {
		ports = ports[:0]
		for port, p := range a.places {
			if len(p.hosts) > 0 && p.isReachable() && p.Location != own {
				ports = append(ports, port)
			}
		}
		for some := range slices.Chunk(ports, portsAtOnce) {
			if actions := n.questions.tagging.Outputs(nil, sw, keyVLAN(h.id), some); len(actions) > 0 {
				d.PacketOut(sw, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Actions(actions...), Data: frame})
			}
		}
	}
}

// gratuitous returns the frame that announces the Ethernet address of an IP
// address, as the host itself would: nil if it has not said yet whether it is a
// router, or the only one with the address.
func gratuitous(h *host, ip netip.Addr) []byte {
	mac, vlan := h.id.mac(), keyVLAN(h.id)
	if ip.Is4() {
		return packet.Pad(packet.AppendARPRequest(nil, vlan, packet.ARPFields{SenderMAC: mac, SenderIP: ip, TargetIP: ip}))
	}
	a := h.has(ip)
	if a == nil || !a.advert.override {
		return nil
	}
	return packet.AppendNDAdvert(nil, vlan, packet.NDFields{SrcMAC: mac, SrcIP: ip, Target: ip, TargetMAC: mac, Router: a.advert.router, Override: true})
}
