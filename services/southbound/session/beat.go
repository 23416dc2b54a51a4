package session

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/beats"
)

// peer is a session as the standing order for beats sees it.
type peer struct{ *channel }

func (p peer) NextXid() uint32 { return p.xid.Add(1) }

// SendBeat sends an echo request, ahead of all queued messages if what is
// real-time is first.
func (p peer) SendBeat(msg []byte) error {
	if p.shared.Config.Load().RealtimeFirst {
		return p.out.putFirst(msg)
	}
	return p.out.put(msg)
}

// beginBeats puts the switch under the standing order.
func (l *liveness) beginBeats() {
	request, err := l.Version.AppendEchoRequest(nil, 0, nil)
	if err == nil { // the versions that a session may have all have one
		l.beat.Store(l.shared.Beats.Add(peer{l.channel}, l.DPID.String(), request))
	}
}

// endBeats undoes beginBeats.
func (l *liveness) endBeats(cause error) {
	m := l.beat.Swap(nil)
	if m == nil {
		return
	}
	reason := "closed"
	if cause != nil {
		reason = Printable(cause.Error())
	}
	l.shared.Beats.Drop(m, reason)
}

// joinBeat adds the switch's next beat to messages that are about to be
// written to it, if it is due soon; at is about now, by the clock of the beats.
func (l *liveness) joinBeat(b []byte, at int64) []byte {
	if m := l.beat.Load(); m != nil {
		return m.Join(b, at)
	}
	return b
}

// OrderBeats answers api.OrderBeats.
func (h *Shared) OrderBeats(_ context.Context, req *api.OrderBeatsRequest) (*api.OrderBeatsResponse, error) {
	const most = uint64(time.Minute / time.Microsecond)
	err := h.Beats.Give(beats.Order{
		Interval:  time.Duration(min(req.GetIntervalUs(), most)) * time.Microsecond,
		Deadline:  time.Duration(min(req.GetDeadlineUs(), most)) * time.Microsecond,
		LostAfter: int(req.GetLostAfter()),
	})
	return &api.OrderBeatsResponse{Counts: h.Beats.Counts()}, err
}

// ListBeats answers api.ListBeats.
func (h *Shared) ListBeats(_ context.Context, req *api.ListBeatsRequest) (*api.ListBeatsResponse, error) {
	resp := &api.ListBeatsResponse{Counts: h.Beats.Counts()}
	if req.GetDpid() == "" {
		for _, s := range h.Up.All() {
			if m := s.alive.beat.Load(); m != nil {
				resp.Switches = append(resp.Switches, m.Describe())
			}
		}
		slices.SortFunc(resp.Switches, func(a, b *api.SwitchHeartbeat) int { return strings.Compare(a.Dpid, b.Dpid) })
		return resp, nil
	}
	sw, err := flow.ParseDPID(req.Dpid)
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	if s := h.Session(sw); s != nil {
		if m := s.alive.beat.Load(); m != nil {
			resp.Switches = append(resp.Switches, m.Describe())
			return resp, nil
		}
	}
	return nil, api.Errorf(codes.NotFound, "switch %v is not connected", sw)
}
