package forwarding

import (
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// BenchmarkConnect is the first packet of a pair that has no route yet, over
// five switches, without the computation of the path.
func BenchmarkConnect(b *testing.B) {
	net, from, to := line(b, 5)
	e := testEngine(b, net, nil, from.at, to.at)
	path, _ := net.findPath(&api.FindPathRequest{Src: from.at.Switch.String(), Dst: to.at.Switch.String()})
	back, _ := net.findPath(&api.FindPathRequest{Src: to.at.Switch.String(), Dst: from.at.Switch.String()})
	e.findNow = func(req *api.FindPathRequest) (*api.FindPathResponse, error) {
		if req.Src == from.at.Switch.String() {
			return path, nil
		}
		return back, nil
	}
	stage := e.open(from.at.Switch)
	p, d, _ := punt(e, from, &to, tcp(from, to))
	b.ReportAllocs()
	for i := uint64(0); b.Loop(); i++ {
		if i%10_000 == 0 {
			e.routes = newRouteTable()
		}
		p.Key.EthSrc = flow.MACFrom(0x020000010000 + i%10_000)
		d.Reset()
		stage(p, d)
	}
}
