package session

import (
	"log/slog"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// alone owns sessions without a hub: all are those of a master.
type alone struct{ *Shared }

func (alone) Identify(*Session, dpid) error      { return nil }
func (alone) Claim(*Session) error               { return nil }
func (alone) IsOwner(dpid) (uint64, bool)        { return 1, true }
func (alone) HandleHigherGeneration(uint64) bool { return false }
func (alone) AddSession(s *Session) error        { s.Activate(); return nil }
func (o alone) Join(s *Session)                  { o.Up.Put(s.DPID, s) }
func (o alone) Leave(s *Session, _ error)        { o.Up.Drop(s.DPID) }
func (alone) AnnounceRestored(*Session)          {}
func (alone) Coming(dpid) bool                   { return false }

// newAlone returns what sessions without a hub share.
func newAlone() *Shared {
	h := &Shared{}
	h.Init(alone{h}, nil, admission.NewMemory(256<<20, 1<<30), slog.New(slog.DiscardHandler))
	h.Config.Store(&Config{
		HandshakeTimeout: time.Second, ConfirmTimeout: time.Second, QueueBytes: 4 << 20, PortEventsPerSecond: 20,
		Flood: admission.FloodRule{Rate: 5000, Factor: 4, Floor: 1000, Probes: 1000}, RealtimeFirst: true,
	})
	return h
}

// trialAccount is the memory of a session.
func trialAccount() *admission.Account {
	return admission.NewMemory(256<<20, 1<<30).NewAccount(time.Now(), nil, nil)
}

// packetIn is one whose frame is nothing but a header of a type.
func packetIn(t *testing.T, v openflow.Version, ethType uint16) []byte {
	t.Helper()
	frame := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, byte(ethType >> 8), byte(ethType)}
	in := flow.PacketIn{BufferID: flow.BufferNone, TotalLen: uint16(len(frame)), Data: frame, Key: flow.Key{InPort: 1}}
	msg, err := v.AppendPacketIn(nil, 0, &in)
	if err != nil {
		t.Fatal(err)
	}
	return msg
}
