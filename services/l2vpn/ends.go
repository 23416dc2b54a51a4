package l2vpn

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// An end is where a customer is attached: a port, some VLANs of a port, which keep their tags, or
// one, whose tags are the circuit's.
type end struct {
	at          flow.Location
	vlan, inner uint16   // 0: none
	kind        uint16   // type of the outer tag with which frames leave; 0: as leave has it
	list        vlanList // the VLANs of a list; empty: it has none
}

// whole reports whether an end has all frames of its port that no other end there has.
func (e end) whole() bool { return e.vlan == 0 && e.list == "" }

// vlans returns the VLANs that an end has of its port, by the outer tag; empty: all.
func (e end) vlans() vlanList {
	if e.vlan != 0 {
		return vlanList(strconv.Itoa(int(e.vlan)))
	}
	return e.list
}

// tags returns how many tags frames have there that are the circuit's.
func (e end) tags() int {
	switch {
	case e.inner != 0:
		return 2
	case e.vlan != 0:
		return 1
	}
	return 0
}

// String returns the end as parseEnd reads it.
func (e end) String() string {
	s := fmt.Sprintf("%v:%d", e.at.Switch, uint32(e.at.Port))
	if e.list != "" {
		s += "/" + string(e.list)
	}
	for _, v := range []uint16{e.vlan, e.inner} {
		if v != 0 {
			s += fmt.Sprintf(".%d", v)
		}
	}
	if e.kind != 0 {
		s += fmt.Sprintf("@%#04x", e.kind)
	}
	return s
}

// clashes reports whether two ends take some of the same frames. A port has those that no other
// end there has.
func (e end) clashes(o end) bool {
	switch {
	case e.at != o.at || e.whole() != o.whole():
		return false
	case e.whole():
		return true
	case e.list != "" || o.list != "":
		return e.vlans().meets(o.vlans())
	}
	return e.vlan == o.vlan && (e.inner == 0 || o.inner == 0 || e.inner == o.inner)
}

// Open vSwitch knows two tags of a frame (FLOW_MAX_VLAN_HEADERS). Where an end puts on more,
// the customer's inner ones would get lost.
const tagsMax = 2

// unjoined returns why two ends cannot be of one circuit; empty if they can.
func (e end) unjoined(o end) string {
	switch {
	case e.clashes(o) || e.at == o.at && (e.whole() || o.whole()):
		return "take the same frames"
	case e.list != "" && o.list != "" && !e.list.meets(o.list):
		return "have no VLAN in common, and frames keep their tags"
	case e.list != "" && o.inner != 0, e.inner != 0 && o.list != "":
		return fmt.Sprintf("would make frames of more than %d tags, which is all that Open vSwitch knows: want one tag, or none, beside a list of VLANs", tagsMax)
	}
	return ""
}

// parseEnd reads SWITCH:PORT, SWITCH:PORT/VLANS, SWITCH:PORT.VLAN or SWITCH:PORT.VLAN.INNER; behind
// the last two may be @TYPE.
func parseEnd(text string) (e end, err error) {
	wrong := func(what string, args ...any) (end, error) {
		return end{}, fmt.Errorf("end %.80q: "+what, append([]any{text}, args...)...)
	}
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return wrong("want SWITCH:PORT, SWITCH:PORT/VLANS, SWITCH:PORT.VLAN or SWITCH:PORT.VLAN.INNER")
	}
	if e.at.Switch, err = flow.ParseDPID(text[:i]); err != nil {
		return wrong("%w", err)
	}
	rest, kind, typed := strings.Cut(text[i+1:], "@")
	rest, list, listed := strings.Cut(rest, "/")
	parts := strings.Split(rest, ".")
	switch {
	case len(parts) > 3:
		return wrong("want at most two tags")
	case len(parts) > 1 && listed:
		return wrong("want a VLAN, whose tag is taken off, or a list of VLANs, which keep their tags")
	case len(parts) < 2 && typed:
		return wrong("@%.20s: no tag is put on there: want a VLAN before it", kind)
	}
	port, err := strconv.ParseUint(parts[0], 10, 32)
	if e.at.Port = flow.Port(port); err != nil || !e.at.Port.Physical() {
		return wrong("port %.20q: want a number from 1 to %d", parts[0], uint32(flow.PortMax))
	}
	for i, v := range []*uint16{&e.vlan, &e.inner} {
		if len(parts) < i+2 {
			break
		}
		if *v, err = parseVLAN(parts[i+1]); err != nil {
			return wrong("%w", err)
		}
	}
	if listed {
		if e.list, err = parseVLANs(list); err != nil {
			return wrong("%w", err)
		}
	}
	if typed {
		if e.kind, err = parseTagType(kind); err != nil {
			return wrong("%w", err)
		}
	}
	return e, nil
}

// parseTagType reads the type of a tag.
func parseTagType(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 0, 16)
	switch {
	case err != nil || n != uint64(flow.EthTypeVLAN) && n != uint64(flow.EthTypeQinQ) && n != oldQinQ:
		return 0, fmt.Errorf("type %.20q: want 0x8100 or 0x88a8", text)
	case n == oldQinQ:
		return 0, fmt.Errorf("type 0x9100: Open vSwitch takes no frame of this type for tagged, and puts no such tag on (\"not a valid VLAN ethertype\"): want 0x8100 or 0x88a8, or a port, which carries such frames as they are")
	}
	return uint16(n), nil
}

// oldQinQ is the type of outer tags before IEEE 802.1ad.
const oldQinQ = 0x9100
