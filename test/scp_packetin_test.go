package test

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// TestScpWithoutHost: where no host has the front, consumers' discoveries come to it
// packet by packet, over IPv4; registrations pass it, what it has refused is
// answered as in a host, and no encoding of a packet gets past it to the NRF.
func TestScpWithoutHost(t *testing.T) {
	t.Parallel()
	g := newCoreAt(t, 1, func(string) []string { return []string{"scp.address=10.0.254.1"} })
	defer explain(g.c)
	if s := call(g.c, api.GetScp, &api.GetScpRequest{}); s.FrontBy != "packet-in" || s.FrontAddress != "10.0.254.1" {
		t.Errorf("front by %q at %s", s.FrontBy, s.FrontAddress)
	}
	// Until the switches have the front's entries, the NRF itself answers.
	vip := ""
	eventually(t, "the front answers a discovery", func() bool {
		vip = g.endPoint("amf1", "AMF", "UDM")
		return strings.HasPrefix(vip, "10.0.255.")
	})
	eventually(t, "the UDM serves at its end point", func() bool {
		status, _, _ := g.curl("amf1", "http://"+vip+subscriber, soon...)
		return status == 200
	})
	// Who asks is known by its own address.
	const other = "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=SMF"
	if status, body, _ := g.curl("amf1", "http://10.0.0.1:7777"+other); status != 403 {
		t.Errorf("an AMF that says it is an SMF: %d %s", status, body)
	}
	const id = "11111111-1111-4111-8111-111111111111"
	if status, body := g.register("smf1", id, "BSF", "10.0.5.1", `"AMF"`); status != 403 || !strings.Contains(body, "10.0.5.1 is not at the port") {
		t.Errorf("registration of another's address: %d %s", status, body)
	}
	if status, body := g.register("pcf1", id, "BSF", "10.0.5.1", `"AMF"`); status != 201 {
		t.Errorf("registration: %d %s", status, body)
	}
	if names := g.past("amf1", 7777); len(names) > 0 {
		t.Errorf("the front is passed by %s", strings.Join(names, "; "))
	}
	if names := g.past("amf1", 7001); len(names) < 20 { // not the NRF's
		t.Errorf("of what is not for the front, only these get there: %s", strings.Join(names, "; "))
	}
}

// past sends all encodings of segments of a host to a port of the NRF's host, and returns the
// names of those that have come.
func (g *core) past(host string, port uint16) (names []string) {
	g.t.Helper()
	in, out, from, to := attach(g.t, g.Lab, host), attach(g.t, g.Lab, "nrf"), lookup(g.t, g.Lab, host), lookup(g.t, g.Lab, "nrf")
	traffic := func(port uint16) []oftest.Encoding {
		tr := oftest.Traffic{SrcMAC: flow.MAC(from.MAC), DstMAC: flow.MAC(to.MAC), Proto: flow.IPProtoTCP,
			Src: netip.AddrPortFrom(from.IPv4.Addr(), 40000), Dst: netip.AddrPortFrom(to.IPv4.Addr(), port)}
		return slices.DeleteFunc(tr.Encodings(), func(e oftest.Encoding) bool { // over the interface's
			return slices.ContainsFunc(e.Frames, func(f []byte) bool { return len(f) > 1514 })
		})
	}
	var mu sync.Mutex // guards the following
	var socket, marked *oftest.Socket
	renew := func() {
		at := func(port uint16) *oftest.Socket {
			return &oftest.Socket{MAC: flow.MAC(to.MAC), At: netip.AddrPortFrom(to.IPv4.Addr(), port), Proto: flow.IPProtoTCP}
		}
		mu.Lock()
		defer mu.Unlock()
		socket, marked = at(port), at(7002)
	}
	renew()
	stop := out.listen(func(frame []byte) {
		mu.Lock()
		defer mu.Unlock()
		if flow.MAC(frame[6:12]) == flow.MAC(from.MAC) {
			socket.Take(frame)
			marked.Take(frame)
		}
	})
	defer stop()
	marker := traffic(7002)[0].Frames[0]
	for _, e := range traffic(port) {
		renew()
		for _, f := range e.Frames {
			in.send(f)
		}
		eventually(g.t, "a marker", func() bool {
			in.send(marker)
			mu.Lock()
			defer mu.Unlock()
			return marked.Got > 0
		})
		mu.Lock()
		if socket.Got > 0 {
			names = append(names, e.Name)
		}
		mu.Unlock()
	}
	return names
}
