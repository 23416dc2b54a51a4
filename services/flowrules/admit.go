package flowrules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The limits of numbers in OpenFlow 1.3.5 §7.3.4.3 and §7.2.1.
const (
	groupMax = 0xffffff00
	meterMax = 0xffff0000
)

// admit returns what an operator's request describes. It returns an
// InvalidArgument error for an entry that no switch can hold, or that is reserved
// for Weft.
func admit(f *api.FlowEntry) (flow.DPID, flow.Entry, error) {
	sw, e, err := f.Entry()
	if err != nil {
		return 0, e, err
	}
	e.Match.Normalize()
	if err = check(&e); err == nil {
		err = reserved(f.GetOwner(), &e)
	}
	if err != nil {
		return 0, e, api.Errorf(codes.InvalidArgument, "flow entry for switch %v: %w", sw, err)
	}
	return sw, e, nil
}

// check checks what every entry must meet.
func check(e *flow.Entry) error {
	if err := e.Match.Check(); err != nil {
		return err
	}
	if e.Meter > meterMax {
		return fmt.Errorf("meter %d: want 1 to %d", e.Meter, uint32(meterMax))
	}
	for _, a := range slices.Concat(e.Apply, e.Write) {
		switch p := flow.Port(a.Arg); {
		case a.Kind == flow.ActionOutput && (p == flow.PortAny || p == flow.PortTable || !p.Physical() && p < flow.PortIn):
			return fmt.Errorf("action output:%v: want a port of the switch (1 to %d), in_port, normal, flood, all, controller or local", p, uint32(flow.PortMax))
		case a.Kind == flow.ActionGroup && a.Arg > groupMax:
			return fmt.Errorf("action group:%d: want at most %d", a.Arg, uint32(groupMax))
		}
	}
	if err := e.Match.CheckActions(e.Apply); err != nil {
		return err
	}
	if err := flow.CheckActionSet(e.Write); err != nil {
		return fmt.Errorf("write-actions: %w", err)
	}
	return nil
}

// reserved checks that an operator's entry keeps clear of what is Weft's own.
func reserved(owner string, e *flow.Entry) error {
	if owner != "" && owner != flow.OwnerOperator.String() && api.AppOf(owner) == "" {
		return fmt.Errorf("owner %q: entries of the services are not the operator's to write; leave the owner empty", owner)
	}
	if e.Table == flow.TableIngress && e.Priority == flow.PriorityProbe {
		return fmt.Errorf("priority %d in table 0 is reserved: it would shadow the LLDP trap by which links are discovered; want at most %d",
			e.Priority, flow.PriorityProbe-1)
	}
	if e.TableMiss() {
		return fmt.Errorf("the table-miss entry of table %d is reserved: it leads unknown packets to the next table or to the controller; want a priority of at least 1", e.Table)
	}
	if o := e.Cookie.Owner(); o != flow.OwnerOperator && e.Cookie>>32 != 0 {
		return fmt.Errorf("cookie %016x: want at most 8 hex digits; the upper 32 bits name the writer", uint64(e.Cookie))
	}
	if e.Flags&flow.FlagOverlap != 0 {
		return fmt.Errorf("flags %d: want no OFPFF_CHECK_OVERLAP (%d): an entry is written again when its switch has lost it, and would then overlap itself",
			e.Flags, flow.FlagOverlap)
	}
	return nil
}

// operatorEntry completes an admitted entry: it adds the operator's cookie, and
// the flag that makes the switch report the entry's end.
func operatorEntry(e flow.Entry, generation uint8) flow.Entry {
	id := e.Cookie.ID()
	if id == 0 {
		id = numberOf(e.Key())
	}
	e.Cookie = flow.NewCookie(flow.OwnerOperator, generation, id)
	e.Flags |= flow.FlagSendRem
	return e
}

// admitStanding returns a service's whole set of entries for one switch, with its
// cookie and the flag that makes the switch report a deletion by somebody else;
// of entries with the same key the last counts. The generation distinguishes
// reports about an entry that was taken back from those about its successor.
func admitStanding(req *api.SetStandingRequest, generation uint8) (flow.DPID, flow.Owner, []flow.Entry, error) {
	invalid := func(format string, args ...any) (flow.DPID, flow.Owner, []flow.Entry, error) {
		return 0, 0, nil, api.Errorf(codes.InvalidArgument, "standing entries of %q: "+format, append([]any{req.GetOwner()}, args...)...)
	}
	sw, err := flow.ParseDPID(req.GetDpid())
	if err != nil {
		return invalid("%w", err)
	}
	owner, ok := standingOwner(req.GetOwner())
	if !ok {
		return invalid("want the owner to be one of %v", standingOwners())
	}
	entries := make([]flow.Entry, 0, len(req.GetFlows()))
	at := map[entryID]int{}
	for _, f := range req.GetFlows() {
		of, e, err := f.Entry()
		if err != nil {
			return invalid("%w", err)
		}
		if of != sw {
			return invalid("an entry is for switch %v, the set for switch %v", of, sw)
		}
		e.Match.Normalize()
		if err := check(&e); err != nil {
			return invalid("%w", err)
		}
		if e.IdleTimeout != 0 || e.HardTimeout != 0 {
			return invalid("an entry has a timeout; standing ones have none")
		}
		id := e.Cookie.ID()
		switch o := e.Cookie.Owner(); {
		case o != owner && o != flow.OwnerForeign:
			return invalid("an entry has the cookie of %v", o)
		case o == flow.OwnerForeign && id == 0:
			id = numberOf(e.Key())
		}
		e.Cookie = flow.NewCookie(owner, generation, id)
		e.Flags |= flow.FlagSendRem
		if i, twice := at[idOf(&e)]; twice {
			entries[i] = e
			continue
		}
		at[idOf(&e)] = len(entries)
		entries = append(entries, e)
	}
	return sw, owner, entries, nil
}

// standingOwner returns the owner with this name if it may have baseline flows.
// Routes come and go with traffic, and forwarding writes them itself; the
// operator has AddFlows.
func standingOwner(name string) (flow.Owner, bool) {
	for _, o := range standingOwners() {
		if o.String() == name {
			return o, true
		}
	}
	return 0, false
}

func standingOwners() []flow.Owner {
	return flow.Owners(func(w *flow.Writer) bool { return w.Standing })
}

// digest returns a hash of an entry's key: equal for equal keys only.
func digest(k flow.EntryKey) [sha256.Size]byte {
	text := k.Match.Text()
	b := fmt.Appendf(nil, "%d/%d", k.Table, k.Priority)
	for _, field := range slices.Sorted(maps.Keys(text)) {
		b = fmt.Appendf(b, ",%s=%s", field, text[field])
	}
	return sha256.Sum256(b)
}

// numberOf returns the number that names an entry in its cookie, never zero.
func numberOf(k flow.EntryKey) uint32 {
	d := digest(k)
	return uint32(d[0])<<24 | uint32(d[1])<<16 | uint32(d[2])<<8 | uint32(d[3]) | 1
}

// storeKey returns the key of an operator's entry in the store.
func storeKey(sw flow.DPID, k flow.EntryKey) string {
	d := digest(k)
	return sw.String() + "/" + hex.EncodeToString(d[:16])
}
