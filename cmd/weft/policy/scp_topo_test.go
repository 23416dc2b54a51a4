package policy

import (
	"testing"

	"github.com/weft-sdn/weft/api"
)

func TestScpTopo(t *testing.T) {
	pairs := []*api.ScpPair{
		{Consumer: "10.0.1.2", Producer: "10.0.4.1:7777", Type: "UDM", Direct: true},
		{Consumer: "10.0.1.1", ConsumerType: "AMF", Producer: "10.0.4.1:7777", Type: "UDM", Packets: 6, Bytes: 600, Authorised: true, Direct: true},
		{Consumer: "10.0.1.1", ConsumerType: "AMF", Producer: "10.0.4.1:7777", Type: "UDM", Packets: 20, Bytes: 3200, Authorised: true},
		{Consumer: "10.0.1.1", ConsumerType: "AMF", Producer: "[fd00::3]:80", Type: "AUSF", Packets: 4, Bytes: 400, Authorised: true},
		{Consumer: "10.0.1.3", ConsumerType: "AMF", Producer: "10.0.4.1:7777", Type: "UDM", Front: true, Requests: 9, Errors: 1, MeanMs: 2.5, Authorised: true},
	}
	want := `unregistered 10.0.1.2
└─ UDM 10.0.4.1:7777  not counted, direct, not authorised
AMF 10.0.1.1
├─ AUSF [fd00::3]:80  4 packets, 400 octets
└─ UDM 10.0.4.1:7777  20 packets, 3200 octets; 6 packets, 600 octets, direct
AMF 10.0.1.3
└─ UDM 10.0.4.1:7777  9 requests by the front, 1 errors, 2.5 ms
`
	if got := scpTree(pairs); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	want = `digraph core {
  rankdir=LR; node [shape=box];
  "unregistered 10.0.1.2" -> "UDM 10.0.4.1" [label="0 packets", style=dashed];
  "AMF 10.0.1.1" -> "AUSF fd00::3" [label="4 packets", style=solid];
  "AMF 10.0.1.1" -> "UDM 10.0.4.1" [label="20 packets", style=solid];
  "AMF 10.0.1.1" -> "UDM 10.0.4.1" [label="6 packets", style=dashed];
  "AMF 10.0.1.3" -> "UDM 10.0.4.1" [label="9 requests", style=solid];
}
`
	if got := scpDOT(pairs); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := scpTree(nil); got != "no function has talked to another\n" {
		t.Error(got)
	}
}
