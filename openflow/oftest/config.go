package oftest

import (
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
