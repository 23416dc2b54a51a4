package test

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
)

// TestScpWithoutHost: where no host has the front, consumers' discoveries come to it
// packet by packet, over IPv4; registrations pass it, and what it has refused is
// answered as in a host.
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
		status, _, _ := g.curl("amf1", "http://"+vip+subscriber)
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
}
