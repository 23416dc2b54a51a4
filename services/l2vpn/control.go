package l2vpn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// A control is what becomes of a layer-2 control protocol at the ends of a circuit (MEF 45).
type control struct {
	protocol, action string
	frames           []controlFrames
	above            uint16 // what names less has a higher priority
}

// controlFrames are frames to one address of control protocols, or to sixteen, of a type; 0: of any.
type controlFrames struct {
	to, mask flow.MAC
	kind     uint16
}

// in returns what matches these of some frames.
func (f controlFrames) in(m flow.Match) flow.Match {
	if m = m.WithEthDstMasked(f.to, f.mask); f.kind != 0 {
		m = m.WithEthType(f.kind)
	}
	return m
}

// What may become of a control protocol.
const (
	tunnelled = "tunnel"
	discarded = "discard"
	peered    = "peer" // the controller reads it
)

// controlled returns an address of those that bridges keep for control protocols (IEEE
// 802.1Q tables 8-1 to 8-3 and 10-1), by its last octet.
func controlled(last byte) flow.MAC { return flow.MAC{0x01, 0x80, 0xc2, 0, 0, last} }

// The masks of one of them, and of sixteen.
var (
	oneAddress       = flow.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	sixteenAddresses = flow.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xf0}
)

// A controlProtocol is a control protocol by the addresses that its frames go to and their type.
type controlProtocol struct {
	name string
	to   []byte
	kind uint16
}

// lldpProtocol is the name of the one that the controller can read.
const lldpProtocol = "lldp"

// controlProtocols are those with names. What tells LACP, marker, link OAM and ESMC from each other is behind
// the type, where no switch looks.
var controlProtocols = []controlProtocol{
	{"stp", []byte{0x00, 0x08}, 0x05ff}, // as Open vSwitch has frames with LLC
	{"pause", []byte{0x01}, 0x8808},
	{"slow", []byte{0x02}, 0x8809},
	{"eapol", []byte{0x03}, flow.EthTypeEAPOL},
	{"elmi", []byte{0x07}, 0x88ee},
	{"ptp", []byte{0x0e}, 0x88f7},
	{lldpProtocol, []byte{0x00, 0x03, 0x0e}, flow.EthTypeLLDP},
	{"mmrp", []byte{0x20}, 0x88f6},
	{"mvrp", []byte{0x0d, 0x21}, 0x88f5},
}

// parseControl reads PROTOCOL=ACTION.
func parseControl(text string) (k control, err error) {
	k.protocol, k.action, _ = strings.Cut(strings.ToLower(text), "=")
	wrong := func(format string, args ...any) (control, error) {
		return control{}, fmt.Errorf("l2cp %.40q: "+format, append([]any{text}, args...)...)
	}
	to, numbered := strconv.ParseUint(k.protocol, 16, 8)
	i := slices.IndexFunc(controlProtocols, func(p controlProtocol) bool { return p.name == k.protocol })
	switch {
	case i >= 0:
		p := controlProtocols[i]
		for _, last := range p.to {
			k.frames = append(k.frames, controlFrames{controlled(last), oneAddress, p.kind})
		}
		k.above = 2
	case k.protocol == "all":
		for _, first := range []byte{0x00, 0x20} {
			k.frames = append(k.frames, controlFrames{controlled(first), sixteenAddresses, 0})
		}
	case slices.Contains([]string{"lacp", "marker", "link-oam", "esmc"}, k.protocol):
		return wrong("a switch cannot tell it from the other slow protocols: want slow, which is LACP, marker, link OAM and ESMC together")
	case numbered == nil && len(k.protocol) == 2 && (to < 0x10 || to >= 0x20 && to < 0x30):
		k.frames, k.above = []controlFrames{{controlled(byte(to)), oneAddress, 0}}, 1
	default:
		var names []string
		for _, p := range controlProtocols {
			names = append(names, p.name)
		}
		return wrong("want PROTOCOL=ACTION with a protocol of %s, 00 to 0f, 20 to 2f, or all", strings.Join(names, ", "))
	}
	switch {
	case k.action == peered && k.protocol != lldpProtocol:
		return wrong("the controller speaks no such protocol with customers: want tunnel or discard; lldp alone can be peered")
	case !slices.Contains([]string{tunnelled, discarded, peered}, k.action):
		return wrong("want an action of tunnel, discard, or, of lldp, peer")
	}
	return k, nil
}

// A neighbour is what a customer's device has said of itself by LLDP.
type neighbour struct {
	text  string
	until time.Time
}

// describe returns what LLDP says of who sends it.
func describe(unit packet.LLDP) string {
	kind, chassis := unit.ChassisID()
	text := "chassis " + identifier(kind == packet.ChassisMAC, chassis)
	kind, port := unit.PortID()
	text += ", port " + identifier(kind == packet.PortMAC, port)
	if name, ok := unit.Find(packet.TLVSystemName); ok {
		text += ", name " + identifier(false, name)
	}
	return text
}

// identifier returns an identifier of LLDP as text.
func identifier(mac bool, id []byte) string {
	if mac && len(id) == 6 {
		return flow.MAC(id).String()
	}
	return strings.Trim(fmt.Sprintf("%.64q", id), `"`)
}
