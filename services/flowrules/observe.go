package flowrules

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// Observe answers the call.
func (r *Rules) Observe(_ context.Context, req *api.ObserveRequest) (*api.ObserveResponse, error) {
	wanted, err := askedFor(req.GetOwner())
	if err != nil {
		return nil, err
	}
	list, err := r.all("")
	if len(req.GetDpids()) > 0 {
		list = nil
		for _, dpid := range req.GetDpids() {
			some, bad := r.all(dpid)
			list = append(list, some...)
			if bad != nil {
				err = bad
			}
		}
	}
	if err != nil {
		return nil, err
	}
	resp := &api.ObserveResponse{}
	for _, w := range list {
		if w.ask(wanted, time.Now()) {
			resp.Dpids = append(resp.Dpids, w.ledger.sw.String())
			w.wake()
		}
	}
	return resp, nil
}

// askedFor returns the owner of a name, or all if there is no name.
func askedFor(name string) (ownerSet, error) {
	if name == "" {
		return everybody, nil
	}
	for _, o := range owners() {
		if o.String() == name {
			return only(o), nil
		}
	}
	return 0, api.Errorf(codes.InvalidArgument, "observe entries of %q: want one of %v, or none for all", name, owners())
}

// ask requests another read of the switch, even if a read is under way: that one
// may report an older state. It returns false if the switch is away.
func (w *worker) ask(wanted ownerSet, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.ledger
	if !l.connected {
		return false
	}
	l.asked |= wanted
	if l.readLate == 0 {
		l.readDue = now
	}
	return true
}

// readStep returns the step that reads the entries for those who have asked.
func (l *ledger) readStep() step {
	s := step{kind: read, session: l.session, asked: l.asked, readObjects: l.version != "1.0" && (!l.viewed || l.unknown || !l.objects.isEmpty())}
	l.asked = 0
	return s
}
