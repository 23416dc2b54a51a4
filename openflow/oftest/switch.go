// Package oftest is a fake OpenFlow switch that really forwards: a model of
// flow tables, groups, meters, ports and controllers after OpenFlow 1.3.5
// (ONF TS-023), with the view that OpenFlow 1.0.1 has of them. It is itself
// checked against Open vSwitch, rule by rule and packet by packet.
//
// Switch is the model: pure, without goroutines, sockets or a clock of its own.
// Device puts a lock around it and serves it over real connections, with faults
// on request. Network joins devices by links and hosts, moves the frames, and
// finds loops.
//
// Tests import it, of services and of the southbound; nothing else does. It
// imports openflow, flow, packet and the standard library.
package oftest

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// Switch is the model of one switch. It is for one goroutine at a time; Device
// adds a lock. Every method that lets something happen returns its Effects.
type Switch struct {
	*controllers
	*contents
	*pipeline
}

// New returns a switch; it panics if the Config cannot be.
func New(cfg Config) *Switch {
	if cfg.Ports == 0 {
		cfg.Ports = 4
	}
	if cfg.Tables == 0 {
		cfg.Tables = 254
	}
	if cfg.Tables < 1 || cfg.Tables > 254 {
		panic(fmt.Sprintf("oftest: %d tables: want 1 to 254", cfg.Tables))
	}
	if len(cfg.Versions) == 0 {
		cfg.Versions = []openflow.Version{openflow.V10, openflow.V13}
	}
	if cfg.Desc == (openflow.Desc{}) {
		cfg.Desc = defaultDesc
	}
	if cfg.Now.IsZero() {
		cfg.Now = time.Unix(0, 0)
	}
	cs := &controllers{cfg: cfg}
	has := &contents{controllers: cs, now: cfg.Now, tables: make([]table, cfg.Tables),
		groups: map[uint32]*group{}, meters: map[uint32]*meter{}, ports: map[flow.Port]*port{}}
	cs.conns = map[int]*conn{}
	s := &Switch{controllers: cs, contents: has, pipeline: &pipeline{contents: has, missLen: 128}}
	for p := flow.Port(1); int(p) <= cfg.Ports; p++ {
		s.addPort(p)
	}
	if cfg.Local {
		s.addPort(flow.PortLocal)
	}
	return s
}

// DPID returns the identity of the switch.
func (s *Switch) DPID() flow.DPID { return s.cfg.DPID }

// Now returns where the switch's clock stands.
func (s *Switch) Now() time.Time { return s.now }

// Restart has the switch lose its entries, groups, meters and what it knows of
// controllers, as without power. Ports stay as they are, and so do connections:
// see Device.Disconnect.
func (s *Switch) Restart() Effects {
	s.tables = make([]table, s.cfg.Tables)
	s.groups, s.meters = map[uint32]*group{}, map[uint32]*meter{}
	s.generation, s.generated = 0, false
	return s.take()
}

// Advance sets the switch's clock, which never goes back, and lets happen what
// is due: flow entries time out.
func (s *Switch) Advance(now time.Time) Effects {
	if now.After(s.now) {
		s.now = now
		s.expire()
	}
	return s.take()
}

// Receive lets a frame come in at a port and returns what comes of it.
func (s *Switch) Receive(p flow.Port, frame []byte) Effects {
	if port := s.ports[p]; port != nil {
		s.receive(port, slices.Clone(frame))
	}
	return s.take()
}
