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
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// Config is what a switch is made of. The zero value of a field is its default.
type Config struct {
	DPID       flow.DPID
	Ports      int                // ports 1 to Ports, up; 4 by default, none if negative
	Local      bool               // whether there is a port LOCAL
	Versions   []openflow.Version // that it speaks; OpenFlow 1.0 and 1.3 by default
	Tables     int                // 1 to 254; 254 by default
	MaxEntries int                // in one table; no limit by default
	MaxGroups  int                // no limit by default
	MaxMeters  int                // no limit by default
	Buffers    int                // packets that it can keep; none by default
	Desc       openflow.Desc      // made up by default
	Now        time.Time          // where its clock stands at first; 1970 by default
	Nicira     bool               // it knows Open vSwitch's numbers of controllers, encap, decap, resubmit and a forgotten in_port, and treats fragments as that does
	Untracked  bool               // with Nicira: it takes entries with ct, and drops the packets that these would track
	Tags       int                // VLAN tags that it knows of a packet (Open vSwitch's vlan-limit); with Nicira two by default, else all
	// Refuse, if given, is asked about every flow-mod that is otherwise right,
	// and refuses it by returning an error; Xid and Data are filled in.
	Refuse func(*flow.Mod) *openflow.Error
	// Ignore, if given, is asked about every flow-mod that adds an entry and is right: one
	// that it returns true for is confirmed and not kept.
	Ignore func(*flow.Mod) bool
	// Changed, if given, is called with every entry, group and meter that a message adds,
	// changes or deletes, as text. It must not call the switch.
	Changed func(what string)
}

// defaultDesc is the description of a switch whose Config gives none.
var defaultDesc = openflow.Desc{Manufacturer: "Weft", Hardware: "oftest", Software: "oftest", Serial: "None", Datapath: "fake switch"}

// Message is an OpenFlow message on its way to a controller.
type Message struct {
	Conn int
	Data []byte
}

// Frame is an Ethernet frame on its way out of a port.
type Frame struct {
	Port flow.Port
	Data []byte
}

// Effects is what a call has caused: messages and frames in their order, and
// connections that the switch wants closed after that.
type Effects struct {
	Messages []Message
	Frames   []Frame
	Closed   []int
}

// Switch is the model of one switch. It is for one goroutine at a time; Device
// adds a lock. Every method that lets something happen returns its Effects.
type Switch struct {
	cfg     Config
	now     time.Time
	flags   uint16 // of set-config, as is missLen for table misses in OpenFlow 1.0
	missLen uint16
	tables  []table
	groups  map[uint32]*group
	meters  map[uint32]*meter
	ports   map[flow.Port]*port
	conns   map[int]*conn
	conn    int // number of the connection opened last
	buffers buffers
	xid     uint32

	// The greatest generation id that a master or slave has given (§6.3.6).
	generation uint64
	generated  bool

	effects Effects
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
	s := &Switch{
		cfg: cfg, now: cfg.Now, missLen: 128, tables: make([]table, cfg.Tables),
		groups: map[uint32]*group{}, meters: map[uint32]*meter{}, ports: map[flow.Port]*port{}, conns: map[int]*conn{},
	}
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

// Flows returns the flow entries with their counters, by table, then from
// the highest priority to the lowest, then in the order in which they were added.
func (s *Switch) Flows() []openflow.FlowStats {
	var list []openflow.FlowStats
	for t := range s.tables {
		for _, e := range s.tables[t].entries {
			list = append(list, s.stats(e))
		}
	}
	return list
}

// Groups returns the groups in the order of their numbers.
func (s *Switch) Groups() []flow.Group {
	var list []flow.Group
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		list = append(list, s.groups[id].Group)
	}
	return list
}

// Meters returns the meters in the order of their numbers.
func (s *Switch) Meters() []flow.Meter {
	var list []flow.Meter
	for _, id := range slices.Sorted(maps.Keys(s.meters)) {
		list = append(list, s.meters[id].Meter)
	}
	return list
}

// send queues a message to a controller.
func (s *Switch) send(c *conn, msg []byte) {
	s.effects.Messages = append(s.effects.Messages, Message{c.id, msg})
}

// must is for messages that every version has a form for.
func must(msg []byte, err error) []byte {
	if err != nil {
		panic("oftest: " + err.Error())
	}
	return msg
}

// nextXid numbers the messages that the switch sends of its own accord.
func (s *Switch) nextXid() uint32 {
	s.xid++
	return s.xid
}

// changed reports that a message has changed what the switch has; was or is is nil if it
// had, or has, nothing.
func (s *Switch) changed(what string, was, is any) {
	if s.cfg.Changed != nil && !reflect.DeepEqual(was, is) {
		s.cfg.Changed(fmt.Sprintf("%s %+v, was %+v", what, is, was))
	}
}

// take returns the effects so far and forgets them.
func (s *Switch) take() Effects {
	e := s.effects
	s.effects = Effects{}
	return e
}

// sinceParts returns a duration as statistics give it.
func (s *Switch) sinceParts(t time.Time) (sec, nsec uint32) {
	d := s.now.Sub(t)
	return uint32(d / time.Second), uint32(d % time.Second)
}
