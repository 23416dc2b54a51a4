package deploy_test

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// TestDecisionsComeOneAtATime: the decisions about packets and about probes, which
// travel beside each other, are handed to a session one at a time.
func TestDecisionsComeOneAtATime(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	c.apply(placed("southbound", "discovery, hosts, firewall, forwarding"))
	c.startAll()
	var inside, together, answered atomic.Int64
	p := weft.OpenPipeline(c.run("southbound").env, 5, func(d *flow.Decision) {
		if inside.Add(1) > 1 {
			together.Add(1)
		}
		time.Sleep(200 * time.Microsecond) // as one that sends
		if d != nil {
			answered.Add(1)
		}
		inside.Add(-1)
	})
	defer p.Close()
	const packets = 100
	for n := range packets {
		in := &flow.PacketIn{Switch: 5, Time: time.Now().UnixNano(), BufferID: flow.BufferNone, TotalLen: 60, Data: make([]byte, 60)}
		binary.BigEndian.PutUint16(in.Data[12:], [2]uint16{0x88b5, flow.EthTypeLLDP}[n%2])
		binary.BigEndian.PutUint64(in.Data[14:], uint64(n))
		packet.ParseEthernet(in.Data, &in.Key)
		if v := p.Packet(in, &flow.Decision{}); v != flow.Away {
			t.Fatalf("verdict %v", v)
		}
		if n%10 == 9 {
			p.Flush()
		}
	}
	c.eventually("every packet is answered", func() bool { return answered.Load() == packets })
	if n := together.Load(); n > 0 {
		t.Errorf("%d decisions came while another was being carried out", n)
	}
}
