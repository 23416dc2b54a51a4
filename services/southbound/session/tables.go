package session

import (
	"fmt"
	"strings"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// tables is what a switch says, during the handshake, about which tables it has:
// those of hardware are seldom 0 to n-1, and n_tables of the features reply is then
// a number without meaning.
type tables struct {
	xid     uint32 // of the request that is not answered yet; 0 for none
	refused bool   // the last request was
	have    [flow.TableAll]bool
	known   bool // have is
}

// askTables asks which tables the switch has, and does not wait: the answer to what
// is asked next comes behind this one, if the switch answers this at all.
func (hs *handshake) askTables(t openflow.MultipartType) error {
	hs.tables.xid, hs.tables.refused = hs.xid.Add(1), false
	msg, err := hs.Version.AppendMultipartRequest(nil, hs.tables.xid, &openflow.MultipartRequest{Type: t})
	if err != nil {
		return err
	}
	return hs.out.put(msg)
}

// handleTables takes an answer to askTables; false if the message is none. An answer
// that is not understood says nothing.
func (hs *handshake) handleTables(h openflow.Header, msg []byte) bool {
	t := &hs.tables
	if t.xid == 0 || h.Xid != t.xid || h.Type != openflow.TypeMultipartReply && h.Type != openflow.TypeError {
		return false
	}
	r, err := hs.Version.DecodeMultipartReply(msg)
	if h.Type == openflow.TypeError || err != nil {
		t.xid, t.refused = 0, true
		return true
	}
	add := func(id uint8) {
		if id < flow.TableAll {
			t.have[id], t.known = true, true
		}
	}
	switch r.Type {
	case openflow.MultipartTable:
		list, _ := hs.Version.DecodeTableStats(r.Body, nil)
		for i := range list {
			add(list[i].Table)
		}
	case openflow.MultipartTableFeatures:
		list, _ := hs.Version.DecodeTableFeatures(r.Body, nil)
		for i := range list {
			add(list[i].Table)
		}
	}
	if !r.More {
		t.xid = 0
	}
	return true
}

// count returns how many tables there are from table 0 on without a gap, of the n
// of the features reply, and the numbers of all if there are gaps.
func (t *tables) count(n uint8) (whole uint32, all []uint32) {
	if !t.known {
		return uint32(n), nil
	}
	gap := false
	for id := range t.have {
		switch {
		case !t.have[id]:
			gap = true
		case gap:
			all = append(all, uint32(id))
		default:
			whole++
		}
	}
	if len(all) > 0 {
		below := make([]uint32, whole, int(whole)+len(all))
		for id := range below {
			below[id] = uint32(id)
		}
		all = append(below, all...)
	}
	return whole, all
}

// checkTables refuses a switch that has no table 0, with which the processing of
// packets begins (OpenFlow 1.3.5 §5.1): it could be given no entry.
func (hs *handshake) checkTables() error {
	whole, all := hs.tables.count(hs.feature.Tables)
	if whole == 0 && len(all) > 0 {
		return &HandshakeError{Remedy: remedyTables, err: fmt.Errorf("switch %v has tables %s and no table 0, where packets begin (OpenFlow 1.3.5 §5.1): it is left alone", hs.DPID, numbers(all))}
	}
	if whole < flow.PipelineTables && len(all) > 0 {
		hs.shared.Log.Warn("switch has tables with gaps: all its entries go to table 0, without the services that need more", "dpid", hs.DPID, "tables", numbers(all))
	}
	hs.usable, hs.gapped = whole, all
	return nil
}

// numbers returns a list of numbers as text, of a long one the beginning.
func numbers(list []uint32) string {
	const most = 12
	var b strings.Builder
	for i, n := range list {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(list)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}
