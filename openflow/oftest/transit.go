package oftest

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// transit is a packet on its way through the switch.
type transit struct {
	frame  []byte
	key    flow.Key // as of the last parse; the pipeline fields are kept
	in     flow.Port
	table  uint8
	cookie flow.Cookie
	reason flow.Reason // of a packet-in
	maxLen uint16
	number uint16 // of the controllers that get the packet-in
	legacy bool
	set    actionSet
	typ    flow.PacketType // of frame, which has an Ethernet header in any case (packet.Encap)
	trip   *trip           // shared with its branches
	tags   int             // that are known
}

// branch returns a copy for a bucket, whose changes the packet itself does not see.
func (t *transit) branch() *transit {
	b := *t
	b.frame = slices.Clone(t.frame)
	b.set = actionSet{}
	return &b
}

// noCookie is the cookie of a packet-in that no flow entry has caused.
const noCookie = ^flow.Cookie(0)

// The bounds of Open vSwitch: on resubmits of one packet; on how often it may be, one
// within the other, in a group or led to the same or an earlier table; on its labels; and on
// the tags that it knows of a packet (FLOW_MAX_VLAN_HEADERS).
const (
	resubmitMax = 4096
	depthMax    = 64
	labelsMax   = 3
	tagsMax     = 2
)

// trip is what happens to one packet and its copies, as far as Open vSwitch takes it all
// back when it cannot carry the packet on.
type trip struct {
	frames, messages int // effects before this one
	resubmits, depth int
	void             void
}

// void is why a packet cannot be carried on.
type void uint8

const (
	inOrder void = iota
	unfit        // its headers do not suit an action; outside the bucket where that is, all is well
	tooFar       // a bound is exceeded
)

// move carries out one of the actions that exchange addresses, by its place among them.
func (t *transit) move(i int) bool {
	if t.typ != flow.PacketEthernet || len(t.frame) < 12 {
		t.trip.void = unfit
		return false
	}
	t.frame = slices.Clone(t.frame)
	kept := binary.BigEndian.AppendUint64(nil, t.key.Metadata)
	switch dst, src, last := t.frame[:6], t.frame[6:12], kept[2:]; i {
	case 0:
		copy(last, src)
	case 1:
		copy(src, dst)
	case 2:
		copy(dst, last)
	}
	t.parse()
	t.key.Metadata = binary.BigEndian.Uint64(kept)
	return true
}

// moveTag carries out SaveTag or RestoreTag.
func (t *transit) moveTag(save bool) {
	if t.tags == 0 || len(packet.Tags(nil, t.frame)) == 0 {
		return
	}
	t.frame = slices.Clone(t.frame)
	tci := t.frame[14:16]
	if save {
		t.key.Metadata = t.key.Metadata&^0xffff | uint64(binary.BigEndian.Uint16(tci))
		return
	}
	binary.BigEndian.PutUint16(tci, uint16(t.key.Metadata)&^flow.VLANPresent)
	t.parse()
}

// parse looks at a packet that has been changed. Open vSwitch sees nothing of a tag that
// it did not know before, but that there is one, nor of what is behind it.
func (t *transit) parse() {
	packet.Parse(t.frame, &t.key)
	tags := packet.Tags(nil, t.frame)
	if len(tags) <= t.tags {
		return
	}
	k := t.key
	t.key = flow.Key{InPort: k.InPort, InPhyPort: k.InPhyPort, Metadata: k.Metadata, TunnelID: k.TunnelID, EthSrc: k.EthSrc, EthDst: k.EthDst, EthType: tags[t.tags].TPID}
	if t.tags > 0 {
		t.key.VLAN, t.key.VLANPCP = k.VLAN, k.VLANPCP
	}
}

// anew looks at a packet that Open vSwitch has not seen yet, or as if it had not; a switch
// knows so many of its tags.
func (t *transit) anew(tagsKnown int) {
	if t.tags = math.MaxInt32; tagsKnown < math.MaxInt32 {
		t.tags = min(len(packet.Tags(nil, t.frame)), tagsKnown)
	}
	t.parse()
}
