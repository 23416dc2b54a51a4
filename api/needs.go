package api

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/flow"
)

// Need is what a rule, or another thing that people set, asks of the switches that
// carry it out, beyond what every switch of Weft's has.
type Need uint8

// The needs.
const (
	NeedTables      Need = iota // OpenFlow 1.3 and the tables up to that of routes
	NeedChains                  // OpenFlow 1.3 and the tables up to the last of chains
	NeedTunnelID                // the match tunnel_id, in packet-ins too
	NeedFragments               // matches on later fragments of packets, which have no ports
	NeedTracking                // connection tracking
	NeedPacketTypes             // conversion of Ethernet frames to labelled packets and back
)

// Lack returns what a switch lacks of some needs, as the rest of a sentence about it;
// empty if it has them all. What a switch has not said of itself it is taken to have:
// that shows when it refuses the entries.
func (s *Switch) Lack(needs ...Need) string {
	for _, n := range needs {
		if why := s.lacks(n); why != "" {
			return why
		}
	}
	return ""
}

func (s *Switch) lacks(n Need) string {
	least := flow.PipelineTables
	switch n {
	case NeedChains:
		least = uint32(flow.TableDeliver) + 1
	case NeedTables, NeedTunnelID:
	default:
		return s.lacksExtension(n)
	}
	switch {
	case s.GetOpenflow() == "1.0" && n == NeedTunnelID:
		return "has OpenFlow 1.0, which does not know tunnel_id"
	case s.GetOpenflow() == "1.0":
		return fmt.Sprintf("has OpenFlow 1.0, with one flow table and neither meters nor labels; it takes OpenFlow 1.3 and %d tables", least)
	case n != NeedTunnelID && s.GetTables() != 0 && s.GetTables() < least:
		return fmt.Sprintf("has %d flow tables; it takes %d", s.GetTables(), least)
	}
	return ""
}

// extensions are the needs that Open vSwitch alone is known to meet, as what a switch
// does not have.
var extensions = map[Need]string{
	NeedFragments:   "no match on the later fragments of packets, which have no ports",
	NeedTracking:    "no connection tracking",
	NeedPacketTypes: "no conversion of frames to labelled packets",
}

func (s *Switch) lacksExtension(n Need) string {
	if h := s.GetHardware(); h != "" && h != OpenVSwitch {
		return fmt.Sprintf("is %.64q and no Open vSwitch: it has %s", h, extensions[n])
	}
	return ""
}

// CheckNeeds returns an error if some of the switches that are connected cannot carry
// something out: it says of what, which switch, and why. remedy says what to do instead.
func CheckNeeds(what, remedy string, switches iter.Seq[*Switch], needs ...Need) error {
	var list []*Switch
	for s := range switches {
		if s.GetConnected() && s.Lack(needs...) != "" {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil
	}
	first := slices.MinFunc(list, func(a, b *Switch) int { return cmp.Compare(a.Dpid, b.Dpid) })
	more := ""
	if n := len(list) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more switches)", n)
	}
	return Errorf(codes.FailedPrecondition, "%s cannot be held: switch %s %s%s; %s", what, strings.TrimSpace(first.Dpid), first.Lack(needs...), more, remedy)
}
