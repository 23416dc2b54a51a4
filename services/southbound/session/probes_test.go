package session

import (
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// TestProbeAt: probes are told by their octets, whatever a message is cut down to.
func TestProbeAt(t *testing.T) {
	for _, v := range []openflow.Version{openflow.V10, openflow.V13} {
		lldp := packetIn(t, v, flow.EthTypeLLDP)
		if !probeAt(v).isProbe(lldp) || probeAt(v).isProbe(packetIn(t, v, flow.EthTypeIPv4)) {
			t.Errorf("%v: LLDP is not told from others", v)
		}
		for n := range lldp {
			if probeAt(v).isProbe(lldp[:n]) {
				t.Errorf("%v: %d octets are a probe", v, n)
			}
		}
	}
}

// TestEchoesOvertake: the answer to an echo does not wait for what is queued for
// the switch.
func TestEchoesOvertake(t *testing.T) {
	s := learner(t, openflow.V13)
	s.out.mu.Lock()
	s.out.writing, s.out.queued = true, []byte("queued") // as if somebody were writing
	s.out.mu.Unlock()
	msg, _ := openflow.V13.AppendEchoRequest(nil, 5, nil)
	if err := s.message(msg); err != nil {
		t.Fatal(err)
	}
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	if len(s.out.urgent) != openflow.HeaderLen || string(s.out.queued) != "queued" {
		t.Errorf("%d octets go first, %q after them", len(s.out.urgent), s.out.queued)
	}
	s.out.writing, s.out.queued, s.out.urgent = false, nil, nil
}
