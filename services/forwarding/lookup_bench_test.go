package forwarding

import (
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// BenchmarkKnownRoute is a packet of one of ten thousand pairs whose route, over
// five switches, has just been programmed: the route is looked up, and the packet
// handed to its host.
func BenchmarkKnownRoute(b *testing.B) {
	net, from, to := line(b, 5)
	e := testEngine(b, net, nil, from.at, to.at)
	stage := e.open(from.at.Switch)
	p, d, _ := punt(e, from, &to, tcp(from, to))
	const pairs = 10_000
	look := func(i uint64) {
		p.Key.EthSrc = flow.MACFrom(0x020000010000 + i*7919%pairs)
		d.Reset()
		stage(p, d)
	}
	for i := range uint64(pairs) {
		look(i)
	}
	b.ReportAllocs()
	for i := uint64(0); b.Loop(); i++ {
		look(i)
	}
}
