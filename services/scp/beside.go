package scp

import (
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/sbi"
)

// beside reports whether one of some end points is at the port of the network where a client
// is. Then no other address can stand for it: what the two send each other need not come to a
// switch, such as between functions of one machine. It is called with the proxy's mu held.
func beside(p *proxy, client netip.Addr, points []sbi.EndPoint) bool {
	here, known := p.located(client)
	return known && slices.ContainsFunc(points, func(e sbi.EndPoint) bool {
		at, known := p.located(e.Addr.Addr())
		return known && at.At == here.At
	})
}

// besideOne is beside one of some members.
func besideOne(p *proxy, client netip.Addr, members []member) bool {
	return slices.ContainsFunc(members, func(m member) bool { return beside(p, client, m.points) })
}
